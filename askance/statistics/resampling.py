"""Bootstrap intervals, by resampling whole clusters.

Rows about the same image are not independent. So whole images are drawn with replacement, each with all of its rows,
and the interval lies between two percentiles of the statistic on the draws (Efron and Tibshirani, *An Introduction to
the Bootstrap*, 1993, chapters 8 and 13). Percentiles stay within the range of a statistic and, unlike BCa, need no
jackknife. Where all draws give one figure, `askance.statistics.unseen` has the interval.

Where strata are given, such as the folds of a cross-validation, the figure is the plain mean of the figures of the
strata, and clusters are drawn within their stratum, so that each draw has as many of each as there are.

Draws are the same on every machine and with every release of NumPy. NumPy keeps the raw output of a bit generator fixed
(NEP 19), but not what `Generator` makes of it. So raw words are drawn and turned into indices and signs here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from askance.statistics.arguments import check_counts
from askance.statistics.clusters import (
    ClusterKey,
    ClusterSums,
    blocks,
    cluster_rows,
    cluster_sums,
    mean_over_strata,
    sum_by_cluster,
)
from askance.statistics.estimate import DRAWS, LEVEL, Interval, check_level
from askance.statistics.unseen import Bounds, FigureOfSums, Table, is_empty, unseen_mean, unseen_rows, unseen_totals

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from askance.statistics.clusters import Floats

    Indices = npt.NDArray[np.int32]

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
    strata: Sequence[ClusterKey] | None = None,
    bounds: Bounds[Row] | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval | None:
    """Interval of any statistic of a set of rows, such as an F1 or an area under a curve.

    `statistic` is called once a draw. Where it has no value on a draw it returns None, and the draw is left out. To
    work on arrays of your own, let the rows be a `range` of indices; for figures of sums, `bootstrap_totals` is faster.
    Where all draws give one figure, the interval is that of clusters that were not seen, which needs `bounds`.

    Returns:
        None where there are fewer than two clusters, or a stratum has fewer, where the statistic is undefined on half
        of the draws or more, or where all draws give one figure and nothing bounds it.

    Raises:
        UsageError: clusters or strata and rows differ in number.
    """
    indices = cluster_rows(clusters, strata, n=len(rows))
    if min(map(len, indices)) < 2:
        return None
    figures = [mean_over_strata(statistic, rows, drawn) for drawn in resampled_rows(indices, seed=seed, draws=draws)]
    interval = percentile_interval(figures, level=level)
    if not is_empty(interval):
        return interval
    ends = None if bounds is None else bounds()
    if ends is None:
        return None
    return unseen_rows(statistic, rows, ends, clusters=clusters, strata=strata, level=level)


def bootstrap_mean(
    values: Sequence[float],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
    strata: Sequence[ClusterKey] | None = None,
    bounds: Bounds[float] | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval | None:
    """`cluster_bootstrap` of the mean, by whole arrays: milliseconds for a thousand samples.

    Returns:
        None where there are fewer than two clusters, or a stratum has fewer, or where all draws give one mean and
        nothing bounds it.

    Raises:
        UsageError: a value is not finite, or there are not as many clusters or strata given as rows.
    """
    interval = mean_interval(sum_by_cluster(values, clusters, strata), seed=seed, draws=draws, level=level)
    if not is_empty(interval):
        return interval
    ends = None if bounds is None else bounds()
    return None if ends is None else unseen_mean(values, ends, clusters=clusters, strata=strata, level=level)


def mean_interval(groups: ClusterSums, *, seed: int, draws: int, level: float) -> Interval | None:
    """The percentile interval of the mean of `groups`, without width where all clusters agree.

    Returns:
        None where there are fewer than two clusters, or a stratum has fewer.
    """
    if min(groups.strata) < 2:
        return None
    return percentile_interval(resampled_means(groups, seed=seed, draws=draws), level=level)


def bootstrap_totals(
    figure: FigureOfSums,
    rows: Table,
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
    strata: Sequence[ClusterKey] | None = None,
    bounds: Callable[[], tuple[Table, Table] | None] | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval | None:
    """Interval of a figure of the sums of `rows`, by drawing whole clusters.

    Returns:
        None where there are fewer than two clusters, or a stratum has fewer, where the figure is undefined on half of
        the draws or more, or where all draws give one figure and nothing bounds it.

    Raises:
        UsageError: clusters or strata and rows differ in number.
    """
    sums = cluster_sums(rows, clusters, strata)
    if min(map(len, sums)) < 2:
        return None
    interval = percentile_interval(mean_figure(figure, resampled_sums(sums, seed=seed, draws=draws)), level=level)
    if not is_empty(interval):
        return interval
    ends = None if bounds is None else bounds()
    return None if ends is None else unseen_totals(figure, rows, ends, clusters=clusters, strata=strata, level=level)


def bootstrap_ratio(
    amounts: Sequence[float], spent: Sequence[float], clusters: Sequence[ClusterKey] | None = None, *, seed: int
) -> Interval | None:
    """Interval of the sum of `amounts` for each unit that was spent, by drawing whole clusters.

    It is not defined on draws in which nothing was spent, or less.

    Raises:
        UsageError: the two are not equally long, or there are not as many clusters.
    """
    import numpy as np

    def rate(sums: Floats) -> Floats:
        positive = sums[..., 1] > 0
        return np.where(positive, sums[..., 0] / np.where(positive, sums[..., 1], 1.0), np.nan)

    return bootstrap_totals(rate, [*zip(amounts, spent, strict=True)], clusters, seed=seed)


def percentile_interval(figures: Sequence[float | None] | npt.NDArray[np.float64], *, level: float) -> Interval | None:
    """The interval between the percentiles of `figures` with equal tails; None, NaN and infinity are left out.

    Returns:
        None where half of them or more have no value.

    Raises:
        UsageError: `level` is not between 0 and 1.
    """
    import numpy as np

    check_level(level)
    numbers = np.array([np.nan if figure is None else figure for figure in figures], dtype=np.float64)
    known = numbers[np.isfinite(numbers)]
    undefined = len(numbers) - len(known)
    if 2 * undefined >= len(numbers):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(low=low, high=high, level=level, method="cluster bootstrap", undefined=undefined)


def resampled_indices(seed: int, *, draws: int, strata: tuple[int, ...]) -> Iterator[Indices]:
    """Random indices of clusters, as many from each stratum as it has, in chunks of shape (some draws, clusters).

    Indices of later strata go on where those of the stratum before end. There are `draws` rows in all.
    """
    if draws * sum(strata) <= _MAX_CACHED_INDICES:
        yield _cached_indices(seed, draws, strata)
        return
    yield from _draw_indices(seed, draws=draws, strata=strata)


def coin_tosses(seed: int, *, draws: int, size: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Tosses of a fair coin in chunks of shape (some draws, `size`), `draws` rows in all."""
    import numpy as np

    source = np.random.PCG64(seed)
    for rows in _chunk_sizes(draws, size):
        words = source.random_raw(rows * -(-size // 64)).astype("<u8")
        bits = np.unpackbits(words.view(np.uint8)).reshape(rows, -1)
        yield bits[:, :size].astype(np.bool_)


@lru_cache(maxsize=2)
def _cached_indices(seed: int, draws: int, strata: tuple[int, ...]) -> Indices:
    """Cached, because all figures of a run use the same draws, which cost more than the figures."""
    import numpy as np

    indices = np.concatenate([*_draw_indices(seed, draws=draws, strata=strata)])
    indices.setflags(write=False)
    return indices


def _draw_indices(seed: int, *, draws: int, strata: tuple[int, ...]) -> Iterator[Indices]:
    import numpy as np

    source, half, size = np.random.PCG64(seed), np.uint64(32), sum(strata)
    sizes = np.repeat(np.array(strata, dtype=np.uint64), strata)
    starts = np.repeat([block.start for block in blocks(strata)], strata).astype(np.int32)
    for rows in _chunk_sizes(draws, size):
        words = source.random_raw(rows * size).reshape(rows, size)
        # The upper half of each word as a share of the size: no index is likelier than another by more than size / 2³².
        words >>= half
        words *= sizes
        words >>= half
        yield words.astype(np.int32) + starts


def _chunk_sizes(draws: int, size: int) -> Iterator[int]:
    check_counts(draws)
    rows = max(1, _CHUNK // max(1, size))
    for start in range(0, draws, rows):
        yield min(rows, draws - start)


def resampled_means(groups: ClusterSums, *, seed: int, draws: int) -> npt.NDArray[np.float64]:
    """The mean over rows on each draw of clusters, plain mean of that over strata, shape (draws,)."""
    import numpy as np

    def means(indices: Indices) -> Floats:
        sums = groups.sums[indices]
        return sums.mean(axis=1) if groups.one_row_each else sums.sum(axis=1) / groups.sizes[indices].sum(axis=1)

    chunks = resampled_indices(seed, draws=draws, strata=groups.strata)
    return np.concatenate(
        [_mean_of([means(indices[:, block]) for block in blocks(groups.strata)]) for indices in chunks]
    )


def resampled_rows(
    indices: Sequence[Sequence[npt.NDArray[np.int64]]], *, seed: int, draws: int
) -> Iterator[list[list[int]]]:
    """Indices of the rows on each draw of clusters, stratum by stratum.

    Args:
        indices: those of each cluster's rows, stratum by stratum, as `cluster_rows` gives them.
        seed: of the draws.
        draws: how many.
    """
    import numpy as np

    clusters, strata = [cluster for stratum in indices for cluster in stratum], tuple(map(len, indices))
    for chunk in resampled_indices(seed, draws=draws, strata=strata):
        for drawn in chunk:
            numbers: list[int] = drawn.tolist()
            yield [np.concatenate([clusters[number] for number in numbers[block]]).tolist() for block in blocks(strata)]


def resampled_sums(sums: Sequence[Floats], *, seed: int, draws: int) -> list[Floats]:
    """Sums over each draw of clusters, shape (draws, columns), for each stratum.

    Args:
        sums: of each cluster, stratum by stratum, as `cluster_sums` gives them.
        seed: of the draws.
        draws: how many.
    """
    import numpy as np

    strata = tuple(map(len, sums))
    several = [*zip(blocks(strata), sums, strict=True)]
    if draws * sum(strata) <= _MAX_CACHED_COUNTS:
        counts = _cached_counts(seed, draws, strata)
        return [counts[:, block] @ each for block, each in several]
    chunks = [
        [counts[:, block] @ each for block, each in several]
        for counts in map(_draw_counts, resampled_indices(seed, draws=draws, strata=strata))
    ]
    return [np.concatenate(stratum) for stratum in zip(*chunks, strict=True)]


def mean_figure(figure: FigureOfSums, sums: Sequence[Floats]) -> Floats:
    """The plain mean over strata of a figure of their sums."""
    return _mean_of([figure(stratum) for stratum in sums])


def _mean_of(figures: Sequence[Floats]) -> Floats:
    """The plain mean over strata, NaN where one has no value; of a single stratum its own figures, digit by digit."""
    import numpy as np

    return figures[0] if len(figures) == 1 else np.mean(figures, axis=0)


@lru_cache(maxsize=2)
def _cached_counts(seed: int, draws: int, strata: tuple[int, ...]) -> Floats:
    """Cached, because all figures of a run use the same counts, which cost more than the sums."""
    import numpy as np

    drawn = np.concatenate([*map(_draw_counts, resampled_indices(seed, draws=draws, strata=strata))])
    drawn.setflags(write=False)
    return drawn


def _draw_counts(indices: npt.NDArray[np.int32]) -> Floats:
    """How often each index was drawn, shape (draws, indices)."""
    import numpy as np

    draws, size = indices.shape
    offsets = np.arange(draws, dtype=np.int64)[:, None] * size
    counts = np.bincount((indices + offsets).ravel(), minlength=draws * size)
    return counts.reshape(draws, size).astype(np.float64)


def swapped_differences(
    figure: FigureOfSums, a: Sequence[Floats], b: Sequence[Floats], *, seed: int, draws: int
) -> Floats:
    """figure(a) − figure(b) when each cluster's sums are swapped at random, shape (draws,); sums are by stratum."""
    import numpy as np

    strata = tuple(map(len, a))
    moved = [(block, other - one) for block, one, other in zip(blocks(strata), a, b, strict=True)]
    chunks = [
        [tossed[:, block].astype(np.float64) @ each for block, each in moved]
        for tossed in coin_tosses(seed, draws=draws, size=sum(strata))
    ]
    shifts = [np.concatenate(stratum) for stratum in zip(*chunks, strict=True)]
    left = [one.sum(axis=0) + shift for one, shift in zip(a, shifts, strict=True)]
    right = [other.sum(axis=0) - shift for other, shift in zip(b, shifts, strict=True)]
    return mean_figure(figure, left) - mean_figure(figure, right)
