"""What people say of pairs of texts, in a file.

Labels say whether a candidate means the same as a reference, votes which of two answers is better.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.data_table import csv_records
from askance.errors import BadData
from askance.evals import label_studio
from askance.evals.judges.label_export import PlacedRow, label_rows, vote_rows
from askance.evals.suite.files import read_bytes, read_json

if TYPE_CHECKING:
    from askance.agents import PreferenceValue

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
    """The pairs in a file: CSV with a header, JSON lines (`.jsonl`, `.ndjson`), or a JSON list (`.json`) of objects.

    A `.json` file may also be an export of Label Studio, JSON or JSON-MIN, with the tasks of `write_label_sheet`.

    Raises:
        BadData: the file cannot be read, lacks a column, has no rows, or a row that cannot be used; it is named.
    """
    file = Path(path)
    digest, rows, notes = _read_rows(file, "label file", label_rows, hint=_HINT)
    names = dict.fromkeys(name for _, row in rows for name in row)
    lacking = [name for name in COLUMNS[:2] if name not in names]
    if not {"verdict", "votes"} & {*names}:
        lacking.append("verdict or votes")
    if lacking:
        columns = ", ".join(map(repr, names))
        raise BadData(f"The label file {str(file)!r} lacks {' and '.join(lacking)}; it has {columns}.", hint=_HINT)
    labels = tuple(_label(row, where) for where, row in rows)
    return Labels(name=file.name, digest=digest, rows=labels, notes=(*_notes([*names], labels), *notes))


def _read_rows(
    file: Path,
    what: str,
    annotated: Callable[[Sequence[Any], str], tuple[list[PlacedRow], tuple[str, ...]]],
    *,
    hint: str,
) -> tuple[str, list[PlacedRow], tuple[str, ...]]:
    """The sha256 of a file, its rows, and notes; `annotated` makes rows of an export of Label Studio.

    Raises:
        BadData: it cannot be read, or has no rows.
    """
    content = read_bytes(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadData(f"The {what} {str(file)!r} is not UTF-8 text.", hint="Save it as UTF-8.") from error
    notes: tuple[str, ...] = ()
    match file.suffix.lower():
        case ".jsonl" | ".ndjson":
            rows = [*_objects(text, file, hint)]
        case ".json":
            value: Any = read_json(file)
            if label_studio.is_export(value):
                rows, notes = annotated(value, str(file))
            else:
                rows = [*_listed_objects(value, file, hint)]
        case _:
            rows = [*_records(text, file)]
    if not rows:
        raise BadData(f"The {what} {str(file)!r} holds no pairs.", hint=hint)
    return sha256(content).hexdigest(), rows, notes


def _objects(text: str, file: Path, hint: str) -> Iterator[PlacedRow]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadData(f"Line {number} of {str(file)!r} is no JSON.", hint="Give one object a line.") from error
        if not isinstance(value, dict):
            raise BadData(f"Line {number} of {str(file)!r} is no JSON object.", hint=hint)
        yield f"line {number} of {str(file)!r}", cast("Mapping[str, Any]", value)


def _listed_objects(value: Any, file: Path, hint: str) -> Iterator[PlacedRow]:
    if not isinstance(value, list):
        raise BadData(f"{str(file)!r} holds no list.", hint="A `.json` file is a list of objects, one a row.")
    for number, row in enumerate(cast("list[Any]", value), start=1):
        if not isinstance(row, dict):
            raise BadData(f"Entry {number} of {str(file)!r} is no JSON object.", hint=hint)
        yield f"entry {number} of {str(file)!r}", cast("Mapping[str, Any]", row)


def _records(text: str, file: Path) -> Iterator[PlacedRow]:
    names, rows = csv_records(io.StringIO(text, newline=""), str(file), strict=True)
    for line, cells in rows:
        if any(cell.strip() for cell in cells):
            yield f"line {line} of {str(file)!r}", dict(zip(map(str.lower, names), cells, strict=True))


def _label(row: Mapping[str, Any], where: str) -> Label:
    texts = {
        name: _text_of_cell(row.get(name), name, where)
        for name in ("reference", "candidate", "question", "group", "id")
    }
    for name in ("reference", "candidate"):
        if not texts[name].strip():
            raise BadData(f"The {name} in {where} is empty.", hint="Leave out pairs that there is nothing to judge of.")
    votes = tuple(_verdict(vote, where) for vote in _several(row.get("votes"), where, such_as="true;false;true"))
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


def _text_of_cell(value: object, name: str, where: str) -> str:
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


def _several(value: object, where: str, *, such_as: str) -> list[object]:
    """The votes of a cell that holds several."""
    if isinstance(value, str):
        value = _listed(value)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadData(f"The votes in {where} are no list: {value!r}.", hint=f"Such as {such_as}.")
    return cast("list[object]", value)


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


# --- votes for one of two answers ---

_VOTE_HINT = (
    "Columns: id of the pair, and votes (A;B;A) or one vote a row (A, B or tie), then rater; a and b are optional."
)
_CHOICES: Mapping[str, PreferenceValue] = {"a": "a", "b": "b", "tie": "tie"}
_VOTE_COLUMNS = ("id", "votes", "vote", "rater", "a", "b")


@dataclass(frozen=True, slots=True, kw_only=True)
class VotedPair:
    """People's votes on one pair of answers."""

    votes: tuple[PreferenceValue | None, ...]
    """None where a person said nothing."""
    texts: Mapping[str, str]
    """The texts of the answers `a` and `b` that people saw, as far as the file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """The votes of a file."""

    name: str
    digest: str
    """sha256 of the file's bytes, hex."""
    rows: Mapping[str, VotedPair]
    """By id of the pair."""
    notes: tuple[str, ...] = ()
    """Remarks on the file, such as columns that are not read."""


