"""Documents that strangers wrote: what is wrong with them is a message, never a traceback or a hang."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.documents import UnreadableDocument, parse_toml, parse_yaml, read_yaml, stream_json
from askance.errors import UsageError

ODD = {
    "a number without end": "x: " + ":".join(["1"] * 200) + ".5",
    "a whole number without end": "x: " + ":".join(["1"] * 3000),
    "a name without end": ":".join(["1"] * 3000) + ": x",
    "hexadecimal without end": "[0x" + "f" * 5000 + "]",
    "no truth value": "x: !!bool maybe",
    "no number": "x: !!int ''",
    "no time": "x: !!timestamp a",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_a_value_that_is_none_of_its_tag_is_a_fault(text: str) -> None:
    content, faults = parse_yaml(text, max_depth=5)

    assert content is None
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    {
        "x = " + "[" * 5000 + "]" * 5000: "is nested deeper than 100 levels",
        ".".join("a" * 500) + " = 1": "is nested deeper than 100 levels",
        "x = " + "1" * 5000: "holds a whole number of more than 64 bits",
        "x = [{y = 0x" + "f" * 5000 + "}]": "holds a whole number of more than 64 bits",
        "x = -1" + "0" * 20: "holds a whole number of more than 64 bits",
        "x =": "is not TOML: Invalid value",
    }.items(),
    ids=["lists", "tables", "digits", "hexadecimal", "below zero", "value"],
)
def test_toml_that_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(UnreadableDocument) as caught:
        parse_toml(text)

    assert str(caught.value).startswith(why)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "task.yaml")

    with pytest.raises(UsageError, match="is no regular file"):
        read_yaml(tmp_path / "task.yaml", what="a task")


# --- JSON item by item ---

PLAIN = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    PLAIN | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(
    value=st.lists(VALUES, max_size=5) | st.dictionaries(st.text(), VALUES, max_size=5),
    size=st.integers(1, 9),
    indent=st.sampled_from([None, 1]),
    plain=st.booleans(),
)
def test_what_is_read_item_by_item_is_what_is_read_at_once(
    value: list[Any] | dict[str, Any], size: int, indent: int | None, plain: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    chunks = [text[at : at + size] for at in range(0, len(text), size)]

    assert [*stream_json(chunks)] == [*(value.items() if isinstance(value, dict) else enumerate(value))]


WRONG = {
    "nothing": ("", "is no JSON ('[' or '{' is expected, and it ends)"),
    "no list": ("3", "is no JSON ('[' or '{' is expected, and '3')"),
    "torn": ("[1, 2", "is no JSON (item 1: it ends)"),
    "no item": ("[1, ]", "is no JSON (item 1: Expecting value)"),
    "no comma": ("[1 2]", "is no JSON (',' or ']' is expected, and '2')"),
    "no name": ('{"a": 1, 2: 3}', "is no JSON (the name of item 1 is no text)"),
    "no colon": ('{"a" 1}', "is no JSON (':' is expected, and '1')"),
    "more behind": ("[1] [2]", "is no JSON (something stands behind its end)"),
    "NaN": ("[NaN]", "holds NaN, which is no JSON"),
    "digits": ("[1, 1" + "0" * 5000 + "]", "holds a number of thousands of digits in item 1"),
    "depth": ("[" * 100_000, "is nested deeper than 100 levels"),
}


@pytest.mark.parametrize(("text", "why"), WRONG.values(), ids=WRONG)
def test_a_stream_that_is_no_json_says_where(text: str, why: str) -> None:
    with pytest.raises(UnreadableDocument) as caught:
        list(stream_json([text]))

    assert str(caught.value) == why


def test_a_stream_is_not_read_to_its_end_for_an_item_without_end() -> None:
    def chunks() -> Iterator[str]:
        yield '["'
        while True:
            yield "a" * 100

    with pytest.raises(UnreadableDocument, match="or it is longer than 1,000 characters"):
        list(stream_json(chunks(), max_item=1000))


def test_items_are_given_before_the_rest_is_read() -> None:
    def chunks() -> Iterator[str]:
        yield '[{"a": 1}, '
        yield "2, "
        pytest.fail("the rest was read")

    items = stream_json(chunks())

    assert [next(items), next(items)] == [(0, {"a": 1}), (1, 2)]
