"""Two systems compared on the same samples: by their means, by a statistic of a set, or by a figure of sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from askance.statistics.clusters import Key, grouped, places_of
from askance.statistics.comparison import Comparison, Ground, decided
from askance.statistics.paired import (
    Test,
    check_paired,
    difference_of,
    differences_of,
    mcnemar_exact,
    normal_detectable,
    paired_cluster_bootstrap,
    paired_interval,
    paired_statistics,
    sign_flip,
    smallest_detectable_difference,
    swap_test,
)
from askance.statistics.resampling import percentiles
from askance.statistics.totals import cluster_sums, drawn_totals, swapped_differences
from askance.statistics.values import DRAWS, Interval

if TYPE_CHECKING:
    from askance.statistics.totals import Figure, Floats

Row = TypeVar("Row")


def compare_paired(
    a: Sequence[float],
    b: Sequence[float],
    clusters: Sequence[Key] | None = None,
    *,
    seed: int,
    binary: bool = False,
    higher_is_better: bool = True,
    draws: int = DRAWS,
    alpha: float = 0.05,
) -> Comparison:
    """Compare the means of `a` and `b`, two systems' scores of the same samples in the same order.

    McNemar's exact test where scores are 0 or 1 (`binary`) and no two samples share a cluster, otherwise the sign-flip
    test by cluster; the interval is the paired cluster bootstrap's.

    Raises:
        UsageError: the two are not equally long, a score is not finite, or clusters and rows differ in number.
    """
    differences = differences_of(a, b)
    groups = grouped(differences, clusters)
    above, below = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    exact = binary and groups.single
    seen = _Seen(
        figure_a=math.fsum(a) / len(a) if a else None,
        figure_b=math.fsum(b) / len(b) if b else None,
        difference=groups.mean if differences else None,
        interval=paired_cluster_bootstrap(a, b, clusters, seed=seed, draws=draws, level=1 - alpha),
        p=mcnemar_exact(above, below) if exact else sign_flip(differences, clusters, seed=seed),
        test="mcnemar exact" if exact else "sign flip",
        n=len(differences),
        n_clusters=len(groups.sums),
        discordant=(above, below),
        detectable=smallest_detectable_difference(differences, clusters, binary=binary, alpha=alpha),
        same=not above and not below,
    )
    return _judged(seen, higher_is_better=higher_is_better, alpha=alpha)


def compare_statistics(
    statistic: Callable[[Sequence[Row]], float | None],
    a: Sequence[Row],
    b: Sequence[Row],
    *,
    seed: int,
    clusters: Sequence[Key] | None = None,
    higher_is_better: bool = True,
    draws: int = DRAWS,
) -> Comparison:
    """Compare a figure that only a set of rows has, such as an F1, at a level of 0.05.

    Rows of the two systems are swapped cluster by cluster for the test, and resampled together for the interval;
    `statistic` is called four times a draw. `compare_totals` does the same for figures of sums, much faster.

    Raises:
        UsageError: the two are not equally long, or clusters and rows differ in number.
    """
    check_paired(a, b)
    n_clusters = len(places_of(clusters, n=len(a)))
    difference = difference_of(statistic, a, b) if a else None
    enough = difference is not None and n_clusters > 1
    figures = paired_statistics(statistic, a, b, clusters=clusters, seed=seed, draws=draws) if enough else []
    seen = _Seen(
        figure_a=statistic(a) if a else None,
        figure_b=statistic(b) if a else None,
        difference=difference,
        interval=paired_interval(figures),
        p=swap_test(statistic, a, b, clusters=clusters, seed=seed, draws=draws) if enough else None,
        test="swap",
        n=len(a),
        n_clusters=n_clusters,
        discordant=(0, 0),
        detectable=_detectable([figure for figure in figures if figure is not None]),
        same=all(left == right for left, right in zip(a, b, strict=True)),
    )
    return _judged(seen, higher_is_better=higher_is_better, alpha=0.05)


def compare_totals(
    figure: Figure,
    a: Floats | Sequence[Sequence[float]],
    b: Floats | Sequence[Sequence[float]],
    *,
    seed: int,
    clusters: Sequence[Key] | None = None,
    higher_is_better: bool = True,
    draws: int = DRAWS,
) -> Comparison:
    """`compare_statistics` for a figure of the sums of rows, by whole arrays.

    Raises:
        UsageError: the two are not equally long, or clusters and rows differ in number.
    """
    import numpy as np

    check_paired(range(len(a)), range(len(b)))
    left, right = cluster_sums(a, clusters), cluster_sums(b, clusters)
    figure_a, figure_b = (float(figure(sums.sum(axis=0))) for sums in (left, right))
    difference = None if math.isnan(figure_a - figure_b) else figure_a - figure_b
    enough = difference is not None and len(left) > 1
    figures = np.zeros(0)
    if enough:
        drawn_a, drawn_b = (drawn_totals(sums, seed=seed, draws=draws) for sums in (left, right))
        figures = figure(drawn_a) - figure(drawn_b)
    swapped = swapped_differences(figure, left, right, seed=seed, draws=draws) if enough else figures
    bar = abs(figure_a - figure_b) * (1 - 1e-9)
    seen = _Seen(
        figure_a=None if math.isnan(figure_a) else figure_a,
        figure_b=None if math.isnan(figure_b) else figure_b,
        difference=difference,
        interval=percentiles(figures, level=0.95),
        p=(1 + int((~(abs(swapped) < bar)).sum())) / (1 + draws),
        test="swap",
        n=len(a),
        n_clusters=len(left),
        discordant=(0, 0),
        detectable=_detectable(figures[~np.isnan(figures)].tolist()),
        same=bool((np.asarray(a) == np.asarray(b)).all()),
    )
    return _judged(seen, higher_is_better=higher_is_better, alpha=0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a comparison is judged by."""

    figure_a: float | None
    figure_b: float | None
    difference: float | None
    interval: Interval | None
    p: float | None
    test: Test
    n: int
    n_clusters: int
    discordant: tuple[int, int]
    detectable: float | None
    same: bool


def _judged(seen: _Seen, *, higher_is_better: bool, alpha: float) -> Comparison:
    ground = _ground(seen)
    tested = ground in ("compared", "no difference")
    return decided(
        Comparison(
            verdict="tied",
            ground=ground,
            figure_a=seen.figure_a,
            figure_b=seen.figure_b,
            difference=seen.difference,
            interval=seen.interval if tested else None,
            p=seen.p if tested else None,
            test=seen.test if tested else "none",
            n=seen.n,
            n_clusters=seen.n_clusters,
            discordant=seen.discordant,
            detectable=seen.detectable,
            higher_is_better=higher_is_better,
            alpha=alpha,
        )
    )


def _ground(seen: _Seen) -> Ground:
    if not seen.n:
        return "no pairs"
    if seen.difference is None:
        return "no value"
    if seen.n_clusters == 1:
        return "one cluster"
    return "no difference" if seen.same else "compared"


def _detectable(figures: Sequence[float]) -> float | None:
    """From the spread of a resampled difference."""
    spread = grouped(figures, None).sums
    error = float(spread.std()) if len(spread) > 1 else 0.0
    return normal_detectable(error) if error else None
