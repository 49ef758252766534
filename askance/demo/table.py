"""The run-time form of the demo's table: pictures, options, what is true, and the hand-written answers."""

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
"""Pictures, truth, options and answers, hand-written; what each field means stands at its top."""
ENTRIES = FOLDER / "demo.json"
"""What `read_table` reads, made from `TABLE`: JSON needs no library and hardly any time."""
CASSETTE = FOLDER / "cassette.jsonl"
"""The answers of `TABLE` as records of what the real chains ask."""
NAME = "demo (hand-written)"
"""The name of the model `demo` wherever an answer of its is shown, and in `CASSETTE`."""


class DemoAnswers(TypedDict):
    """What `ENTRIES` holds of one picture for the model `demo`."""

    sha256: str
    answers: Mapping[str, Any]
    """By name of the prompt; choices are texts of options."""


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
    """The pictures in the order in which they are shown."""
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
