"""Rows grouped into clusters by what they share, such as their image, and clusters into strata, such as folds.

Where strata are given, a figure is the plain mean of the figures of the strata, whatever their sizes. A cluster lies in
one stratum; rows of two strata that name one cluster count as two clusters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

from askance.errors import UsageError
from askance.statistics.arguments import finite_array

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

Row = TypeVar("Row")

ClusterKey = str | int
"""Name of a cluster, such as an image's id, or of a stratum."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterSums:
    """Sums and sizes of clusters, in an order that does not depend on the order of the rows."""

    sums: npt.NDArray[np.float64]
    """Sum of each cluster's values, shape (clusters,), stratum by stratum."""
    sizes: npt.NDArray[np.float64]
    """Number of each cluster's rows, shape (clusters,)."""
    strata: tuple[int, ...]
    """Number of each stratum's clusters; a single number without strata."""

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.sizes.sum())

    @property
    def one_row_each(self) -> bool:
        """Whether no two rows share a cluster."""
        return self.n == len(self.sizes)

    @property
    def mean(self) -> float:
        """Mean over rows, where a cluster weighs as many as it has; with strata the plain mean of theirs."""
        return math.fsum(self._means.tolist()) / len(self.strata)

    @property
    def deviations(self) -> npt.NDArray[np.float64]:
        """Each cluster's sum minus its size times the mean of its stratum, shape (clusters,)."""
        return self.sums - self.sizes * self._means.repeat(self.strata)

    @property
    def parts(self) -> npt.NDArray[np.float64]:
        """What each cluster adds to the mean, but for a factor that all share, shape (clusters,)."""
        if len(self.strata) == 1:
            return self.sums
        return self.sums / self._rows.repeat(self.strata)

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean (CR1); None where a stratum has fewer than two clusters."""
        if min(self.strata) < 2:
            return None
        squares = self.deviations**2
        plain = [
            float(squares[block].sum()) / float(self.sizes[block].sum()) ** 2 * count / (count - 1)
            for block, count in zip(blocks(self.strata), self.strata, strict=True)
        ]
        return math.sqrt(math.fsum(plain)) / len(plain)

    @property
    def _rows(self) -> npt.NDArray[np.float64]:
        """Number of each stratum's rows, shape (strata,)."""
        return self._by_stratum(self.sizes)

    @property
    def _means(self) -> npt.NDArray[np.float64]:
        """Mean over each stratum's rows, shape (strata,)."""
        return self._by_stratum(self.sums) / self._rows

    def _by_stratum(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        import numpy as np

        return np.array([values[block].sum() for block in blocks(self.strata)])


def blocks(strata: Sequence[int]) -> Iterator[slice]:
    """Where the clusters of each stratum stand, from the number of clusters of each."""
    for end, count in zip(accumulate(strata), strata, strict=True):
        yield slice(end - count, end)


def sum_by_cluster(
    values: Sequence[float], clusters: Sequence[ClusterKey] | None, strata: Sequence[ClusterKey] | None = None
) -> ClusterSums:
    """Sums `values` by cluster; without clusters every row is a cluster of its own.

    Raises:
        UsageError: as `finite_array` and `cluster_codes` say.
    """
    import numpy as np

    numbers = finite_array(values)
    if clusters is None and strata is None:
        return ClusterSums(sums=np.sort(numbers), sizes=np.ones(len(numbers)), strata=(len(numbers),))
    codes, counts = cluster_codes(clusters, strata, n=len(numbers))
    # Sorted within each cluster, so that the rounding of its sum does not depend on the order of the rows.
    order = np.lexsort((numbers, codes))
    sums = np.bincount(codes[order], weights=numbers[order], minlength=sum(counts)).astype(np.float64)
    sizes = np.bincount(codes, minlength=sum(counts)).astype(np.float64)
    return ClusterSums(sums=sums, sizes=sizes, strata=counts)


def cluster_codes(
    clusters: Sequence[ClusterKey] | None, strata: Sequence[ClusterKey] | None = None, *, n: int
) -> tuple[npt.NDArray[np.int64], tuple[int, ...]]:
    """The number of each row's cluster, and how many clusters each stratum has.

    Clusters are numbered stratum by stratum, both in the order of their names.

    Raises:
        UsageError: clusters or strata and rows differ in number, or a name is NaN.
    """
    import numpy as np

    for what, names in (("clusters", clusters), ("strata", strata)):
        if names is not None and len(names) != n:
            msg = f"{len(names)} {what} are given for {n} rows."
            raise UsageError(msg, hint="Give one for each row, such as the image it is about.")
        if names is not None and any(name != name for name in names):  # NaN alone differs from itself
            raise UsageError(f"nan is no name of one of the {what}.", hint="Give each row a text or a whole number.")
    keys = [*zip([0] * n if strata is None else strata, range(n) if clusters is None else clusters, strict=True)]
    ordered = sorted(set(keys), key=lambda key: (_sort_key(key[0]), _sort_key(key[1])))
    numbers = {key: number for number, key in enumerate(ordered)}
    counts = Counter(stratum for stratum, _ in ordered)
    return np.array([numbers[key] for key in keys], dtype=np.int64), tuple(counts.values()) or (0,)


def cluster_rows(
    clusters: Sequence[ClusterKey] | None, strata: Sequence[ClusterKey] | None = None, *, n: int
) -> list[list[npt.NDArray[np.int64]]]:
    """The indices of each cluster's rows, stratum by stratum.

    Raises:
        UsageError: clusters or strata and rows differ in number.
    """
    import numpy as np

    codes, counts = cluster_codes(clusters, strata, n=n)
    order = np.argsort(codes, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(codes, minlength=sum(counts)))[:-1]) if n else []
    return [rows[block] for block in blocks(counts)]


def cluster_sums(
    rows: Floats | Sequence[Sequence[float]],
    clusters: Sequence[ClusterKey] | None,
    strata: Sequence[ClusterKey] | None = None,
) -> list[Floats]:
    """The sum of each cluster's rows, shape (clusters, columns), for each stratum, in the order of the clusters' names.

    Raises:
        UsageError: rows differ in length, clusters or strata and rows in number, or a number is not finite.
    """
    import numpy as np

    table = finite_array(rows)
    if table.ndim != 2:
        msg = "Rows of numbers to be summed must all be equally long."
        raise UsageError(msg, hint="Give each row as many numbers as the first.")
    codes, counts = cluster_codes(clusters, strata, n=len(table))
    sums = np.zeros((sum(counts), table.shape[1]))
    np.add.at(sums, codes, table)
    return [sums[block] for block in blocks(counts)]


def mean_over_strata(
    statistic: Callable[[Sequence[Row]], float | None], rows: Sequence[Row], strata: Sequence[Sequence[int]]
) -> float | None:
    """The plain mean of a statistic over strata, each a list of indices of rows; None where one has no finite value."""
    figures = [statistic([rows[index] for index in stratum]) for stratum in strata]
    known = [figure for figure in figures if figure is not None and math.isfinite(figure)]
    if len(known) < len(figures):
        return None
    return known[0] if len(known) == 1 else math.fsum(known) / len(known)


def _sort_key(key: ClusterKey) -> tuple[str, ClusterKey]:
    return type(key).__name__, key
