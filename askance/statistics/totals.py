"""Figures that are functions of sums over rows, resampled by whole arrays.

An F1 needs only three counts, so a draw of images needs only their sums; two thousand draws of a thousand rows take
milliseconds. Counts are added exactly, in whatever order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.statistics.clusters import Key, codes_of
from askance.statistics.draws import coins, resamples
from askance.statistics.resampling import percentiles
from askance.statistics.values import DRAWS, LEVEL, Interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

    Figure = Callable[[Floats], Floats]
    """From sums of shape (…, columns) to figures of shape (…); NaN where there is none."""


_KEPT = 2_500_000
"""Counts that are kept for the next figure at most: 20 MB."""


def bootstrap_totals(
    figure: Figure,
    rows: Floats | Sequence[Sequence[float]],
    clusters: Sequence[Key] | None = None,
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


def cluster_sums(rows: Floats | Sequence[Sequence[float]], clusters: Sequence[Key] | None) -> Floats:
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
    if draws * size <= _KEPT:
        return _kept_times(seed, draws, size) @ sums
    return np.concatenate([times_drawn(places, size=size) @ sums for places in resamples(seed, draws=draws, size=size)])


@lru_cache(maxsize=2)
def _kept_times(seed: int, draws: int, size: int) -> Floats:
    """The many figures of one run are resampled alike, and counting costs more than adding up."""
    import numpy as np

    times = [times_drawn(places, size=size) for places in resamples(seed, draws=draws, size=size)]
    kept = np.concatenate(times)
    kept.setflags(write=False)
    return kept


def times_drawn(places: npt.NDArray[np.int32], *, size: int) -> Floats:
    """How often each place was drawn, shape (draws, `size`)."""
    import numpy as np

    offsets = np.arange(len(places), dtype=np.int64)[:, None] * size
    counts = np.bincount((places + offsets).ravel(), minlength=len(places) * size)
    return counts.reshape(len(places), size).astype(np.float64)


def swapped_differences(figure: Figure, a: Floats, b: Floats, *, seed: int, draws: int) -> Floats:
    """figure(a) − figure(b) when each cluster's sums change sides at a toss, shape (draws,)."""
    import numpy as np

    moved = b - a
    shifts = [tossed.astype(np.float64) @ moved for tossed in coins(seed, draws=draws, size=len(a))]
    shift = np.concatenate(shifts)
    return figure(a.sum(axis=0) + shift) - figure(b.sum(axis=0) - shift)
