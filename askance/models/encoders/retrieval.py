"""The best of many candidates, a block of them at a time.

Memory is bounded by the block, not by the candidates: for `q` queries, blocks of `b` vectors with `d` numbers and the
`k` best it is about 8·(b·d + q·(b + d + k)) bytes beside what the caller holds; 4,096 vectors of 512 numbers are 17 MB.
Vectors are taken at 16 bits, whose products add up in 64 bits without rounding: the result does not depend on how the
candidates are cut into blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.models.encoders.arrays import Half

    Numbers = NDArray[np.float64]
    Places = NDArray[np.int64]

BLOCK = 4096
"""Candidates that are compared at a time."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One candidate, and how well it fits."""

    place: int
    """Among the candidates, from 0."""
    score: float


class Nearest:
    """The most similar candidates of each query so far, by the cosine.

    Args:
        queries: vectors in 16 bits, at least one.
        k: how many are wanted of each; fewer come where there are fewer candidates.

    Raises:
        UsageError: fewer than one is wanted.
    """

    def __init__(self, queries: Sequence[Half], *, k: int) -> None:
        import numpy as np

        check_count(k)
        self._k = k
        self._count = 0
        self._asked, self._lengths = _rows(queries)
        self._scores: Numbers = np.empty((len(self._asked), 0))
        self._places: Places = np.empty((len(self._asked), 0), dtype=np.int64)

    def add(self, block: Sequence[Half]) -> None:
        """Looks at the next candidates.

        Raises:
            UsageError: their vectors have another size than those of the queries.
        """
        import numpy as np

        if not block:
            return
        rows, lengths = _rows(block)
        if rows.shape[1] != self._asked.shape[1]:
            raise UsageError(
                f"Vectors of {rows.shape[1]} and of {self._asked.shape[1]} numbers cannot be compared.",
                hint="Make them by one encoder.",
            )
        found: Numbers = np.clip((self._asked @ rows.T) / np.outer(self._lengths, lengths), -1, 1)
        here = np.broadcast_to(np.arange(self._count, self._count + len(block)), found.shape)
        scores, places = np.hstack([self._scores, found]), np.hstack([self._places, here])
        # Stable, and earlier candidates stand in front: of equal ones the first stays.
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self._k]
        self._scores = np.take_along_axis(scores, order, axis=1)
        self._places = np.take_along_axis(places, order, axis=1)
        self._count += len(block)

    def hits(self) -> list[list[Hit]]:
        """For each query its best candidates, the best first; of equal ones the first."""
        rows = zip(self._places.tolist(), self._scores.tolist(), strict=True)
        return [[Hit(place, score) for place, score in zip(*row, strict=True)] for row in rows]


def check_count(k: int) -> None:
    """Refuses to look for nothing.

    Raises:
        UsageError: `k` is below 1.
    """
    if k < 1:
        raise UsageError(f"The {k} best of some candidates are none.", hint="Ask for one or more.")


def _rows(vectors: Sequence[Half]) -> tuple[Numbers, Numbers]:
    """Vectors as rows of 64 bits, and their lengths; one without a length is similar to nothing."""
    import numpy as np

    rows: Numbers = np.stack(vectors).astype(np.float64)
    lengths: Numbers = np.sqrt((rows * rows).sum(axis=1))
    return rows, np.where(lengths > 0, lengths, 1.0)
