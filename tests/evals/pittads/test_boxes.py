from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import BadData
from askance.evals.pittads.annotations import Box, parse_boxes, with_commas

READ: dict[str, tuple[str, tuple[Box, ...]]] = {
    "none": ("[]", ()),
    "blank": ("  ", ()),
    "missing": ("nan", ()),
    "one": ('[{"label": "cup"}]', (Box("cup", {}),)),
    "hyphens for commas": (
        '[{"label": "cup"-"x": 1.5-"y": 2}-{"x": 3-"label": "feather"}]',
        (Box("cup", {"x": 1.5, "y": 2}), Box("feather", {"x": 3})),
    ),
    "real JSON": ('[{"label": "cup", "x": 1}, {"label": "t-shirt"}]', (Box("cup", {"x": 1}), Box("t-shirt", {}))),
    "a label with a hyphen": ('[{"label": "t-shirt"-"x": 1}]', (Box("t-shirt", {"x": 1}),)),
    "a label like a border": ('[{"label": "a}-{b"-"x": 1}]', (Box("a}-{b", {"x": 1}),)),
    "a label with a quote": (r'[{"label": "5\"-pipe"-"x": 1}]', (Box('5"-pipe', {"x": 1}),)),
    "a list of numbers": ('[{"box": [-1--2-3]-"label": "cup"}]', (Box("cup", {"box": [-1, -2, 3]}),)),
    "exponents": ('[{"x": 1e-5-"y": -2.5E-3-"label": "cup"}]', (Box("cup", {"x": 1e-5, "y": -2.5e-3}),)),
    "words": ('[{"label": "cup"-"x": true-"y": null-"z": false}]', (Box("cup", {"x": True, "y": None, "z": False}),)),
    "blanks": ('[ {"label" : "cup" - "x" : 1 } - {"label":"b"} ]', (Box("cup", {"x": 1}), Box("b", {}))),
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ)
def test_boxes_are_read(text: str, expected: tuple[Box, ...]) -> None:
    assert parse_boxes(text, where="line 2") == expected


WRONG = {
    "cut off": '[{"label": "cup"-"x": 1',
    "no list": '{"label": "cup"}',
    "no label": '[{"x": 1}]',
    "a label that is none": '[{"label": 5}]',
    "no object": "[1-2]",
    "deep": "[" * 10_000,
    "quotes without end": '"\\"' * 6000,
    "long": "[" + " " * 20_000 + "]",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_anything_else_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(BadData, match=r"^The file 'a\.csv', line 2: "):
        parse_boxes(text, where="The file 'a.csv', line 2")


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
FORMS = st.dictionaries(st.text(), PLAIN | st.lists(PLAIN, max_size=3), max_size=4)


@given(st.lists(FORMS, max_size=3))
def test_hyphens_in_the_place_of_commas_are_told_from_others(forms: list[dict[str, object]]) -> None:
    text = json.dumps(forms, separators=("\0", ": "), ensure_ascii=False)

    assert json.loads(with_commas(text.replace("\0", "-"))) == forms
