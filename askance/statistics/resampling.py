"""Intervals by resampling whole clusters.

Rows that are about the same image are not independent. So whole images are drawn with replacement, each with all of its
rows, and the interval is between two percentiles of what the statistic is on the draws (Efron and Tibshirani, *An
Introduction to the Bootstrap*, 1993, chapters 8 and 13). Percentiles stay within a statistic's range, and need no
jackknife as BCa does.

Draws are the same on every machine and with every release of NumPy. NumPy keeps the raw output of a bit generator fixed
(NEP 19), but not what `Generator` makes of it. So raw words are drawn and turned into places and signs here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from askance.errors import UsageError
from askance.statistics.clusters import ClusterKey, Groups, codes_of, grouped, places_of
from askance.statistics.estimate import DRAWS, LEVEL, Interval, check_level

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Places = npt.NDArray[np.int32]

    FigureOfSums = Callable[[Floats], Floats]
    """From sums of shape (…, columns) to figures of shape (…); NaN where there is none."""

Row = TypeVar("Row")

_MOST_COUNTS = 2_500_000
"""Counts that are kept for the next figure at most: 20 MB."""
_CHUNK = 250_000
"""Numbers drawn at once: 2 MB of words, 1 MB of places."""
_MOST_PLACES = 2_500_000
"""Places that are kept for the next figure: 10 MB."""


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
    groups = grouped(values, clusters)
    return None if len(groups.sums) < 2 else percentiles(resampled_means(groups, seed=seed, draws=draws), level=level)


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
        None with fewer than two clusters, or where half of the draws or more have no figure.

    Raises:
        UsageError: clusters and rows differ in number.
    """
    sums = cluster_sums(rows, clusters)
    if len(sums) < 2:
        return None
    return percentiles(figure(drawn_totals(sums, seed=seed, draws=draws)), level=level)


def percentiles(figures: Sequence[float | None] | npt.NDArray[np.float64], *, level: float) -> Interval | None:
    """The interval between the percentiles of `figures` that leaves out equal tails; None and NaN are no values.

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


def resamples(seed: int, *, draws: int, size: int) -> Iterator[Places]:
    """Places below `size` with replacement, in chunks of shape (some draws, `size`), `draws` rows in all."""
    if draws * size <= _MOST_PLACES:
        yield _kept_places(seed, draws, size)
        return
    yield from _chunks(seed, draws=draws, size=size)


def coins(seed: int, *, draws: int, size: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Tosses of a fair coin in chunks of shape (some draws, `size`), `draws` rows in all."""
    import numpy as np

    source = np.random.PCG64(seed)
    for rows in _rows(draws, size):
        words = source.random_raw(rows * -(-size // 64)).astype("<u8")
        bits = np.unpackbits(words.view(np.uint8)).reshape(rows, -1)
        yield bits[:, :size].astype(np.bool_)


@lru_cache(maxsize=2)
def _kept_places(seed: int, draws: int, size: int) -> Places:
    """The figures of one run are resampled alike, and drawing costs more than the figures."""
    import numpy as np

    places = np.concatenate([*_chunks(seed, draws=draws, size=size)])
    places.setflags(write=False)
    return places


def _chunks(seed: int, *, draws: int, size: int) -> Iterator[Places]:
    import numpy as np

    source, half = np.random.PCG64(seed), np.uint64(32)
    for rows in _rows(draws, size):
        words = source.random_raw(rows * size)
        # The upper half of each word as a share of `size`: no place is likelier than another by more than size / 2³².
        words >>= half
        words *= np.uint64(size)
        words >>= half
        yield words.astype(np.int32).reshape(rows, size)


def _rows(draws: int, size: int) -> Iterator[int]:
    rows = max(1, _CHUNK // max(1, size))
    for start in range(0, draws, rows):
        yield min(rows, draws - start)


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


def cluster_sums(rows: Floats | Sequence[Sequence[float]], clusters: Sequence[ClusterKey] | None) -> Floats:
    """The sum of each cluster's rows, shape (clusters, columns), by the order of the clusters' names.

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
    codes, count = codes_of(clusters, n=len(table))
    sums = np.zeros((count, table.shape[1]))
    np.add.at(sums, codes, table)
    return sums


def drawn_totals(sums: Floats, *, seed: int, draws: int) -> Floats:
    """Sums over each draw of clusters, shape (draws, columns)."""
    import numpy as np

    size = len(sums)
    if draws * size <= _MOST_COUNTS:
        return _kept_times(seed, draws, size) @ sums
    return np.concatenate(
        [_times_drawn(places, size=size) @ sums for places in resamples(seed, draws=draws, size=size)]
    )


@lru_cache(maxsize=2)
def _kept_times(seed: int, draws: int, size: int) -> Floats:
    """The many figures of one run are resampled alike, and counting costs more than adding up."""
    import numpy as np

    times = [_times_drawn(places, size=size) for places in resamples(seed, draws=draws, size=size)]
    kept = np.concatenate(times)
    kept.setflags(write=False)
    return kept


def _times_drawn(places: npt.NDArray[np.int32], *, size: int) -> Floats:
    """How often each place was drawn, shape (draws, `size`)."""
    import numpy as np

    offsets = np.arange(len(places), dtype=np.int64)[:, None] * size
    counts = np.bincount((places + offsets).ravel(), minlength=len(places) * size)
    return counts.reshape(len(places), size).astype(np.float64)


def swapped_differences(figure: FigureOfSums, a: Floats, b: Floats, *, seed: int, draws: int) -> Floats:
    """figure(a) − figure(b) when each cluster's sums change sides at a toss, shape (draws,)."""
    import numpy as np

    moved = b - a
    shifts = [tossed.astype(np.float64) @ moved for tossed in coins(seed, draws=draws, size=len(a))]
    shift = np.concatenate(shifts)
    return figure(a.sum(axis=0) + shift) - figure(b.sum(axis=0) - shift)
