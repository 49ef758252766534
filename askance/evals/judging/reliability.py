"""Whether a judge that wavers wavers rightly: of pairs of which a share of its votes says true, how many are true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from askance import statistics

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.judging.asking import Case
    from askance.statistics import Interval

Votes = Literal["draws", "members"]
"""What votes: several draws of one judge, or the members of a panel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """The pairs of which one share of the votes says true."""

    said: float
    """That share; `unclear` does not say so, and votes that cannot be read are left out."""
    pairs: int
    value: float
    """Share of them that people say are true."""
    interval: Interval | None

    def form(self) -> JsonObject:
        """The point as JSON, its interval as two numbers."""
        limits = None if self.interval is None else [self.interval.low, self.interval.high]
        return {"said": self.said, "pairs": self.pairs, "value": self.value, "interval": limits}


def votes_of(cases: Sequence[Case]) -> Votes | None:
    """What votes on `cases`; None where there is one vote each."""
    if any(len(case.members) > 1 for case in cases):
        return "members"
    return "draws" if any(len(case.verdicts) > 1 for case in cases) else None


def reliability_of(cases: Sequence[Case], *, seed: int = 0) -> tuple[Reliability, ...]:
    """The curve, by share of the votes; empty where there is one vote each.

    Args:
        cases: labelled pairs, judged.
        seed: of the bootstraps of whole groups.
    """
    by = votes_of(cases)
    found: dict[float, list[Case]] = {}
    for case in cases if by is not None else ():
        votes = [each for each in (case.members if by == "members" else case.verdicts) if each is not None]
        if votes and case.truth is not None:
            found.setdefault(votes.count("true") / len(votes), []).append(case)
    return tuple(_point(said, found[said], seed) for said in sorted(found))


def _point(said: float, cases: Sequence[Case], seed: int) -> Reliability:
    values, groups = [float(bool(case.truth)) for case in cases], [case.group for case in cases]
    estimate = statistics.mean_estimate(values, groups, seed=seed, binary=True)
    return Reliability(said=said, pairs=len(cases), value=estimate.value or 0.0, interval=estimate.interval)


def summary_of(cases: Sequence[Case], *, seed: int) -> Mapping[str, JsonObject]:
    """The curve as a card's summary has it: what votes, and its points; nothing where there is one vote each."""
    by = votes_of(cases)
    if by is None:
        return {}
    return {"reliability": {"by": by, "points": [each.form() for each in reliability_of(cases, seed=seed)]}}
