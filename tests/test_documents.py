"""YAML that strangers wrote: what is wrong with it is a line and a message, never a traceback or a hang."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from askance.documents import UnreadableDocument, parse_toml, parse_yaml, read_yaml
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
