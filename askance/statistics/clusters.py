"""Rows grouped by what they share, such as their image."""

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
"""What names a cluster, such as an image's id."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Values summed by cluster, in an order that does not depend on that of the rows."""

    sums: npt.NDArray[np.float64]
    """Sum of each cluster's values, shape (clusters,)."""
    sizes: npt.NDArray[np.float64]
    """Number of each cluster's rows, shape (clusters,)."""

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.sizes.sum())

    @property
    def single(self) -> bool:
        """Whether no two rows share a cluster."""
        return self.n == len(self.sizes)

    @property
    def mean(self) -> float:
        """Mean over rows, so that a cluster weighs as many times as it has rows."""
        return float(self.sums.sum() / self.sizes.sum())

    @property
    def deviations(self) -> npt.NDArray[np.float64]:
        """What each cluster's sum is above the overall mean's share, shape (clusters,)."""
        return self.sums - self.sizes * self.mean


def grouped(values: Sequence[float], clusters: Sequence[ClusterKey] | None) -> Groups:
    """Sum `values` by cluster; without clusters every row is one.

    Raises:
        UsageError: as `checked` and `places_of` say.
    """
    import numpy as np

    numbers = checked(values)
    if clusters is None:
        return Groups(sums=np.sort(numbers), sizes=np.ones(len(numbers)))
    codes, count = codes_of(clusters, n=len(numbers))
    # Sorted within each cluster, so that the rounding of its sum does not depend on the order of the rows.
    order = np.lexsort((numbers, codes))
    sums = np.bincount(codes[order], weights=numbers[order], minlength=count).astype(np.float64)
    return Groups(sums=sums, sizes=np.bincount(codes, minlength=count).astype(np.float64))


def codes_of(clusters: Sequence[ClusterKey], *, n: int) -> tuple[npt.NDArray[np.int64], int]:
    """A number for each row's cluster, by the order of the clusters' names, and how many there are.

    Raises:
        UsageError: there are not as many clusters given as rows.
    """
    import numpy as np

    if len(clusters) != n:
        msg = f"{len(clusters)} clusters are given for {n} rows."
        raise UsageError(msg, hint="Give one for each row, such as the image it is about.")
    numbers = {key: number for number, key in enumerate(sorted(set(clusters), key=_place))}
    return np.array([numbers[key] for key in clusters], dtype=np.int64), len(numbers)


def places_of(clusters: Sequence[ClusterKey] | None, *, n: int) -> list[npt.NDArray[np.int64]]:
    """The places of each cluster's rows.

    Raises:
        UsageError: there are not as many clusters given as rows.
    """
    import numpy as np

    if clusters is None:
        return [np.array([place]) for place in range(n)]
    codes, count = codes_of(clusters, n=n)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1]) if n else []


def checked(values: Sequence[float]) -> npt.NDArray[np.float64]:
    """`values` as an array.

    Raises:
        UsageError: one is not a finite number.
    """
    import numpy as np

    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        odd = next(value for value in numbers.tolist() if not math.isfinite(value))
        msg = f"{odd!r} is no number to compute with."
        raise UsageError(msg, hint="Leave out what has no value, and say how many those were.")
    return numbers


def _place(key: ClusterKey) -> tuple[str, ClusterKey]:
    return type(key).__name__, key
