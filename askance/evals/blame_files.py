"""What is kept of a blame in a run's folder: a line a trial, and what they come to."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from askance.evals.run_folder import amending

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.blamed import Blame

LINES, SUMMARY, LEDGER = "blame.jsonl", "blame.json", "blame-budget.db"
FORMAT = 1
"""Version of both files."""


@contextmanager
def held(folder: Path, *, own: bool) -> Generator[None]:
    """Holds the run's folder, or makes another one."""
    if own:
        with amending(folder):
            yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    yield


def read_lines(file: Path) -> Iterator[JsonObject]:
    """The lines of earlier calls; one that a kill tore is none."""
    if not file.exists():
        return
    for text in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            line: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and {"how", "key", "id", "epoch", "link", "outcome", "links"} <= line.keys():
            yield cast("JsonObject", line)


def write_line(file: IO[str], line: Mapping[str, Any]) -> None:
    """Adds a line, at once."""
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()


def save(file: Path, blame: Blame) -> None:
    """Writes what the trials come to, beside what trials of another kind came to."""
    there = kept_blames(file.parent)
    content = {"format": FORMAT, "blames": {**there, blame.how: blame.form()}}
    part = file.with_name(f"{file.name}.part")
    part.write_text(
        json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8", errors="backslashreplace"
    )
    part.replace(file)


def kept_blames(folder: Path) -> dict[str, JsonObject]:
    """What a folder holds of earlier blames, as `Blame.form` gives it, by what was put in the links' places."""
    file = folder / SUMMARY
    if not file.exists():
        return {}
    try:
        form: Any = json.loads(file.read_text(encoding="utf-8"))
        return dict(form["blames"]) if form["format"] == FORMAT else {}
    except (ValueError, KeyError, TypeError):
        return {}
