"""What people said of pairs of answers in Label Studio, as rows of a label file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

from askance.amounts import first_few, many
from askance.errors import BadData
from askance.evals.label_studio import TaskAnnotation, read_annotations

PlacedRow: TypeAlias = tuple[str, Mapping[str, Any]]
"""Where a row of a label file stands, in words, and its values by column."""

PAIR, ASKED = "pair", "asked"
"""Fields of a task: the id of the pair, and what both texts answer."""
VERDICT, VOTE = "verdict", "vote"
"""What the answers are called."""
_NAMED = 5


def a_is_first(pair: str) -> bool:
    """Which of two answers people see first: by the id, so that nothing in a task says which is which."""
    return sha256(pair.encode("utf-8", "surrogatepass")).digest()[-1] % 2 == 0


def label_rows(export: Sequence[Any], source: str) -> tuple[list[PlacedRow], tuple[str, ...]]:
    """The pairs of an export as rows of a label file, with a vote for each annotator; and notes.

    Raises:
        BadData: see `read_annotations`; or a pair has two texts for one.
    """
    by_pair, notes = _answered(export, source, name=VERDICT)
    annotators = sorted({each.annotator for there in by_pair.values() for each in there})
    rows: list[PlacedRow] = []
    for pair, there in by_pair.items():
        votes = {each.annotator: each.choices[VERDICT] for each in there}
        columns = {"reference": "reference", "candidate": "candidate", "group": "group", "question": ASKED}
        row: dict[str, Any] = {name: _same_text(there, field, pair) for name, field in columns.items()}
        row |= {"id": pair, "votes": [votes.get(annotator) for annotator in annotators]}
        rows.append((there[0].where, row))
    return rows, notes


def vote_rows(export: Sequence[Any], source: str) -> tuple[list[PlacedRow], tuple[str, ...]]:
    """The votes of an export as rows of a file of votes, A and B again for what was shown first and second; and notes.

    Raises:
        BadData: see `read_annotations`.
    """
    by_pair, notes = _answered(export, source, name=VOTE)
    rows: list[PlacedRow] = []
    for pair, there in by_pair.items():
        sides = ("a", "b") if a_is_first(pair) else ("b", "a")
        votes: Mapping[str, str] = {"first": sides[0], "second": sides[1]}
        for each in there:
            word = each.choices[VOTE]
            texts = dict(zip(sides, (each.task.get("first"), each.task.get("second")), strict=True))
            vote = votes.get(word.strip().lower(), word)
            rows.append((each.where, {"id": pair, "rater": each.annotator, "vote": vote, **texts}))
    return rows, notes


def _answered(
    export: Sequence[Any], source: str, *, name: str
) -> tuple[Mapping[str, Sequence[TaskAnnotation]], tuple[str, ...]]:
    """The annotations with an answer by pair, and a note on the pairs without any."""
    found = read_annotations(export, source, key=PAIR, names=(name,))
    by_pair = {pair: answers for pair, there in found.items() if (answers := [each for each in there if each.choices])}
    without = [pair for pair in found if pair not in by_pair]
    if not without:
        return by_pair, ()
    return by_pair, (f"{many(len(without), 'pair')} without an answer: {first_few([*map(repr, without)], _NAMED)}",)


def _same_text(there: Sequence[TaskAnnotation], field: str, pair: str) -> Any:
    value = there[0].task.get(field)
    other = next((each for each in there if each.task.get(field) != value), None)
    if other is not None:
        raise BadData(
            f"The pair {pair!r} has another {field} in {other.where} than in {there[0].where}.",
            hint="Export the answers to one sheet at a time.",
        )
    return value
