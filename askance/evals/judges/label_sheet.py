"""Pairs of answers put before people in Label Studio, and what they said of them as rows of a label file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance.amounts import first_few, many
from askance.errors import BadData, UsageError
from askance.evals.label_studio import QUESTION, Annotation, ChoiceField, read_annotations, write_tasks
from askance.evals.sample import SampleQuestion

if TYPE_CHECKING:
    from askance.evals.judges.answer_pairs import AnswerPair, AnswerPairs

SheetPurpose: TypeAlias = Literal["card", "prefer"]
"""Labels for a card of a judge, or votes beside the preferences of judges."""

PlacedRow: TypeAlias = tuple[str, Mapping[str, Any]]
"""Where a row of a label file stands, in words, and its values by column."""

_PAIR, _ASKED, _ABOUT = "pair", "asked", "about"
_VERDICT, _VOTE = "verdict", "vote"
_NAMED = 5
_LABEL_QUESTION = "Does the candidate say the same as the reference?"
_VOTE_QUESTION = "Which of the two is better?"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSheet:
    """What was written for people."""

    pairs: int
    left_out: tuple[str, ...]
    """Ids of pairs that lack one of the two texts, so that there is nothing to ask."""


def write_label_sheet(pairs: AnswerPairs, out: Path, *, purpose: SheetPurpose) -> LabelSheet:
    """Writes tasks and a labelling configuration for Label Studio: see `write_tasks`.

    Annotators of a card see each answer (A) beside its reference (B), and say whether both say the same. For
    preferences they see A and B in an order that goes by the id of the pair alone, and are not told which is which.

    Args:
        pairs: what is asked; of a run and its references for a card.
        out: folder for the two files.
        purpose: what the answers are for.

    Raises:
        UsageError: no pair has two texts.
    """
    shown = [pair for pair in pairs.pairs if pair.missing is None]
    if not shown:
        raise UsageError(
            "No pair has two texts, so there is nothing to ask people.", hint="Look at the run's outcomes."
        )
    texts = {"reference": "Reference", "candidate": "Candidate"} if purpose == "card" else {"first": "1", "second": "2"}
    beside = {_ASKED: "What both answer", _ABOUT: "What that is about"}
    tasks = [_label_task(pair) if purpose == "card" else _vote_task(pair) for pair in shown]
    field = ChoiceField(
        name=_VERDICT if purpose == "card" else _VOTE,
        texts={name: heading for name, heading in beside.items() if any(task[name] for task in tasks)} | texts,
        choices=("Yes", "No") if purpose == "card" else ("First", "Second", "Tie"),
    )
    write_tasks(out, tasks, [field])
    return LabelSheet(pairs=len(shown), left_out=tuple(pair.id for pair in pairs.pairs if pair.missing is not None))


def _label_task(pair: AnswerPair) -> Mapping[str, str]:
    return {QUESTION: _LABEL_QUESTION, **_beside(pair), "reference": pair.b or "", "candidate": pair.a or ""}


def _vote_task(pair: AnswerPair) -> Mapping[str, str]:
    first, second = (pair.a, pair.b) if _a_is_first(pair.id) else (pair.b, pair.a)
    return {QUESTION: _VOTE_QUESTION, **_beside(pair), "first": first or "", "second": second or ""}


def _beside(pair: AnswerPair) -> Mapping[str, str]:
    asked = "" if pair.question.text == SampleQuestion().text else pair.question.text
    return {_PAIR: pair.id, "group": pair.group, _ASKED: asked, _ABOUT: pair.question.about}


def _a_is_first(pair: str) -> bool:
    """Which of two answers people see first: by the id, so that nothing in a task says which is which."""
    return sha256(pair.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0


# --- read back ---


def label_rows(export: Sequence[Any], source: str) -> tuple[list[PlacedRow], tuple[str, ...]]:
    """The pairs of an export as rows of a label file, with a vote for each annotator; and notes.

    Raises:
        BadData: see `read_annotations`; or a pair has two texts for one.
    """
    by_pair, notes = _answered(export, source, name=_VERDICT)
    annotators = sorted({each.annotator for there in by_pair.values() for each in there})
    rows: list[PlacedRow] = []
    for pair, there in by_pair.items():
        votes = {each.annotator: each.choices[_VERDICT] for each in there}
        columns = {"reference": "reference", "candidate": "candidate", "group": "group", "question": _ASKED}
        row: dict[str, Any] = {name: _same_text(there, field, pair) for name, field in columns.items()}
        row |= {"id": pair, "votes": [votes.get(annotator) for annotator in annotators]}
        rows.append((there[0].where, row))
    return rows, notes


def vote_rows(export: Sequence[Any], source: str) -> tuple[list[PlacedRow], tuple[str, ...]]:
    """The votes of an export as rows of a file of votes, A and B again for what was shown first and second; and notes.

    Raises:
        BadData: see `read_annotations`.
    """
    by_pair, notes = _answered(export, source, name=_VOTE)
    rows: list[PlacedRow] = []
    for pair, there in by_pair.items():
        sides = ("a", "b") if _a_is_first(pair) else ("b", "a")
        votes: Mapping[str, str] = {"first": sides[0], "second": sides[1]}
        for each in there:
            word = each.choices[_VOTE]
            texts = dict(zip(sides, (each.task.get("first"), each.task.get("second")), strict=True))
            vote = votes.get(word.strip().lower(), word)
            rows.append((each.where, {"id": pair, "rater": each.annotator, "vote": vote, **texts}))
    return rows, notes


def _answered(
    export: Sequence[Any], source: str, *, name: str
) -> tuple[Mapping[str, Sequence[Annotation]], tuple[str, ...]]:
    """The annotations with an answer by pair, and a note on the pairs without any."""
    found = read_annotations(export, source, key=_PAIR, names=(name,))
    by_pair = {pair: answers for pair, there in found.items() if (answers := [each for each in there if each.choices])}
    without = [pair for pair in found if pair not in by_pair]
    if not without:
        return by_pair, ()
    return by_pair, (f"{many(len(without), 'pair')} without an answer: {first_few([*map(repr, without)], _NAMED)}",)


def _same_text(there: Sequence[Annotation], field: str, pair: str) -> Any:
    value = there[0].task.get(field)
    other = next((each for each in there if each.task.get(field) != value), None)
    if other is not None:
        raise BadData(
            f"The pair {pair!r} has another {field} in {other.where} than in {there[0].where}.",
            hint="Export the answers to one sheet at a time.",
        )
    return value
