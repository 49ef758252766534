"""Bootstrap intervals, by resampling whole clusters.

Rows about the same image are not independent. So whole images are drawn with replacement, each with all of its rows,
and the interval lies between two percentiles of the statistic on the draws (Efron and Tibshirani, *An Introduction to
the Bootstrap*, 1993, chapters 8 and 13). Percentiles stay within the range of a statistic and, unlike BCa, need no
jackknife.

Draws are the same on every machine and with every release of NumPy. NumPy keeps the raw output of a bit generator fixed
(NEP 19), but not what `Generator` makes of it. So raw words are drawn and turned into indices and signs here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from askance.errors import UsageError
from askance.statistics.clusters import ClusterKey, ClusterSums, cluster_codes, cluster_rows, sum_by_cluster
from askance.statistics.estimate import DRAWS, LEVEL, Interval, check_level

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Indices = npt.NDArray[np.int32]

    FigureOfSums = Callable[[Floats], Floats]
    """From sums of shape (…, columns) to figures of shape (…); NaN where there is none."""

Row = TypeVar("Row")

_MAX_CACHED_COUNTS = 2_500_000
"""Most counts that are cached for the next figure: 20 MB."""
_CHUNK = 250_000
"""Numbers drawn at once: 2 MB of words, 1 MB of indices."""
_MAX_CACHED_INDICES = 2_500_000
"""Most indices that are cached for the next figure: 10 MB."""


def cluster_bootstrap(
    statistic: Callable[[Sequence[Row]], float | None],
    rows: Sequence[Row],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval | None:
    """Interval of any statistic of a set of rows, such as an F1 or an area under a curve.

    `statistic` is called once a draw. Where it has no value on a draw it returns None, and the draw is left out. To
    work on arrays of your own, let the rows be a `range` of indices; for figures of sums, `bootstrap_totals` is faster.

    Returns:
        None with fewer than two clusters, or where the statistic is undefined on half of the draws or more.

    Raises:
        UsageError: clusters and rows differ in number.
    """
    indices = cluster_rows(clusters, n=len(rows))
    if len(indices) < 2:
        return None
    figures = [statistic([rows[index] for index in drawn]) for drawn in resampled_rows(indices, seed=seed, draws=draws)]
    return percentile_interval(figures, level=level)


def bootstrap_mean(
    values: Sequence[float],
    clusters: Sequence[ClusterKey] | None = None,
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
    groups = sum_by_cluster(values, clusters)
    return (
        None
        if len(groups.sums) < 2
        else percentile_interval(resampled_means(groups, seed=seed, draws=draws), level=level)
    )


def bootstrap_totals(
    figure: FigureOfSums,
    rows: Floats | Sequence[Sequence[float]],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval | None:
    """Interval of a figure of the sums of `rows`, by drawing whole clusters.

    Returns:
        None with fewer than two clusters, or where the figure is undefined on half of the draws or more.

    Raises:
        UsageError: clusters and rows differ in number.
    """
    sums = cluster_sums(rows, clusters)
    if len(sums) < 2:
        return None
    return percentile_interval(figure(resampled_sums(sums, seed=seed, draws=draws)), level=level)


def percentile_interval(figures: Sequence[float | None] | npt.NDArray[np.float64], *, level: float) -> Interval | None:
    """The interval between the percentiles of `figures` with equal tails; None and NaN are left out.

    Returns:
        None where half of them or more have no value.

    Raises:
        UsageError: `level` is not between 0 and 1.
    """
    import numpy as np

    check_level(level)
    numbers = np.array([np.nan if figure is None else figure for figure in figures], dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    undefined = len(numbers) - len(known)
    if 2 * undefined >= len(numbers):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(low=low, high=high, level=level, method="cluster bootstrap", undefined=undefined)


def resampled_indices(seed: int, *, draws: int, size: int) -> Iterator[Indices]:
    """Random indices below `size`, in chunks of shape (some draws, `size`), `draws` rows in all."""
    if draws * size <= _MAX_CACHED_INDICES:
        yield _cached_indices(seed, draws, size)
        return
    yield from _draw_indices(seed, draws=draws, size=size)


def coin_tosses(seed: int, *, draws: int, size: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Tosses of a fair coin in chunks of shape (some draws, `size`), `draws` rows in all."""
    import numpy as np

    source = np.random.PCG64(seed)
    for rows in _chunk_sizes(draws, size):
        words = source.random_raw(rows * -(-size // 64)).astype("<u8")
        bits = np.unpackbits(words.view(np.uint8)).reshape(rows, -1)
        yield bits[:, :size].astype(np.bool_)


@lru_cache(maxsize=2)
def _cached_indices(seed: int, draws: int, size: int) -> Indices:
    """Cached, because all figures of a run use the same draws, which cost more than the figures."""
    import numpy as np

    indices = np.concatenate([*_draw_indices(seed, draws=draws, size=size)])
    indices.setflags(write=False)
    return indices


def _draw_indices(seed: int, *, draws: int, size: int) -> Iterator[Indices]:
    import numpy as np

    source, half = np.random.PCG64(seed), np.uint64(32)
    for rows in _chunk_sizes(draws, size):
        words = source.random_raw(rows * size)
        # The upper half of each word as a share of `size`: no index is likelier than another by more than size / 2³².
        words >>= half
        words *= np.uint64(size)
        words >>= half
        yield words.astype(np.int32).reshape(rows, size)


def _chunk_sizes(draws: int, size: int) -> Iterator[int]:
    rows = max(1, _CHUNK // max(1, size))
    for start in range(0, draws, rows):
        yield min(rows, draws - start)


def resampled_means(groups: ClusterSums, *, seed: int, draws: int) -> npt.NDArray[np.float64]:
    """The mean over rows on each draw of clusters, shape (draws,)."""
    import numpy as np

    chunks = resampled_indices(seed, draws=draws, size=len(groups.sums))
    if groups.one_row_each:
        return np.concatenate([groups.sums[indices].mean(axis=1) for indices in chunks])
    return np.concatenate([groups.sums[indices].sum(axis=1) / groups.sizes[indices].sum(axis=1) for indices in chunks])


def resampled_rows(indices: Sequence[npt.NDArray[np.int64]], *, seed: int, draws: int) -> Iterator[list[int]]:
    """Indices of the rows on each draw of clusters."""
    import numpy as np

    for chunk in resampled_indices(seed, draws=draws, size=len(indices)):
        for drawn in chunk:
            clusters: list[int] = drawn.tolist()
            yield np.concatenate([indices[cluster] for cluster in clusters]).tolist()


def cluster_sums(rows: Floats | Sequence[Sequence[float]], clusters: Sequence[ClusterKey] | None) -> Floats:
    """The sum of each cluster's rows, shape (clusters, columns), in the order of the clusters' names.

    Raises:
        UsageError: rows differ in length, or clusters and rows in number.
    """
    import numpy as np

    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2:
        msg = "Rows of numbers to be summed must all be equally long."
        raise UsageError(msg, hint="Give each row as many numbers as the first.")
    if clusters is None:
        return table
    codes, count = cluster_codes(clusters, n=len(table))
    sums = np.zeros((count, table.shape[1]))
    np.add.at(sums, codes, table)
    return sums


def resampled_sums(sums: Floats, *, seed: int, draws: int) -> Floats:
    """Sums over each draw of clusters, shape (draws, columns)."""
    import numpy as np

    size = len(sums)
    if draws * size <= _MAX_CACHED_COUNTS:
        return _cached_counts(seed, draws, size) @ sums
    return np.concatenate(
        [_draw_counts(indices, size=size) @ sums for indices in resampled_indices(seed, draws=draws, size=size)]
    )


@lru_cache(maxsize=2)
def _cached_counts(seed: int, draws: int, size: int) -> Floats:
    """Cached, because all figures of a run use the same counts, which cost more than the sums."""
    import numpy as np

    times = [_draw_counts(indices, size=size) for indices in resampled_indices(seed, draws=draws, size=size)]
    kept = np.concatenate(times)
    kept.setflags(write=False)
    return kept


def _draw_counts(indices: npt.NDArray[np.int32], *, size: int) -> Floats:
    """How often each index was drawn, shape (draws, `size`)."""
    import numpy as np

    offsets = np.arange(len(indices), dtype=np.int64)[:, None] * size
    counts = np.bincount((indices + offsets).ravel(), minlength=len(indices) * size)
    return counts.reshape(len(indices), size).astype(np.float64)


def swapped_differences(figure: FigureOfSums, a: Floats, b: Floats, *, seed: int, draws: int) -> Floats:
    """figure(a) − figure(b) when each cluster's sums are swapped at random, shape (draws,)."""
    import numpy as np

    moved = b - a
    shifts = [tossed.astype(np.float64) @ moved for tossed in coin_tosses(seed, draws=draws, size=len(a))]
    shift = np.concatenate(shifts)
    return figure(a.sum(axis=0) + shift) - figure(b.sum(axis=0) - shift)
