"""The verdict on two systems that answered the same samples: better, worse, or tied at this size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from askance.statistics.arguments import check_binary
from askance.statistics.clusters import ClusterKey, cluster_rows, cluster_sums, mean_over_strata, sum_by_cluster
from askance.statistics.estimate import DRAWS, Interval
from askance.statistics.paired_tests import (
    Test,
    check_equal_length,
    holm,
    mcnemar_exact,
    normal_detectable,
    paired_cluster_bootstrap,
    paired_differences,
    paired_score_interval,
    paired_statistics,
    rows_of_strata,
    sign_flip,
    smallest_detectable_difference,
    statistic_difference,
    swap_test,
)
from askance.statistics.resampling import (
    mean_figure,
    percentile_interval,
    resampled_sums,
    swapped_differences,
)
from askance.statistics.unseen import Bounds, FigureOfSums, Table, is_empty, unseen_rows, unseen_totals

if TYPE_CHECKING:
    from askance.statistics.clusters import Floats

Row = TypeVar("Row")

Verdict = Literal["better", "worse", "tied", "undecided"]
"""`undecided`: it would be another one in the worst or the best case of the answers that are lacking; see `settled`."""

Ground = Literal["compared", "no pairs", "one cluster", "no difference", "no spread", "no value"]
"""Why a verdict is what it is: all but `compared` are tied because nothing could tell the two apart.

`no difference`: no sample differs. `no spread`: all differ alike, and nothing bounds what others could hold.
`no value`: the statistic is not defined on these samples.
"""

_NAMES: dict[Test, str] = {
    "mcnemar exact": "exact McNemar test",
    "sign flip": "sign-flip test",
    "swap": "swap test",
    "none": "no test",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of comparing A with B on the same samples."""

    verdict: Verdict = "tied"
    """For A. `better` or `worse` only where p is below `alpha` and the interval excludes 0."""
    ground: Ground = "compared"
    figure_a: float | None
    figure_b: float | None
    difference: float | None
    """A − B."""
    interval: Interval | None
    """Of the difference: Tango's, or from resampled whole clusters; where they all agree, from what others could be."""
    p: float | None
    """Two-sided; adjusted where the comparison belongs to a family."""
    test: Test
    n: int
    """Pairs of samples."""
    n_clusters: int
    discordant: tuple[int, int]
    """Numbers of samples on which A is above B, and B above A; (0, 0) for a figure of whole sets, such as an F1."""
    detectable: float | None
    """The smallest true difference that so many samples show with about `power`; None where they can show none."""
    higher_is_better: bool = True
    alpha: float = 0.05
    power: float = 0.8
    family: int = 1
    """Number of comparisons for which p was adjusted by Holm's method."""

    def with_lower_better(self) -> Comparison:
        """The same of a figure of which lower values are better."""
        return with_verdict(replace(self, higher_is_better=False))

    def sentence(
        self, name_a: str, name_b: str, metric: str, *, unit: Literal["%", ""] = "%", cluster: str = "image"
    ) -> str:
        """The verdict in plain words; with unit `%` figures are shares, shown in percent and points."""
        if self.difference is None or self.figure_a is None or self.figure_b is None:
            return f"{name_a} and {name_b} cannot be told apart on {metric}: {_WHY[self.ground]}."
        figures = f"{_figure(self.figure_a, unit)} against {_figure(self.figure_b, unit)}"
        size = _size(self.n, self.n_clusters, cluster)
        evidence = f"{figures}, a difference of {_change(self.difference, unit)}{self._evidence(unit)}, over {size}"
        if self.verdict == "undecided":
            return f"Which of {name_a} and {name_b} is better on {metric} is not decided: {evidence}."
        if self.verdict != "tied":
            return f"{name_a} is {self.verdict} than {name_b} on {metric}: {evidence}."
        return f"{name_a} and {name_b} are tied on {metric} at this size: {evidence}. {self._power_sentence(unit)}"

    def _evidence(self, unit: str) -> str:
        why = "" if self.ground == "compared" else _WHY[self.ground]
        among = f", adjusted for {self.family} comparisons" if self.family > 1 else ""
        test = "" if self.p is None or self.ground == "no difference" else f"{_NAMES[self.test]}, p {_p(self.p)}{among}"
        return f" ({'; '.join(filter(None, (why, _limits(self.interval, unit), test)))})"

    def _power_sentence(self, unit: str) -> str:
        if self.detectable is None:
            return "These samples can show no difference at all."
        if unit == "%" and self.detectable >= 1:
            return "These samples would show no true difference of less than 100 points."
        least = _change(self.detectable, unit).removeprefix("+")
        often = f"about {100 * self.power:.0f} % of cases"
        return f"So many samples would show a true difference of {least} or more in {often}."


