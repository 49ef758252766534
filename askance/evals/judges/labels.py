"""Labels by people for pairs of texts: a file of references, candidates, and verdicts or votes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from askance.errors import BadData
from askance.evals.suite.files import read_bytes

COLUMNS = ("reference", "candidate", "verdict", "votes", "question", "group", "id")
"""Columns of a file; the first two must be there, and one of the next two."""

_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_HINT = "Columns: reference, candidate, verdict (true or false) or votes (true;false;true); question, group and id."
_BETWEEN = re.compile(r"[;|,]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One pair, and its label by people."""

    reference: str
    candidate: str
    verdict: bool | None
    """Whether both mean the same: the verdict of the file, else the majority of the votes; None for a tie."""
    votes: tuple[bool | None, ...] = ()
    """One for each person, in the same order for every pair; None where a person said nothing."""
    question: str | None = None
    group: str
    """Pairs of one group are resampled together. By default a group shares an id or, without ids, the reference."""
    id: str = ""
    """The sample of a run that the candidate answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The pairs of a file."""

    name: str
    digest: str
    """sha256 of the file's bytes, hex."""
    rows: tuple[Label, ...]
    notes: tuple[str, ...] = ()
    """Remarks on the file, such as columns that are not read."""


def read_labels(path: str | Path) -> Labels:
    """The pairs in a CSV file with a header, or in a JSONL file (`.jsonl`, `.ndjson`) of an object a line.

    Raises:
        BadData: the file cannot be read, lacks a column, has no rows, or a row that cannot be used; it is named.
    """
    file = Path(path)
    content = read_bytes(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadData(f"The label file {str(file)!r} is not UTF-8 text.", hint="Save it as UTF-8.") from error
    lines = file.suffix.lower() in {".jsonl", ".ndjson"}
    rows = list(_objects(text, file) if lines else _records(text, file))
    if not rows:
        raise BadData(f"The label file {str(file)!r} holds no pairs.", hint=_HINT)
    names = dict.fromkeys(name for _, row in rows for name in row)
    lacking = [name for name in COLUMNS[:2] if name not in names]
    if not {"verdict", "votes"} & {*names}:
        lacking.append("verdict or votes")
    if lacking:
        found = ", ".join(map(repr, names))
        raise BadData(f"The label file {str(file)!r} lacks {' and '.join(lacking)}; it has {found}.", hint=_HINT)
    labels = tuple(_label(row, f"line {number} of {str(file)!r}") for number, row in rows)
    return Labels(name=file.name, digest=sha256(content).hexdigest(), rows=labels, notes=_notes([*names], labels))


def _objects(text: str, file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadData(f"Line {number} of {str(file)!r} is no JSON.", hint="Give one object a line.") from error
        if not isinstance(found, dict):
            raise BadData(f"Line {number} of {str(file)!r} is no JSON object.", hint=_HINT)
        yield number, cast("Mapping[str, Any]", found)


def _records(text: str, file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip().lower() for name in next(reader, ())]
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(names):
                raise BadData(
                    f"Line {reader.line_num} of {str(file)!r} has {len(cells)} cells, and the header {len(names)}.",
                    hint='Put texts that hold commas or line breaks into quotes: "…".',
                )
            yield reader.line_num, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise BadData(
            f"Line {reader.line_num} of {str(file)!r} is no CSV: {error}.",
            hint="Check its quotes, and those of the lines before.",
        ) from error


def _label(row: Mapping[str, Any], where: str) -> Label:
    texts = {name: _text(row.get(name), name, where) for name in ("reference", "candidate", "question", "group", "id")}
    for name in ("reference", "candidate"):
        if not texts[name].strip():
            raise BadData(f"The {name} in {where} is empty.", hint="Leave out pairs that there is nothing to judge of.")
    votes = _votes(row.get("votes"), where)
    verdict = _verdict(row.get("verdict"), where)
    if verdict is None and all(vote is None for vote in votes):
        raise BadData(f"There is neither a verdict nor a vote in {where}.", hint=_HINT)
    yes, no = votes.count(True), votes.count(False)
    majority = None if yes == no else yes > no
    return Label(
        reference=texts["reference"],
        candidate=texts["candidate"],
        verdict=majority if verdict is None else verdict,
        votes=votes,
        question=texts["question"].strip() or None,
        group=texts["group"].strip() or texts["id"].strip() or group_of(texts["reference"]),
        id=texts["id"].strip(),
    )


def group_of(reference: str) -> str:
    """The group of pairs that share a reference, if the file names no group: a digest of the reference."""
    return f"reference {sha256(reference.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _text(value: object, name: str, where: str) -> str:
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    if value is None:
        return ""
    raise BadData(f"The {name} in {where} is no text: {value!r}.", hint="Make it a text.")


def _verdict(value: object, where: str) -> bool | None:
    """The verdict of a cell; None for an empty one."""
    word = str(value).strip().lower()
    if value is None or not word:
        return None
    if word not in _WORDS or isinstance(value, float):
        raise BadData(f"{value!r} in {where} is no verdict.", hint=f"Verdicts: {', '.join(_WORDS)}.")
    return _WORDS[word]


def _votes(value: object, where: str) -> tuple[bool | None, ...]:
    if isinstance(value, str):
        value = _listed(value)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadData(f"The votes in {where} are no list: {value!r}.", hint="Such as true;false;true.")
    return tuple(_verdict(vote, where) for vote in cast("list[object]", value))


def _listed(text: str) -> object:
    """The votes in a cell: a JSON list, or words with `;`, `|` or commas between."""
    if not text.strip():
        return None
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return _BETWEEN.split(text)


def _notes(names: Sequence[str], labels: Sequence[Label]) -> tuple[str, ...]:
    notes: list[str] = []
    unread = [name for name in names if name not in COLUMNS]
    if unread:
        notes.append(f"Columns of the labels that are not read: {', '.join(unread)}.")
    tied = sum(label.verdict is None for label in labels)
    if tied:
        notes.append(f"Pairs whose votes tie: {tied:,}; they count among people alone, and the judge is not asked.")
    classes = {label.verdict for label in labels} - {None}
    if not classes:
        raise BadData(
            "The votes of all pairs tie, so there is no label to hold a judge against.",
            hint="Ask one more person about them, or give a `verdict`.",
        )
    if len(classes) == 1:
        word, lost = ("true", "specificity") if True in classes else ("false", "sensitivity")
        notes.append(f"All labels are {word}: there is no {lost}, and neither κ nor a corrected rate says anything.")
    return tuple(notes)
