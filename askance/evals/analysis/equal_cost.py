"""Quality against dollars: runs that look with tools beside a fixed chain at the same mean cost.

The runs of the fixed chain (such as those in the contexts `UH`, `V+T` and `T_V`) make a line, ordered by what a sample
costs in the mean at list price as asked. A run that looks is held against that line at its own mean cost: between two
neighbours each sample of the line is worth their weighted mean (linear interpolation). The mean costs are taken as
known, so that intervals are those of the quality alone. Beyond the ends of a line there is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from askance.amounts import money
from askance.chat import canonical_json
from askance.statistics import Comparison, Estimate, compare_paired, holm_adjusted, mean_estimate

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedRun:
    """One run on the samples that all runs have."""

    name: str
    family: str
    """What its line on the drawing is called: runs of one family differ in how much they ask."""
    looks: bool
    """Whether it looks with tools."""
    worths: Sequence[float]
    """What each sample is worth, from 0 to 1."""
    dollars: float | None
    """Mean of a sample, at list price as asked; None where that is not known."""
    uncached: float | None
    """The same as if nothing had been read from a provider's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPoint:
    """One run on the drawing."""

    run: PricedRun
    quality: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualCost:
    """A run that looks, held against a fixed chain at equal dollars."""

    name: str
    family: str
    """Of the fixed chain."""
    dollars: float
    ends: tuple[float, float]
    """The cheapest and the dearest run of the fixed chain, in dollars a sample."""
    comparison: Comparison | None
    """None where the run costs less or more than every run of the fixed chain."""

    def sentence(self, metric: str) -> str:
        """The verdict in plain words."""
        cost = f"{money(self.dollars)} a sample"
        if self.comparison is None:
            range_of_line = " to ".join(dict.fromkeys(map(money, self.ends)))
            return f"{self.name} costs {cost}, and {self.family} {range_of_line}: at equal dollars nothing can be said."
        return f"At {cost}: {self.comparison.sentence(self.name, self.family, metric)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostCurve:
    """Quality of several runs against what they cost."""

    metric: str
    points: tuple[CostPoint, ...]
    """Of the runs whose cost is known, in the order of the runs."""
    unpriced: tuple[str, ...]
    """Names of the runs whose cost is not known."""
    verdicts: tuple[EqualCost, ...]

    def families(self) -> Iterator[tuple[str, tuple[CostPoint, ...]]]:
        """The points of each family, by rising cost."""
        for family in dict.fromkeys(point.run.family for point in self.points):
            own = [point for point in self.points if point.run.family == family]
            yield family, tuple(sorted(own, key=lambda point: point.run.dollars or 0.0))

    def form(self) -> JsonObject:
        """The curve as JSON."""
        return {
            "metric": self.metric,
            "points": [
                {
                    "name": point.run.name,
                    "family": point.run.family,
                    "dollars": point.run.dollars,
                    "uncached": point.run.uncached,
                    "value": point.quality.value,
                    "interval": None if point.quality.interval is None else asdict(point.quality.interval),
                }
                for point in self.points
            ],
            "unpriced": list(self.unpriced),
            "verdicts": [asdict(each) for each in self.verdicts],
        }


def mean_dollars(costs: Sequence[float | None]) -> float | None:
    """The mean of costs; None without any, or where one of them is not known."""
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(costs) else None


_HOW_MUCH = ("context", "calls")
"""Options in which the runs of one family differ: they say how much is asked."""


def families_of(runs: Sequence[Run], looking: Sequence[bool]) -> list[str]:
    """By run, the name of its family: runs that differ only in how much they ask.

    Args:
        runs: of one task.
        looking: by run, whether it looks with tools.
    """
    kinds = ["looking with tools" if looks else "the fixed chain" for looks in looking]
    keys = [
        canonical_json(
            {
                "options": {name: value for name, value in run.options.items() if name not in _HOW_MUCH},
                "models": [form["id"] for _, form in run.roles],
            }
        )
        for run in runs
    ]
    numbers: dict[str, list[str]] = {}
    for kind, key in zip(kinds, keys, strict=True):
        if key not in numbers.setdefault(kind, []):
            numbers[kind].append(key)
    return [
        kind if len(numbers[kind]) == 1 else f"{kind} {numbers[kind].index(key) + 1}"
        for kind, key in zip(kinds, keys, strict=True)
    ]


def cost_curve(runs: Sequence[PricedRun], clusters: Sequence[str], *, metric: str, seed: int = 0) -> CostCurve:
    """The runs by quality and cost, and how those that look compare with fixed chains at equal dollars.

    Args:
        runs: on the same samples.
        clusters: of the samples.
        metric: by which samples are worth so much.
        seed: of the resampling.
    """
    ends = ([0.0] * len(clusters), [1.0] * len(clusters))
    binary = all(worth in {0.0, 1.0} for run in runs for worth in run.worths)
    priced = [run for run in runs if run.dollars is not None]
    lines: dict[str, list[PricedRun]] = {}
    for run in priced:
        if not run.looks:
            lines.setdefault(run.family, []).append(run)
    held = [
        _held_against(run, line, clusters, bounds=ends, seed=seed)
        for run in priced
        if run.looks
        for line in lines.values()
    ]
    adjusted = iter(holm_adjusted([each.comparison for each in held if each.comparison is not None]))
    return CostCurve(
        metric=metric,
        points=tuple(
            CostPoint(
                run=run,
                quality=mean_estimate(run.worths, clusters, binary=binary, bounds=lambda: ends, seed=seed),
            )
            for run in priced
        ),
        unpriced=tuple(run.name for run in runs if run.dollars is None),
        verdicts=tuple(each if each.comparison is None else replace(each, comparison=next(adjusted)) for each in held),
    )


def _held_against(
    run: PricedRun,
    line: Sequence[PricedRun],
    clusters: Sequence[str],
    *,
    bounds: tuple[list[float], list[float]],
    seed: int,
) -> EqualCost:
    """A run against a fixed chain at equal dollars."""
    ordered = sorted(line, key=_dollars)
    dollars, ends = _dollars(run), (_dollars(ordered[0]), _dollars(ordered[-1]))
    comparison = None
    if ends[0] <= dollars <= ends[1]:
        worths = _worths_at(dollars, ordered)
        comparison = compare_paired(run.worths, worths, clusters, seed=seed, bounds=lambda: bounds)
    return EqualCost(name=run.name, family=line[0].family, dollars=dollars, ends=ends, comparison=comparison)


def _worths_at(dollars: float, line: Sequence[PricedRun]) -> list[float]:
    """What each sample of a line is worth where it costs so much: between its two neighbours."""
    dearer = next(place for place, run in enumerate(line) if _dollars(run) >= dollars)
    above, below = line[dearer], line[max(dearer - 1, 0)]
    gap = _dollars(above) - _dollars(below)
    weight = (dollars - _dollars(below)) / gap if gap else 1.0
    return [(1 - weight) * low + weight * high for low, high in zip(below.worths, above.worths, strict=True)]


def _dollars(run: PricedRun) -> float:
    return run.dollars or 0.0