_WHY: dict[Ground, str] = {
    "compared": "compared",
    "no pairs": "there is no sample that both answered",
    "one cluster": "all samples, or all of one stratum, are of one cluster, so that nothing is known of chance",
    "no difference": "not one sample differs",
    "no spread": "all samples differ alike, so that nothing is known of chance",
    "no value": "the figure has no value on these samples",
}


def compare_paired(
    a: Sequence[float],
    b: Sequence[float],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
    strata: Sequence[ClusterKey] | None = None,
    binary: bool = False,
    bounds: Bounds[float] | None = None,
    draws: int = DRAWS,
) -> Comparison:
    """Compare the means of `a` and `b`, two systems' scores of the same samples, at a level of 0.05.

    Where scores are 0 or 1 (`binary`) and no two samples share a cluster, McNemar's exact test with Tango's score
    interval; otherwise the sign-flip test by cluster with the paired cluster bootstrap. With `strata` the means are
    plain means of theirs, and the test is the sign-flip test. Where all clusters agree on other scores, the interval is
    that of clusters that were not seen, which needs `bounds`: what each sample could score at least and at most.

    Raises:
        UsageError: the two are not equally long, a score or a bound is not finite, a score is neither 0 nor 1 though
            `binary`, or clusters or strata and rows differ in number.
    """
    differences = paired_differences(a, b)
    if binary:
        check_binary([*a, *b], hint="Leave out `binary` where samples can be partly right.")
    groups = sum_by_cluster(differences, clusters, strata)
    above, below = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    exact = binary and groups.one_row_each and len(groups.strata) == 1
    rows = rows_of_strata(cluster_rows(clusters, strata, n=len(a)))
    comparison = Comparison(
        figure_a=mean_over_strata(_mean, a, rows),
        figure_b=mean_over_strata(_mean, b, rows),
        difference=groups.mean if differences else None,
        interval=paired_score_interval(above, below, len(a))
        if exact and differences
        else paired_cluster_bootstrap(
            a, b, clusters, seed=seed, strata=strata, bounds=(lambda: _shares(a)) if binary else bounds, draws=draws
        ),
        p=mcnemar_exact(above, below) if exact else sign_flip(differences, clusters, seed=seed, strata=strata),
        test="mcnemar exact" if exact else "sign flip",
        n=len(differences),
        n_clusters=len(groups.sums),
        discordant=(above, below),
        detectable=smallest_detectable_difference(differences, clusters, strata=strata, binary=binary),
    )
    return _with_ground(
        comparison,
        same=not above and not below,
        alone=min(groups.strata) == 1,
        unbounded=comparison.interval is None,
    )


