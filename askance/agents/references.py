"""One candidate held against several references: each by itself, and whether it says the same as any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.agents.judge import QUESTION
from askance.agents.judging import Verdict
from askance.tools import Value

if TYPE_CHECKING:
    from askance.agents.judging import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencesVerdict(Value):
    """What a judge says of one candidate beside each reference, in the order of the references."""

    each: tuple[Verdict, ...]

    @property
    def any_of(self) -> Verdict:
        """Whether the candidate says the same as one of the references.

        One `true` is enough. Without one, an unscored reference leaves it unscored, since there it might have been
        true; then an unclear one leaves it unclear. References that are blank count for nothing.
        """
        calls = tuple(call for verdict in self.each for call in verdict.calls)
        counted = [verdict for verdict in self.each if verdict.outcome != "skipped"]
        for wanted in ("true", None, "unclear", "false"):
            found = next((verdict for verdict in counted if verdict.value == wanted), None)
            if found is not None:
                return Verdict(value=found.value, reason=found.reason, outcome=found.outcome, calls=calls)
        reason = self.each[0].reason if self.each else "there is no reference to compare with"
        return Verdict(outcome="skipped", reason=reason, calls=calls)

    @property
    def share(self) -> float | None:
        """Of the references with a verdict, the share that the candidate says the same as; None without any."""
        scored = [verdict for verdict in self.each if verdict.scored]
        return sum(verdict.value == "true" for verdict in scored) / len(scored) if scored else None


async def judge_references(
    judge: Judge, references: Sequence[str], candidate: str, *, question: str = QUESTION
) -> ReferencesVerdict:
    """The verdicts on `candidate` beside all of `references`; nobody is asked where there are none."""
    verdicts = await asyncio.gather(*(judge.judge(each, candidate, question=question) for each in references))
    return ReferencesVerdict(each=tuple(verdicts))