def read_votes(path: str | Path) -> Votes:
    """People's votes for one of two answers, in a file like one of labels: a row a pair, or a row a vote.

    A `.json` file may also be an export of Label Studio, JSON or JSON-MIN, with the tasks of `write_label_sheet`.

    Raises:
        BadData: the file cannot be read, lacks a column, has no vote, or a row that cannot be used; it is named.
    """
    file = Path(path)
    digest, rows, said = _read_rows(file, "file of votes", vote_rows, hint=_VOTE_HINT)
    names = [*dict.fromkeys(name for _, row in rows for name in row)]
    lacking = [*(["id"] if "id" not in names else []), *([] if {"vote", "votes"} & {*names} else ["vote or votes"])]
    if lacking:
        columns = ", ".join(map(repr, names))
        raise BadData(
            f"The file of votes {str(file)!r} lacks {' and '.join(lacking)}; it has {columns}.", hint=_VOTE_HINT
        )
    by_pair: dict[str, list[PreferenceValue | None]] = {}
    texts: dict[str, dict[str, str]] = {}
    raters: set[tuple[str, str]] = set()
    whole: set[str] = set()
    for where, row in rows:
        name, rater = (_text_of_cell(row.get(column), column, where).strip() for column in ("id", "rater"))
        if not name:
            raise BadData(f"There is no id in {where}.", hint=_VOTE_HINT)
        listed = row.get("votes") not in (None, "")
        if name in whole or (listed and name in by_pair):
            raise BadData(f"The pair {name!r} stands twice, also in {where}.", hint="Give each pair its votes once.")
        if rater and (name, rater) in raters:
            raise BadData(f"The rater {rater!r} votes twice on {name!r}, also in {where}.", hint="Keep one of the two.")
        if listed:
            whole.add(name)
        raters.add((name, rater))
        cells = _several(row["votes"], where, such_as="A;B;A") if listed else [row.get("vote")]
        by_pair.setdefault(name, []).extend(_choice(vote, where) for vote in cells)
        for side in ("a", "b"):
            text, seen = _text_of_cell(row.get(side), side, where), texts.setdefault(name, {})
            if text and seen.setdefault(side, text) != text:
                raise BadData(
                    f"The pair {name!r} has another text {side.upper()} in {where} than in a row before.",
                    hint="Collect all votes on a pair on the same two texts.",
                )
    empty = next((name for name, votes in by_pair.items() if not any(votes)), None)
    if empty is not None:
        raise BadData(f"There is no vote on {empty!r} in {str(file)!r}.", hint="Leave out pairs that nobody voted on.")
    unread = [name for name in names if name not in _VOTE_COLUMNS]
    notes = (*([f"Columns of the votes that are not read: {', '.join(unread)}."] if unread else []), *said)
    pairs = {name: VotedPair(votes=tuple(votes), texts=texts[name]) for name, votes in by_pair.items()}
    return Votes(name=file.name, digest=digest, rows=pairs, notes=notes)


def _choice(value: object, where: str) -> PreferenceValue | None:
    """The vote of a cell; None for an empty one."""
    word = str(value).strip().lower()
    if value is None or not word:
        return None
    if word not in _CHOICES:
        raise BadData(f"{value!r} in {where} is no vote.", hint="Votes: A (the run), B (what it is held against), tie.")
    return _CHOICES[word]