def _shares(rows: Sequence[float]) -> tuple[list[float], list[float]]:
    """Nothing right, and everything right."""
    return [0.0] * len(rows), [1.0] * len(rows)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def compare_statistics(
    statistic: Callable[[Sequence[Row]], float | None],
    a: Sequence[Row],
    b: Sequence[Row],
    *,
    seed: int,
    clusters: Sequence[ClusterKey] | None = None,
    strata: Sequence[ClusterKey] | None = None,
    bounds: Bounds[Row] | None = None,
    draws: int = DRAWS,
) -> Comparison:
    """Compare a figure of whole sets of rows, such as an F1, at a level of 0.05.

    Rows of the two systems are swapped cluster by cluster for the test, and resampled together for the interval;
    `statistic` is called four times a draw, for each stratum if there are any. `compare_totals` does the same for
    figures of sums, much faster. Where all draws give one difference, the interval is that of clusters that were not
    seen, which needs `bounds`: the rows as they would be at either end of the scale.

    Raises:
        UsageError: the two are not equally long, or clusters or strata and rows differ in number.
    """
    check_equal_length(a, b)
    indices = cluster_rows(clusters, strata, n=len(a))
    rows = rows_of_strata(indices)
    difference = statistic_difference(statistic, a, b, rows=rows) if a else None
    alone = min(map(len, indices)) == 1
    enough = difference is not None and not alone
    figures: list[float | None] = []
    p = None
    if enough:
        figures = paired_statistics(statistic, a, b, clusters=clusters, strata=strata, seed=seed, draws=draws)
        p = swap_test(statistic, a, b, clusters=clusters, strata=strata, seed=seed, draws=draws)
    interval = percentile_interval(figures, level=0.95)
    agree = is_empty(interval)
    if agree:
        ends = None if bounds is None else bounds()
        interval = ends and _unseen_statistics(statistic, (a, b), ends, clusters=clusters, strata=strata)
    comparison = Comparison(
        figure_a=mean_over_strata(statistic, a, rows) if a else None,
        figure_b=mean_over_strata(statistic, b, rows) if a else None,
        difference=difference,
        interval=interval,
        p=p,
        test="swap",
        n=len(a),
        n_clusters=sum(map(len, indices)),
        discordant=(0, 0),
        detectable=_detectable([figure for figure in figures if figure is not None]),
    )
    same = all(left == right for left, right in zip(a, b, strict=True))
    return _with_ground(comparison, same=same, alone=alone, unbounded=agree and interval is None)


def compare_totals(
    figure: FigureOfSums,
    a: Table,
    b: Table,
    *,
    seed: int,
    clusters: Sequence[ClusterKey] | None = None,
    strata: Sequence[ClusterKey] | None = None,
    bounds: Callable[[], tuple[Table, Table] | None] | None = None,
    draws: int = DRAWS,
) -> Comparison:
    """`compare_statistics` for a figure of the sums of rows, computed on whole arrays.

    Raises:
        UsageError: the two are not equally long, or clusters or strata and rows differ in number.
    """
    import numpy as np

    check_equal_length(range(len(a)), range(len(b)))
    left, right = cluster_sums(a, clusters, strata), cluster_sums(b, clusters, strata)
    figure_a, figure_b = (
        float(mean_figure(figure, [stratum.sum(axis=0) for stratum in sums])) for sums in (left, right)
    )
    difference = None if math.isnan(figure_a - figure_b) else figure_a - figure_b
    alone = min(map(len, left)) == 1
    enough = difference is not None and not alone
    figures = np.zeros(0)
    if enough:
        drawn_a, drawn_b = (mean_figure(figure, resampled_sums(sums, seed=seed, draws=draws)) for sums in (left, right))
        figures = drawn_a - drawn_b
    swapped = swapped_differences(figure, left, right, seed=seed, draws=draws) if enough else figures
    threshold = abs(figure_a - figure_b) * (1 - 1e-9)
    interval = percentile_interval(figures, level=0.95)
    agree = is_empty(interval)
    if agree:
        ends = None if bounds is None else bounds()
        interval = ends and _unseen_totals(figure, (a, b), ends, clusters=clusters, strata=strata)
    comparison = Comparison(
        figure_a=None if math.isnan(figure_a) else figure_a,
        figure_b=None if math.isnan(figure_b) else figure_b,
        difference=difference,
        interval=interval,
        p=(1 + int((~(abs(swapped) < threshold)).sum())) / (1 + draws),
        test="swap",
        n=len(a),
        n_clusters=sum(map(len, left)),
        discordant=(0, 0),
        detectable=_detectable(figures[~np.isnan(figures)].tolist()),
    )
    same = bool((np.asarray(a) == np.asarray(b)).all())
    return _with_ground(comparison, same=same, alone=alone, unbounded=agree and interval is None)


