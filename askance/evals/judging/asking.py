"""Asking a judge about labelled pairs: every pair, in several draws, and with its two texts in each other's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from askance.agents import Panel, Verdict
from askance.agents.judge import QUESTION
from askance.chains.stream import in_order
from askance.models import use_draw

if TYPE_CHECKING:
    from askance.agents import Judge, VerdictValue
    from askance.chat import JsonObject
    from askance.evals.judging.labels import Label

DRAWS = 3
"""How often a judge is asked about a pair, to know whether it says the same again."""


REASON = 200
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What people and a judge say of one pair; the texts themselves are left out."""

    group: str
    id: str
    candidate: str
    """sha256 of the candidate, hex, to know the answer of a run by."""
    truth: bool | None
    votes: tuple[bool | None, ...] = ()
    verdicts: tuple[VerdictValue | None, ...] = ()
    """The judge's, one for each draw, None where it is unscored; the first is what counts. None for tied votes."""
    swapped: VerdictValue | None = None
    """What it says with reference and candidate in each other's place."""
    members: tuple[VerdictValue | None, ...] = ()
    """What each member of a panel says."""
    outcome: str = "answered"
    reason: str = ""
    """Of the first draw: the beginning of why it is unscored."""

    @property
    def verdict(self) -> VerdictValue | None:
        """What the judge says."""
        return self.verdicts[0] if self.verdicts else None

    @property
    def says(self) -> bool | None:
        """Whether the judge says that both mean the same: `unclear` does not; None where it is unscored."""
        return None if self.verdict is None else self.verdict == "true"

    def form(self) -> JsonObject:
        """The case as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_form(cls, form: dict[str, Any]) -> Case:
        """The case that `form` stands for."""
        fields: dict[str, Any] = {
            name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for name, value in form.items()
        }
        return cls(**fields)


async def ask_about(
    judge: Judge,
    labels: Sequence[Label],
    *,
    draws: int = DRAWS,
    swaps: bool = True,
    question: str = QUESTION,
    room: Callable[[], int] = lambda: 64,
    told: Callable[[], None] = lambda: None,
) -> list[Case]:
    """What `judge` says of each of `labels`, in their order.

    Args:
        judge: what is asked.
        labels: pairs; of those whose votes tie nothing is asked.
        draws: how often each pair is asked about.
        swaps: whether each is asked once more with its texts in each other's place.
        question: where a pair has none of its own.
        room: how many pairs may be under way by now.
        told: of every pair that is done.
    """

    async def one(label: Label) -> Case:
        return await _case(judge, label, draws=draws, swaps=swaps, question=label.question or question)

    cases: list[Case] = []
    async with aclosing(in_order(one, labels, room=room)) as done:
        async for case in done:
            cases.append(case)
            told()
    return cases


async def _case(judge: Judge, label: Label, *, draws: int, swaps: bool, question: str) -> Case:
    about = Case(
        group=label.group,
        id=label.id,
        candidate=digest_of(label.candidate),
        truth=label.verdict,
        votes=label.votes,
    )
    if label.verdict is None:
        return about
    first, members = await _first(judge, label, question)
    verdicts = [first]
    for draw in range(1, draws):
        with use_draw(draw):
            verdicts.append(await judge.judge(label.reference, label.candidate, question=question))
    swapped = await judge.judge(label.candidate, label.reference, question=question) if swaps else None
    return replace(
        about,
        verdicts=tuple(verdict.value for verdict in verdicts),
        swapped=None if swapped is None else swapped.value,
        members=members,
        outcome=first.outcome,
        reason="" if first.scored else first.reason.partition("\n")[0][:REASON],
    )


async def _first(judge: Judge, label: Label, question: str) -> tuple[Verdict, tuple[VerdictValue | None, ...]]:
    """The verdict that counts, and what each member of a panel says."""
    if not isinstance(judge, Panel):
        return await judge.judge(label.reference, label.candidate, question=question), ()
    said = await judge.vote(label.reference, label.candidate, question=question)
    return said.verdict, tuple(vote.value for vote in said.votes)


def digest_of(text: str) -> str:
    """sha256 of a text, hex."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
