"""Pairs of answers as tasks for people in Label Studio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.errors import UsageError
from askance.evals.judges.label_export import ASKED, PAIR, VERDICT, VOTE, a_is_first
from askance.evals.label_studio import QUESTION, ChoiceField, write_tasks
from askance.evals.sample import SampleQuestion

if TYPE_CHECKING:
    from askance.evals.judges.answer_pairs import AnswerPair, AnswerPairs

SheetPurpose: TypeAlias = Literal["card", "prefer"]
"""Labels for a card of a judge, or votes beside the preferences of judges."""

_ABOUT = "about"
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
    texts = (
        {"reference": "Reference", "candidate": "Candidate"}
        if purpose == "card"
        else {"first": "First", "second": "Second"}
    )
    beside = {ASKED: "What both answer", _ABOUT: "What that is about"}
    tasks = [_label_task(pair) if purpose == "card" else _vote_task(pair) for pair in shown]
    field = ChoiceField(
        name=VERDICT if purpose == "card" else VOTE,
        texts={name: heading for name, heading in beside.items() if any(task[name] for task in tasks)} | texts,
        choices=("Yes", "No") if purpose == "card" else ("First", "Second", "Tie"),
    )
    write_tasks(out, tasks, [field])
    return LabelSheet(pairs=len(shown), left_out=tuple(pair.id for pair in pairs.pairs if pair.missing is not None))


def _label_task(pair: AnswerPair) -> Mapping[str, str]:
    return {QUESTION: _LABEL_QUESTION, **_beside(pair), "reference": pair.b or "", "candidate": pair.a or ""}


def _vote_task(pair: AnswerPair) -> Mapping[str, str]:
    first, second = (pair.a, pair.b) if a_is_first(pair.id) else (pair.b, pair.a)
    return {QUESTION: _VOTE_QUESTION, **_beside(pair), "first": first or "", "second": second or ""}


def _beside(pair: AnswerPair) -> Mapping[str, str]:
    asked = "" if pair.question.text == SampleQuestion().text else pair.question.text
    return {PAIR: pair.id, "group": pair.group, ASKED: asked, _ABOUT: pair.question.about}
