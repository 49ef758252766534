"""The demo's table: its pictures, options, targets and hand-written answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

FOLDER = Path(__file__).resolve().parent
PICTURES = FOLDER / "pictures"
TABLE = FOLDER / "demo.yaml"
"""Pictures, targets, options and answers, written by hand; its head says what each field means."""
ENTRIES = FOLDER / "demo.json"
"""What `read_table` reads; made from `TABLE`, since JSON is read faster and without a library."""
CASSETTE = FOLDER / "cassette.jsonl"
"""The answers of `TABLE` as records of the requests of the real chains."""
NAME = "demo (hand-written)"
"""The name of the model `demo` in `CASSETTE` and wherever its answers are shown."""


class DemoAnswers(TypedDict):
    """The answers of the model `demo` about one picture, as in `ENTRIES`."""

    sha256: str
    answers: Mapping[str, Any]
    """By name of the prompt; choices are the texts of options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPicture:
    """One picture of the demo."""

    name: str
    title: str
    path: Path
    options: tuple[str, ...]
    right: frozenset[int]
    """Numbers, from 1, of the options that are true of the picture."""
    statements: tuple[str, ...]
    """The atypicality statements that hold; none for the plain picture."""


def read_table() -> list[DemoPicture]:
    """The pictures of the demo, in the order in which they are shown."""
    return [
        DemoPicture(
            name=entry["name"],
            title=entry["title"],
            path=FOLDER / entry["file"],
            options=tuple(entry["options"]),
            right=frozenset(entry["right"]),
            statements=tuple(entry["statements"]),
        )
        for entry in json.loads(ENTRIES.read_text(encoding="utf-8"))
    ]


def project_files() -> dict[str, bytes]:
    """The files of a new project, by file name.

    These are the pictures; `options.json`, the options by file name of the picture; and `samples.jsonl`, with one line
    for each picture: its options and the numbers of those that are true.
    """
    entries = read_table()
    options = {entry.path.name: list(entry.options) for entry in entries}
    files = {entry.path.name: entry.path.read_bytes() for entry in entries}
    files["options.json"] = (json.dumps(options, ensure_ascii=False, indent=1) + "\n").encode()
    files["samples.jsonl"] = "".join(f"{_sample(entry)}\n" for entry in entries).encode()
    return files


def _sample(entry: DemoPicture) -> str:
    """The line of a picture in `samples.jsonl`."""
    row = {
        "id": entry.name,
        "image": entry.path.name,
        "options": list(entry.options),
        "target": sorted(entry.right),
        "tags": {"odd": bool(entry.statements)},
    }
    return json.dumps(row, ensure_ascii=False)
