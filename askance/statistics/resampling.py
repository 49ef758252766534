"""Intervals by resampling whole clusters.

Rows that are about the same image are not independent. So whole images are drawn with replacement, each with all of its
rows, and the interval is between two percentiles of what the statistic is on the draws (Efron and Tibshirani, *An
Introduction to the Bootstrap*, 1993, chapters 8 and 13). Percentiles stay within a statistic's range, and need no
jackknife as BCa does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from askance.errors import UsageError
from askance.statistics.clusters import Groups, Key, grouped, places_of
from askance.statistics.draws import resamples
from askance.statistics.values import DRAWS, LEVEL, Interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Row = TypeVar("Row")


def cluster_bootstrap(
    statistic: Callable[[Sequence[Row]], float | None],
    rows: Sequence[Row],
    clusters: Sequence[Key] | None = None,
    *,
    seed: int,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval | None:
    """Interval of any statistic of a set of rows, such as an F1 or an area under a curve.

    `statistic` is called once a draw. Where it has no value on a draw it returns None, and the draw is left out. To
    work on arrays of your own, let the rows be a `range` of places; for figures of sums, `bootstrap_totals` is faster.

    Returns:
        None with fewer than two clusters, or where half of the draws or more have no value.

    Raises:
        UsageError: there are not as many clusters given as rows.
    """
    places = places_of(clusters, n=len(rows))
    if len(places) < 2:
        return None
    figures = [statistic([rows[place] for place in drawn]) for drawn in drawn_places(places, seed=seed, draws=draws)]
    return percentiles(figures, level=level)


def bootstrap_mean(
    values: Sequence[float],
    clusters: Sequence[Key] | None = None,
    *,
    seed: int,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval | None:
    """`cluster_bootstrap` of the mean, by whole arrays: milliseconds for a thousand samples.

    Returns:
        None with fewer than two clusters.

    Raises:
        UsageError: a value is not finite, or there are not as many clusters given as rows.
    """
    groups = grouped(values, clusters)
    return None if len(groups.sums) < 2 else percentiles(resampled_means(groups, seed=seed, draws=draws), level=level)


def resampled_means(groups: Groups, *, seed: int, draws: int) -> npt.NDArray[np.float64]:
    """The mean over rows on each draw of clusters, shape (draws,)."""
    import numpy as np

    chunks = resamples(seed, draws=draws, size=len(groups.sums))
    if groups.single:
        return np.concatenate([groups.sums[places].mean(axis=1) for places in chunks])
    return np.concatenate([groups.sums[places].sum(axis=1) / groups.sizes[places].sum(axis=1) for places in chunks])


def drawn_places(places: Sequence[npt.NDArray[np.int64]], *, seed: int, draws: int) -> Iterator[list[int]]:
    """Places of the rows on each draw of clusters."""
    import numpy as np

    for chunk in resamples(seed, draws=draws, size=len(places)):
        for drawn in chunk:
            clusters: list[int] = drawn.tolist()
            yield np.concatenate([places[cluster] for cluster in clusters]).tolist()


def percentiles(figures: Sequence[float | None] | npt.NDArray[np.float64], *, level: float) -> Interval | None:
    """The interval between the percentiles of `figures` that leaves out equal tails; None and NaN are no values.

    Returns:
        None where half of them or more have no value.

    Raises:
        UsageError: `level` is not between 0 and 1.
    """
    import numpy as np

    if not 0 < level < 1:
        msg = f"A level of {level!r} is not between 0 and 1."
        raise UsageError(msg, hint="Give it as a share, such as 0.95.")
    numbers = np.array([np.nan if figure is None else figure for figure in figures], dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    undefined = len(numbers) - len(known)
    if 2 * undefined >= len(numbers):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(low=low, high=high, level=level, method="cluster bootstrap", undefined=undefined)
