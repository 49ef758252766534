"""The verdict on two systems that answered the same samples: better, worse, or tied at this size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from askance.statistics.paired import Test, holm

if TYPE_CHECKING:
    from askance.statistics.values import Interval

Verdict = Literal["better", "worse", "tied"]

Ground = Literal["compared", "no pairs", "one cluster", "no difference", "no value"]
"""What a verdict rests on; all but `compared` are tied for want of anything that could tell the two apart.

`no difference`: not one sample differs. `no value`: the statistic has none on these samples.
"""

_NAMES: dict[Test, str] = {
    "mcnemar exact": "exact McNemar test",
    "sign flip": "sign-flip test",
    "swap": "swap test",
    "none": "no test",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the samples say of A against B."""

    verdict: Verdict
    """Of A. Not tied only where the test's p is below `alpha` and the interval leaves out 0."""
    ground: Ground
    figure_a: float | None
    figure_b: float | None
    difference: float | None
    """A − B."""
    interval: Interval | None
    """Of the difference, by resampling whole clusters."""
    p: float | None
    """Two-sided; adjusted where the comparison stands in a family."""
    test: Test
    n: int
    """Pairs of samples."""
    n_clusters: int
    discordant: tuple[int, int]
    """Samples on which A is above B, and B above A; (0, 0) for a figure that only a set has."""
    detectable: float | None
    """The true difference that as many samples would show with about `power`; None where they can show none."""
    higher_is_better: bool = True
    alpha: float = 0.05
    power: float = 0.8
    family: int = 1
    """Comparisons among which p was adjusted by Holm's method."""

    def sentence(
        self, name_a: str, name_b: str, metric: str, *, unit: Literal["%", ""] = "%", cluster: str = "image"
    ) -> str:
        """The verdict in plain words; with unit `%` figures are shares, shown in percent and points."""
        if self.difference is None or self.figure_a is None or self.figure_b is None:
            return f"{name_a} and {name_b} cannot be told apart on {metric}: {_WHY[self.ground]}."
        figures = f"{_figure(self.figure_a, unit)} against {_figure(self.figure_b, unit)}"
        size = _size(self.n, self.n_clusters, cluster)
        evidence = f"{figures}, a difference of {_change(self.difference, unit)}{self._evidence(unit)}, over {size}"
        if self.verdict != "tied":
            return f"{name_a} is {self.verdict} than {name_b} on {metric}: {evidence}."
        return f"{name_a} and {name_b} are tied on {metric} at this size: {evidence}. {self._reach(unit)}"

    def _evidence(self, unit: str) -> str:
        if self.ground != "compared":
            return f" ({_WHY[self.ground]})"
        among = f", adjusted for {self.family} comparisons" if self.family > 1 else ""
        test = "" if self.p is None else f"{_NAMES[self.test]}, p {_p(self.p)}{among}"
        return f" ({'; '.join(part for part in (_limits(self.interval, unit), test) if part)})"

    def _reach(self, unit: str) -> str:
        if self.detectable is None:
            return "So few samples, or such, can show no difference at all."
        least = _change(self.detectable, unit).removeprefix("+")
        often = f"about {100 * self.power:.0f} % of cases"
        return f"So many samples would show a true difference of {least} or more in {often}."


_WHY: dict[Ground, str] = {
    "compared": "compared",
    "no pairs": "there is no sample that both answered",
    "one cluster": "all samples are of one cluster, so that nothing is known of chance",
    "no difference": "not one sample differs",
    "no value": "the figure has no value on these samples",
}


def holm_adjusted(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons of one family with their p adjusted by Holm's method, and the verdicts that then hold.

    Those without a p count in the family as 1. Intervals stay what they are, each for itself.
    """
    adjusted = holm([1.0 if comparison.p is None else comparison.p for comparison in comparisons])
    return tuple(
        decided(replace(comparison, p=None if comparison.p is None else p, family=len(comparisons)))
        for comparison, p in zip(comparisons, adjusted, strict=True)
    )


def decided(comparison: Comparison) -> Comparison:
    """With the verdict that its p and its interval give."""
    p, interval = comparison.p, comparison.interval
    if p is None or interval is None or p >= comparison.alpha or 0 in interval:
        return replace(comparison, verdict="tied")
    above = interval.low > 0
    return replace(comparison, verdict="better" if above is comparison.higher_is_better else "worse")


def _figure(value: float, unit: str) -> str:
    return f"{100 * value:.2f} %" if unit else f"{value:.3f}"


def _change(value: float, unit: str) -> str:
    return f"{100 * value:+.2f} points" if unit else f"{value:+.3f}"


def _limits(interval: Interval | None, unit: str) -> str:
    if interval is None:
        return ""
    low, high = (_change(limit, unit).removesuffix(" points") for limit in (interval.low, interval.high))
    return f"{100 * interval.level:.0f} % interval {low} to {high}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _size(n: int, n_clusters: int, cluster: str) -> str:
    samples = f"{n:,} sample" + "s" * (n != 1)
    return samples if n == n_clusters else f"{samples} of {n_clusters:,} {cluster}" + "s" * (n_clusters != 1)
