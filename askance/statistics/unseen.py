"""Intervals where all clusters agree, by pseudo-observations.

Resampling clusters that agree gives the same figure again and again, and an interval without width. Yet clusters of
another kind, of which none is among the `n` seen, may be as frequent as the upper limit of Wilson's interval for 0 of
`n`: z² / (n + z²). That is the share of z² clusters (3.84 at 95 %) that are added to them. So the interval reaches from
the figure with z² pseudo-observations at the one end of the scale to that with as many at the other, as in Agresti and
Coull (1998, *The American Statistician* 52:119-126). For right-or-wrong answers this is Wilson's interval (1927), and
for their paired difference Tango's (1998), both where all agree. Any other score needs bounds, and has no interval
without them. Columns of counts are then weighted counts, whose figures take fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from askance.statistics.arguments import finite_array
from askance.statistics.clusters import cluster_rows, cluster_sums, mean_over_strata
from askance.statistics.estimate import Interval, two_sided_z

if TYPE_CHECKING:
    from askance.statistics.clusters import ClusterKey, Floats

Row = TypeVar("Row")

Bounds: TypeAlias = "Callable[[], tuple[Sequence[Row], Sequence[Row]] | None]"
"""Gives the rows as they would be at one end of the scale and at the other; None where they have no bounds.

It is called only where all clusters agree.
"""

FigureOfSums: TypeAlias = "Callable[[Floats], Floats]"
"""From sums of shape (…, columns) to figures of shape (…); NaN where there is none."""

Table: TypeAlias = "Floats | Sequence[Sequence[float]]"
"""Rows of numbers to be summed."""

_ROUNDING_ERROR = 1e-9
"""Largest width, relative to its limits, of an interval that has none."""


def is_empty(interval: Interval | None) -> bool:
    """Whether an interval has no width."""
    if interval is None:
        return False
    return interval.width <= _ROUNDING_ERROR * max(1.0, abs(interval.low), abs(interval.high))


def unseen_mean(
    values: Sequence[float],
    ends: tuple[Sequence[float], Sequence[float]],
    *,
    clusters: Sequence[ClusterKey] | None = None,
    strata: Sequence[ClusterKey] | None = None,
    level: float,
) -> Interval | None:
    """`unseen_totals` of a mean; None also where a value lies outside its bounds, so that they are none."""
    import numpy as np

    least, most = np.minimum(*ends), np.maximum(*ends)
    slack = _ROUNDING_ERROR * np.maximum(1.0, abs(most))
    if ((np.asarray(values) < least - slack) | (np.asarray(values) > most + slack)).any():
        return None
    ones = np.ones(len(values))
    rows, *bounds = (np.column_stack([column, ones]) for column in (values, *ends))
    low, high = bounds
    return unseen_totals(
        lambda sums: sums[..., 0] / sums[..., 1], rows, (low, high), clusters=clusters, strata=strata, level=level
    )


def difference_bounds(
    a: Sequence[float], b: Sequence[float], ends: tuple[Sequence[float], Sequence[float]] | None
) -> tuple[list[float], list[float]] | None:
    """The least and the largest difference of each pair; None without bounds, or where a score lies outside of them.

    Raises:
        UsageError: a bound is not finite.
    """
    if ends is None:
        return None
    pairs = [*zip(*(finite_array(end).tolist() for end in ends), strict=True)]
    least, most = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    if not all(low <= score <= high for side in (a, b) for low, score, high in zip(least, side, most, strict=True)):
        return None
    widths = [high - low for low, high in zip(least, most, strict=True)]
    return [-width for width in widths], widths


def unseen_totals(
    figure: FigureOfSums,
    rows: Table,
    ends: tuple[Table, Table],
    *,
    clusters: Sequence[ClusterKey] | None = None,
    strata: Sequence[ClusterKey] | None = None,
    level: float,
) -> Interval | None:
    """The interval of a figure of the sums of rows.

    Args:
        figure: of sums.
        rows: seen.
        ends: the same rows at one end of the scale and at the other.
        clusters: of the rows.
        strata: of the rows.
        level: of the interval.

    Returns:
        None where a stratum has a single cluster, or the figure no value.
    """
    sums = cluster_sums(rows, clusters, strata)
    if min(map(len, sums)) < 2:
        return None
    weight = two_sided_z(level) ** 2 / sum(map(len, sums))
    totals = [stratum.sum(axis=0) for stratum in sums]
    figures = [_plain_mean(figure, totals)]
    for end in ends:
        more = [stratum.sum(axis=0) for stratum in cluster_sums(end, clusters, strata)]
        figures.append(_plain_mean(figure, [own + weight * new for own, new in zip(totals, more, strict=True)]))
    return _between(figures, level=level)


def _plain_mean(figure: FigureOfSums, strata: Sequence[Floats]) -> float:
    return math.fsum(float(figure(sums)) for sums in strata) / len(strata)


def unseen_rows(
    statistic: Callable[[Sequence[Row]], float | None],
    rows: Sequence[Row],
    ends: tuple[Sequence[Row], Sequence[Row]],
    *,
    clusters: Sequence[ClusterKey] | None = None,
    strata: Sequence[ClusterKey] | None = None,
    level: float,
) -> Interval | None:
    """The interval of any statistic of rows, which are added as whole clusters: four at 95 %.

    Args:
        statistic: of rows.
        rows: seen.
        ends: the same rows at either end of the scale.
        clusters: of the rows.
        strata: of the rows.
        level: of the interval.

    Returns:
        None where a stratum has a single cluster, or the statistic no value.
    """
    indices = cluster_rows(clusters, strata, n=len(rows))
    if min(map(len, indices)) < 2:
        return None
    more = math.ceil(two_sided_z(level) ** 2)
    own = [[index for cluster in stratum for index in cluster.tolist()] for stratum in indices]
    # Of clusters that lie evenly over the stratum.
    added = [
        [index for place in range(more) for index in stratum[len(stratum) * place // more].tolist()]
        for stratum in indices
    ]
    figures = [mean_over_strata(statistic, rows, own)]
    for end in ends:
        both = [*rows, *end]
        drawn = [[*ids, *(len(rows) + index for index in new)] for ids, new in zip(own, added, strict=True)]
        figures.append(mean_over_strata(statistic, both, drawn))
    return _between([math.nan if figure is None else figure for figure in figures], level=level)


def _between(figures: Sequence[float], *, level: float) -> Interval | None:
    if not all(map(math.isfinite, figures)):
        return None
    interval = Interval(low=min(figures), high=max(figures), level=level, method="unseen clusters")
    return None if is_empty(interval) else interval
