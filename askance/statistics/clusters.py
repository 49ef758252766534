"""Rows grouped into clusters by what they share, such as their image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ClusterKey = str | int
"""Name of a cluster, such as an image's id."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterSums:
    """Sums and sizes of clusters, in an order that does not depend on the order of the rows."""

    sums: npt.NDArray[np.float64]
    """Sum of each cluster's values, shape (clusters,)."""
    sizes: npt.NDArray[np.float64]
    """Number of each cluster's rows, shape (clusters,)."""

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
        """Mean over rows; the weight of a cluster is the number of its rows."""
        return float(self.sums.sum() / self.sizes.sum())

    @property
    def deviations(self) -> npt.NDArray[np.float64]:
        """Each cluster's sum minus its size times the overall mean, shape (clusters,)."""
        return self.sums - self.sizes * self.mean


def sum_by_cluster(values: Sequence[float], clusters: Sequence[ClusterKey] | None) -> ClusterSums:
    """Sums `values` by cluster; without clusters every row is a cluster of its own.

    Raises:
        UsageError: as `finite_array` and `cluster_rows` say.
    """
    import numpy as np

    numbers = finite_array(values)
    if clusters is None:
        return ClusterSums(sums=np.sort(numbers), sizes=np.ones(len(numbers)))
    codes, count = cluster_codes(clusters, n=len(numbers))
    # Sorted within each cluster, so that the rounding of its sum does not depend on the order of the rows.
    order = np.lexsort((numbers, codes))
    sums = np.bincount(codes[order], weights=numbers[order], minlength=count).astype(np.float64)
    return ClusterSums(sums=sums, sizes=np.bincount(codes, minlength=count).astype(np.float64))


def cluster_codes(clusters: Sequence[ClusterKey], *, n: int) -> tuple[npt.NDArray[np.int64], int]:
    """The number of each row's cluster, in the order of the clusters' names, and the number of clusters.

    Raises:
        UsageError: clusters and rows differ in number.
    """
    import numpy as np

    if len(clusters) != n:
        msg = f"{len(clusters)} clusters are given for {n} rows."
        raise UsageError(msg, hint="Give one for each row, such as the image it is about.")
    numbers = {key: number for number, key in enumerate(sorted(set(clusters), key=_sort_key))}
    return np.array([numbers[key] for key in clusters], dtype=np.int64), len(numbers)


def cluster_rows(clusters: Sequence[ClusterKey] | None, *, n: int) -> list[npt.NDArray[np.int64]]:
    """The indices of each cluster's rows.

    Raises:
        UsageError: clusters and rows differ in number.
    """
    import numpy as np

    if clusters is None:
        return [np.array([index]) for index in range(n)]
    codes, count = cluster_codes(clusters, n=n)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1]) if n else []


def finite_array(values: Sequence[float]) -> npt.NDArray[np.float64]:
    """`values` as an array.

    Raises:
        UsageError: one is not a finite number.
    """
    import numpy as np

    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        odd = next(value for value in numbers.tolist() if not math.isfinite(value))
        msg = f"{odd!r} is not a finite number."
        raise UsageError(msg, hint="Leave out samples without a value, and report how many.")
    return numbers


def _sort_key(key: ClusterKey) -> tuple[str, ClusterKey]:
    return type(key).__name__, key
