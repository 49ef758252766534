"""YAML that strangers wrote: what is wrong with it is a line and a message, never a traceback or a hang."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from askance.documents import parse_yaml, read_yaml
from askance.errors import UsageError

ODD = {
    "a number without end": "x: " + ":".join(["1"] * 200) + ".5",
    "no truth value": "x: !!bool maybe",
    "no number": "x: !!int ''",
    "no time": "x: !!timestamp a",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_a_value_that_is_none_of_its_tag_is_a_fault(text: str) -> None:
    content, faults = parse_yaml(text, max_depth=5)

    assert content is None
    assert len(faults) == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "task.yaml")

    with pytest.raises(UsageError, match="is no regular file"):
        read_yaml(tmp_path / "task.yaml", what="a task")
