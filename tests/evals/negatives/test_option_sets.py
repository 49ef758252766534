from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from askance.agents.negative_writer import NegativeKind
from askance.errors import BadData
from askance.evals.negatives import HardNegative
from askance.evals.negatives.option_sets import read_sidecar

LINE = HardNegative(key="a.jpg", text="b", kind="action", source="c", calls=("k",)).form()


def written(folder: Path, *lines: Any) -> Path:
    file = folder / "negatives.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return file


def test_a_sidecar_is_read_as_it_was_written(tmp_path: Path) -> None:
    negatives = [
        HardNegative(key="a.jpg", text=f"{place} \ud800", kind=kind, source="c", place=place, replacement="")
        for place, kind in enumerate([*get_args(NegativeKind), None])
    ]

    assert [*read_sidecar(written(tmp_path, *(each.form() for each in negatives))).values()] == negatives


def test_of_two_lines_about_one_negative_the_first_holds(tmp_path: Path) -> None:
    known = read_sidecar(written(tmp_path, LINE, {**LINE, "kind": "reason"}))

    assert [each.kind for each in known.values()] == ["action"]


BAD: dict[str, tuple[Any, str]] = {
    "no object": ([], r"line 2, is no line of a sidecar: the line: \[\] is not of type 'object'"),
    "no source": ({name: value for name, value in LINE.items() if name != "source"}, "'source' is a required property"),
    "unknown kind": ({**LINE, "kind": "adverb"}, "kind: 'adverb' is not one of"),
    "number": ({**LINE, "text": 3}, "text: 3 is not of type 'string'"),
    "calls": ({**LINE, "calls": "k"}, "calls: 'k' is not of type 'array'"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=BAD)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(BadData, match=message):
        read_sidecar(written(tmp_path, LINE, line))


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "negatives.jsonl"
    file.write_text("[" * 100_000, "utf-8")

    with pytest.raises(BadData, match="line 1, is nested deeper than"):
        read_sidecar(file)
