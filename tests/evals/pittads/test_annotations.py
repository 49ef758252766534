"""Annotations and the boxes in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.atypicality import Statement
from askance.errors import BadData
from askance.evals.pittads import read_annotations
from askance.evals.pittads.annotations import AnnotatedImage, Box, is_meaningful, parse_boxes, with_commas
from askance.evals.suite.files import Problems
from tests.evals.pittads.files import HEADER, Row, row, write, write_csv

KEY = "1/11.jpg"


def image(folder: Path, *rows: Row) -> AnnotatedImage:
    return read_annotations(write_csv(folder / "final_csv.csv", rows)).images[KEY]


CATEGORIES = {"1": "TR1", "2": "TR2", "3": "OIO", "8": "OR", "3.0": "OIO", " 8 ": "OR"}


@pytest.mark.parametrize(("category", "relation"), CATEGORIES.items(), ids=CATEGORIES)
def test_four_categories_are_relations(category: str, relation: str, own_place: Path) -> None:
    found = image(own_place, row(KEY, category))

    assert (found.labels, found.plurality, found.votes) == ((relation,), relation, (relation,))


DROPPED: dict[str, tuple[Row, str | None]] = {
    "nothing": (row(KEY), None),
    "category 4": (row(KEY, "4"), "another category"),
    "category 9": (row(KEY, "9"), "another category"),
    "no category": (row(KEY, ""), "no category"),
    "nan": (row(KEY, "nan"), "no category"),
    "regular": (row(KEY, "Regular_Object"), "regular object"),
    "regular, as a number": (row(KEY, "0"), "regular object"),
    "no first": (row(KEY, first=""), "no primary object"),
    "n/a": (row(KEY, second="n/a"), "no secondary object"),
    "short": (row(KEY, first="ox"), "unusable primary object"),
    "three": (row(KEY, first="axe"), None),
    "fifty": (row(KEY, second="x" * 50), None),
    "long": (row(KEY, second="x" * 51), "unusable secondary object"),
    "blanks": (row(KEY, first="    "), "unusable primary object"),
}


@pytest.mark.parametrize(("line", "reason"), DROPPED.values(), ids=DROPPED)
def test_each_row_is_kept_or_dropped_with_a_reason(line: Row, reason: str | None, own_place: Path) -> None:
    found = image(own_place, line)

    assert found.rows[0].drop == reason
    assert bool(found.statements) == (reason is None)


def test_labels_are_settled_before_rows_without_objects_go(own_place: Path) -> None:
    found = image(
        own_place, row(KEY, "8", "", ""), row(KEY, "8", "ox"), row(KEY, "1", "beer", "feather"), row(KEY, "4")
    )

    assert (found.labels, found.plurality) == (("TR1", "OR"), "OR")
    assert found.statements == (Statement("TR1", "beer", "feather"),)
    assert found.votes == ("OR", "OR", "TR1", None)


def test_a_tie_has_no_plurality(own_place: Path) -> None:
    found = image(own_place, row(KEY, "3"), row(KEY, "1"), row(KEY, "Regular_Object"))

    assert (found.labels, found.plurality, found.votes) == (("TR1", "OIO"), None, ("OIO", "TR1", "NA"))


def test_a_plurality_needs_no_majority(own_place: Path) -> None:
    assert image(own_place, *(row(KEY, category) for category in "88123")).plurality == "OR"


def test_a_statement_that_two_give_stands_once(own_place: Path) -> None:
    assert image(own_place, row(KEY), row(KEY), row(KEY, first=" cat ")).statements == (
        Statement("OIO", "cat", "tea cup"),
    )


def test_an_image_is_typical_when_all_say_so(own_place: Path) -> None:
    assert image(own_place, row(KEY, "Regular_Object", "", ""), row(KEY, "0", "", "")).typical
    assert not image(own_place, row(KEY, "Regular_Object"), row(KEY, "")).typical


@pytest.mark.parametrize("spelling", ["first_explaination", "first_explanation"])
def test_either_spelling_will_do(spelling: str, own_place: Path) -> None:
    header = ["Unnamed: 0", "image_url", "second_explanation", spelling, "category", "bounding_box"]
    path = write_csv(own_place / "a.csv", [["0", "11.jpg", "cup", "cat", "3", "[]"]], header)

    assert read_annotations(path).images[KEY].statements == (Statement("OIO", "cat", "cup"),)


def test_rows_of_an_image_need_not_stand_together(own_place: Path) -> None:
    path = write_csv(own_place / "a.csv", [row(KEY), row("2/12.jpg"), row(KEY, "1")])

    assert [(key, len(found.rows)) for key, found in read_annotations(path).images.items()] == [
        (KEY, 2),
        ("2/12.jpg", 1),
    ]


WRONG: dict[str, tuple[str | bytes, str]] = {
    "category 10": (f"{','.join(HEADER)}\n{KEY},10,cat,cup,[]\n", r", line 2: the category '10' is unknown\."),
    "a word": (f"{','.join(HEADER)}\n{KEY},OIO,cat,cup,[]\n", r", line 2: the category 'OIO' is unknown\."),
    "empty": ("", r" is empty\."),
    "header alone": (",".join(HEADER), r" has no row below its header\."),
    "a column too few": ("image_url,category\n1/11.jpg,3\n", r" has no column 'first_explaination'\."),
    "a column twice": (f"{','.join(HEADER)},category\n", r" has the column 'category' 2 times\."),
    "a field too many": (
        f"{','.join(HEADER)}\n{KEY},3,cat,cup,[],x\n",
        r", line 2: 6 fields, and the first line names 5",
    ),
    "wrong encoding": (
        f"{','.join(HEADER)}\n{KEY},3,café,cup,[]\n".encode("latin-1"),
        r" is no UTF-8 text: byte \d+ is",
    ),
    "an open quote": (f'{",".join(HEADER)}\n{KEY},3,"cat,cup,[]\n', r" ends within a quoted field\."),
    "out of the folder": (f"{','.join(HEADER)}\n../../x.jpg,3,cat,cup,[]\n", r", line 2: the key .* leads out of the"),
    "no image": (f"{','.join(HEADER)}\n,3,cat,cup,[]\n", r", line 2: '' is no path of an image\."),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00", r" is no UTF-8 text: byte 0 is 0x89\."),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_anything_else_is_refused_with_file_and_line(text: str | bytes, message: str, own_place: Path) -> None:
    with pytest.raises(BadData, match=rf"^The file '.*final_csv\.csv'{message}"):
        read_annotations(write(own_place / "final_csv.csv", text))


def test_a_missing_file_is_named(own_place: Path) -> None:
    with pytest.raises(BadData, match=r"^There is no file 'final_csv\.csv'\."):
        read_annotations(Path("final_csv.csv"))


def test_a_short_row_lacks_its_last_fields(own_place: Path) -> None:
    path = write(own_place / "final_csv.csv", f"{','.join(HEADER)}\n\n{KEY},3,cat\n")

    assert read_annotations(path).rows[0].drop == "no secondary object"


def test_problems_are_collected_and_the_rest_is_read(own_place: Path) -> None:
    problems: Problems = []

    found = read_annotations(write_csv(own_place / "a.csv", [row(KEY, "10"), row(KEY), row("/x.jpg")]), problems)

    assert ([*found.images], len(found.rows)) == ([KEY], 1)
    assert len(problems) == 2


def test_the_length_of_a_name_counts_blanks() -> None:
    assert [is_meaningful(name) for name in ("ox", "ox ", "", "x" * 50, "x" * 51)] == [False, True, False, True, False]


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


WRONG_BOXES = {
    "cut off": '[{"label": "cup"-"x": 1',
    "no list": '{"label": "cup"}',
    "no label": '[{"x": 1}]',
    "a label that is none": '[{"label": 5}]',
    "no object": "[1-2]",
    "deep": "[" * 10_000,
    "quotes without end": '"\\"' * 6000,
    "long": "[" + " " * 20_000 + "]",
}


@pytest.mark.parametrize("text", WRONG_BOXES.values(), ids=WRONG_BOXES)
def test_anything_else_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(BadData, match=r"^The file 'a\.csv', line 2: "):
        parse_boxes(text, where="The file 'a.csv', line 2")


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
FORMS = st.dictionaries(st.text(), PLAIN | st.lists(PLAIN, max_size=3), max_size=4)


@given(st.lists(FORMS, max_size=3))
def test_hyphens_in_the_place_of_commas_are_told_from_others(forms: list[dict[str, object]]) -> None:
    text = json.dumps(forms, separators=("\0", ": "), ensure_ascii=False)

    assert json.loads(with_commas(text.replace("\0", "-"))) == forms