def _unseen_totals(
    figure: FigureOfSums,
    sides: tuple[Table, Table],
    ends: tuple[Table, Table],
    *,
    clusters: Sequence[ClusterKey] | None,
    strata: Sequence[ClusterKey] | None,
) -> Interval | None:
    """`unseen_totals` of the difference between two systems."""
    import numpy as np

    def difference(sums: Floats) -> Floats:
        columns = sums.shape[-1] // 2
        return figure(sums[..., :columns]) - figure(sums[..., columns:])

    # What was not seen may be wrong in the one system and right in the other, or the other way round.
    rows, low, high = (np.hstack([np.asarray(side) for side in pair]) for pair in (sides, ends, ends[::-1]))
    return unseen_totals(difference, rows, (low, high), clusters=clusters, strata=strata, level=0.95)


def _unseen_statistics(
    statistic: Callable[[Sequence[Row]], float | None],
    sides: tuple[Sequence[Row], Sequence[Row]],
    ends: tuple[Sequence[Row], Sequence[Row]],
    *,
    clusters: Sequence[ClusterKey] | None,
    strata: Sequence[ClusterKey] | None,
) -> Interval | None:
    """`unseen_rows` of the difference between two systems."""

    def difference(pairs: Sequence[tuple[Row, Row]]) -> float | None:
        one, other = statistic([pair[0] for pair in pairs]), statistic([pair[1] for pair in pairs])
        return None if one is None or other is None else one - other

    rows, low, high = ([*zip(*pair, strict=True)] for pair in (sides, ends, ends[::-1]))
    return unseen_rows(difference, rows, (low, high), clusters=clusters, strata=strata, level=0.95)


def _with_ground(comparison: Comparison, *, same: bool, alone: bool, unbounded: bool) -> Comparison:
    """The comparison with its ground and verdict, and without p and interval where there is nothing to test.

    Args:
        comparison: without ground and verdict.
        same: whether no sample differs.
        alone: whether there is one cluster only, or one in a stratum.
        unbounded: whether all clusters differ alike, and nothing bounds what others could hold.
    """
    ground = _ground(comparison, same=same, alone=alone, unbounded=unbounded)
    if ground in ("compared", "no difference", "no spread"):
        return with_verdict(replace(comparison, ground=ground))
    return replace(comparison, ground=ground, interval=None, p=None, test="none")


def _ground(comparison: Comparison, *, same: bool, alone: bool, unbounded: bool) -> Ground:
    if not comparison.n:
        return "no pairs"
    if comparison.difference is None:
        return "no value"
    if alone:
        return "one cluster"
    if same:
        return "no difference"
    return "no spread" if unbounded else "compared"


def _detectable(figures: Sequence[float]) -> float | None:
    """The smallest detectable difference, from the spread of the resampled difference."""
    spread = sum_by_cluster(figures, None).sums
    error = float(spread.std()) if len(spread) > 1 else 0.0
    return normal_detectable(error) if error else None


def holm_adjusted(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons of one family with p adjusted by Holm's method, and the verdicts that follow.

    A comparison without a p counts as p = 1. Intervals are not adjusted.
    """
    adjusted = holm([1.0 if comparison.p is None else comparison.p for comparison in comparisons])
    return tuple(
        with_verdict(replace(comparison, p=None if comparison.p is None else p, family=len(comparisons)))
        for comparison, p in zip(comparisons, adjusted, strict=True)
    )


def settled(comparison: Comparison, cases: Sequence[Comparison]) -> Comparison:
    """The comparison, undecided where the verdict is another one in a case, such as the worst and the best."""
    alike = all(case.verdict == comparison.verdict for case in cases)
    return comparison if alike else replace(comparison, verdict="undecided")


def with_verdict(comparison: Comparison) -> Comparison:
    """The comparison with the verdict that follows from its p and its interval."""
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
