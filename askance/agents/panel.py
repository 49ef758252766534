"""Several judges, or several draws of one, as one judge: the majority, and how far they agree."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance import statistics
from askance.agents.judge import QUESTION
from askance.agents.judging import Judge, Verdict, canonical_judge
from askance.errors import UsageError
from askance.models import use_draw
from askance.models.scope import scope
from askance.tools import Value

if TYPE_CHECKING:
    from askance.agents.judging import VerdictValue
    from askance.chat import JsonObject
    from askance.statistics import Agreement, Resampling


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelVerdict(Value):
    """What each member of a panel says of one candidate, in the order of the panel."""

    votes: tuple[Verdict, ...]

    @property
    def verdict(self) -> Verdict:
        """The panel's verdict.

        It takes verdicts of more than half of the members, or the candidate is unscored. What more than half of these
        say is the value; where nothing is, as in a tie, it is `unclear`.
        """
        calls = tuple(call for vote in self.votes for call in vote.calls)
        cast: list[VerdictValue] = [vote.value for vote in self.votes if vote.value is not None]
        if 2 * len(cast) <= len(self.votes):
            first = next(vote for vote in self.votes if vote.value is None)
            reason = f"{len(cast)} of {len(self.votes)} judges gave a verdict; another: {first.reason}"
            return Verdict(outcome=first.outcome, reason=reason, calls=calls)
        ((value, most), *_) = Counter(cast).most_common()
        counts = Counter(vote.value or "unscored" for vote in self.votes)
        said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        if 2 * most <= len(cast):
            return Verdict(value="unclear", reason=f"no majority: {said}", calls=calls)
        return Verdict(value=value, reason=said, calls=calls)


class Panel:
    """A judge made of several: each is asked, each in several draws.

    Draws of a model at temperature 0 are mostly equal; give the model a temperature to learn anything from them.

    Args:
        judges: one or more.
        draws: how often each is asked.

    Raises:
        UsageError: there is no judge, or a count of draws below 1.
    """

    def __init__(self, *judges: Judge, draws: int = 1) -> None:
        if not judges or draws < 1:
            raise UsageError(
                f"{len(judges)} judges with {draws} draws each are no panel.", hint="It takes at least one of each."
            )
        self.judges = judges
        self.draws = draws

    async def vote(self, reference: str, candidate: str, *, question: str = QUESTION) -> PanelVerdict:
        """What each member says of `candidate`."""
        first = scope().draw * self.draws  # so that a panel, too, can be drawn several times

        async def one(judge: Judge, draw: int) -> Verdict:
            with use_draw(first + draw):
                return await judge.judge(reference, candidate, question=question)

        members = [one(judge, draw) for judge in self.judges for draw in range(self.draws)]
        return PanelVerdict(votes=tuple(await asyncio.gather(*members)))

    async def judge(self, reference: str, candidate: str, *, question: str = QUESTION) -> Verdict:
        """The verdict of the majority."""
        return (await self.vote(reference, candidate, question=question)).verdict

    def canonical(self) -> JsonObject:
        """Everything that decides its verdicts, as JSON."""
        return {"judge": "panel", "members": [canonical_judge(each) for each in self.judges], "draws": self.draws}

    def __str__(self) -> str:
        members = " + ".join(map(str, self.judges))
        return f"panel of {members}" if self.draws == 1 else f"panel of {members}, {self.draws} draws each"


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAgreement(Value):
    """How far the members of a panel agree over many candidates."""

    alpha: Agreement
    ac1: Agreement
    pairwise: Agreement

    def __iter__(self) -> Iterator[Agreement]:
        return iter((self.alpha, self.ac1, self.pairwise))


def panel_agreement(verdicts: Sequence[PanelVerdict], *, resampling: Resampling | None = None) -> PanelAgreement:
    """Krippendorff's alpha, Gwet's AC₁ and the share of agreeing pairs; who gave no verdict is left out there."""
    votes = [[vote.value for vote in verdict.votes] for verdict in verdicts]
    return PanelAgreement(
        alpha=statistics.krippendorff_alpha(votes, resampling=resampling),
        ac1=statistics.gwet_ac1(votes, resampling=resampling),
        pairwise=statistics.pairwise_agreement(votes, resampling=resampling),
    )


judge_panel = Panel
