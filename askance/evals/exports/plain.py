"""Runs as CSV and as JSON lines, with nothing but the standard library."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import IO, TYPE_CHECKING

from askance.evals.exports.rows import columns_of, finite
from askance.evals.spreadsheet import cell

if TYPE_CHECKING:
    from askance.evals.run import Run


def write_csv(run: Run, path: Path) -> None:
    """Writes the rows as CSV, UTF-8; a text that a spreadsheet would run gets an apostrophe before it."""
    columns = columns_of(run)
    with _replacing(path) as file:
        lines = csv.writer(file)  # its ends of lines are those of the standard, so that a lone \r is quoted as well
        lines.writerow([cell(name) for name in columns])
        lines.writerows([cell(each) for each in row] for row in zip(*columns.values(), strict=True))
    _part(path).replace(path)


def write_jsonl(run: Run, path: Path) -> None:
    """Writes a line an answer: the sample, what was answered and how that came about, and its score."""
    with _replacing(path) as file:
        for answer in run.answers:
            score = None if answer.score is None else answer.score.form()
            form = {"id": answer.sample.id, "epoch": answer.epoch, "sample": answer.sample.form()}
            line = finite({**form, **answer.prediction.form(), "score": score})
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
    _part(path).replace(path)


def _replacing(path: Path) -> IO[str]:
    """The file that will stand at `path`; half a surrogate pair is written as its escape."""
    return _part(path).open("w", encoding="utf-8", errors="backslashreplace", newline="")


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")
