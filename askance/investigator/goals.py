"""What an investigator can be after: each goal is the node that would be asked about the picture in one go.

So an answer is asked for by the question of that node and read by its reader, and is scored as that of a fixed chain.

| goal | the node | the answer |
|---|---|---|
| `explain` | `explain_from_picture` | one sentence that says what is unusual, and why |
| `identify` | `identify_from_picture` | `weird` or `normal` |
| `choose` | `choose_from_picture` | the options that the picture argues for |
| `statement` | `choose_statement_from_picture` | the one of some statements of atypicality that holds |
| `answer` | `answer_from_picture` | a few words that answer a question |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.agents import (
    answer_from_picture,
    choose_from_picture,
    choose_statement_from_picture,
    explain_from_picture,
    identify_from_picture,
)
from askance.chains.catalog import options_question, visual_question
from askance.chains.link import ANSWERS, REPLY, Link
from askance.errors import Skipped, UsageError

if TYPE_CHECKING:
    from askance.agents import OptionsQuestion, VisualQuestion
    from askance.chains.reading import Reading
    from askance.nodes import Node

GoalName: TypeAlias = Literal["explain", "identify", "choose", "statement", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is asked about the picture, and where its answer belongs in a chain."""

    link: Link[Any]
    """What the answer is called in a chain."""
    make: Callable[..., Node[Any, Any]]
    """Makes the node of a model, for which the picture is seen; by keyword it takes `prompts`."""
    subject: Callable[[Reading], Any]
    """What the node is asked, of what a chain knows."""


def goal_named(name: str, *, question: str | None = None) -> Goal:
    """The goal of that name.

    Args:
        name: see `GOALS`.
        question: what `answer` asks where a picture brings no question of its own.

    Raises:
        UsageError: there is no such goal, or a question is given to one that has its own.
    """
    if name not in GOALS:
        raise UsageError(f"There is no goal {name!r}.", hint=f"Choose one of {', '.join(get_args(GoalName))}.")
    goal = GOALS[name]
    if question is None:
        return goal
    if name != "answer":
        raise UsageError(
            f"The goal {name!r} has a question of its own.", hint="Take the goal `answer`, or leave it out."
        )
    return replace(goal, subject=partial(_asked, question=question))


def _seen(reading: Reading) -> VisualQuestion:
    return visual_question(replace(reading, question=None), sees=True)


def _asked(reading: Reading, *, question: str | None = None) -> VisualQuestion:
    """The picture and the question about it.

    Raises:
        Skipped: there is no question.
    """
    asked = reading.question or question
    if asked is None:
        raise Skipped("no question is asked")
    return visual_question(replace(reading, question=asked), sees=True)


def _offered(reading: Reading) -> OptionsQuestion:
    return options_question(reading, sees=True)


GOALS: Mapping[str, Goal] = MappingProxyType(
    {
        "explain": Goal(link=REPLY, make=explain_from_picture, subject=_seen),
        "identify": Goal(link=REPLY, make=identify_from_picture, subject=_seen),
        "choose": Goal(link=ANSWERS, make=choose_from_picture, subject=_offered),
        "statement": Goal(link=ANSWERS, make=choose_statement_from_picture, subject=_offered),
        "answer": Goal(link=REPLY, make=answer_from_picture, subject=_asked),
    }
)
"""By name, every goal."""
