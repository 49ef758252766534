"""Stores of vectors: what an index asks of one, and the exact search over a file of vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from askance.errors import StoreError, UsageError
from askance.models.encoders.search import check_count
from askance.models.encoders.vectors import BLOCK, KEY, VectorFile, same_size
from askance.python_file import is_python, load_object

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.chat import JsonObject
    from askance.models.encoders.vectors import Half

    Matrix: TypeAlias = NDArray[np.float32]
    Numbers: TypeAlias = NDArray[np.float64]
    Places: TypeAlias = NDArray[np.int64]

Scored: TypeAlias = tuple[str, float]
"""An id, and the cosine of its vector with that of the query, from −1 to 1."""

QUERIES = 64
"""Queries that are compared at a time."""


@runtime_checkable
class VectorStore(Protocol):
    """Holds one vector of the length 1 for each id, in 16 bits, and finds those nearest to a query.

    `verify()`, which gives what is wrong with the store in words, is optional.
    """

    async def add(self, ids: Sequence[str], vectors: Sequence[Half]) -> None:
        """Holds the vectors, safe on the disk or with the server when this returns; an id that is there stays as it is.

        Raises:
            StoreError: they cannot be written.
        """
        ...

    async def search(self, vectors: Sequence[Half], k: int, among: Collection[str] | None = None) -> list[list[Scored]]:
        """For each query its `k` nearest, by the cosine and then by id; fewer where there are fewer.

        Args:
            vectors: of the queries.
            k: how many are wanted, from 1.
            among: the ids to choose from; those that are not there are passed over. None is all.

        Raises:
            StoreError: the store cannot be read, or does not answer.
        """
        ...

    async def count(self) -> int:
        """How many vectors there are."""
        ...

    async def lacking(self, ids: Sequence[str]) -> list[str]:
        """Of `ids`, those without a vector, in their order."""
        ...


def load_store(place: str) -> VectorStore:
    """The store that a file of the user's names, `FILE.py:NAME`.

    Raises:
        UsageError: it cannot be loaded, or is none.
    """
    if not is_python(place):
        raise UsageError(
            f"There is no store of vectors {place!r}.",
            hint="Name your own: mine.py:STORE. An index is built with file or lance as well, and finds these itself.",
        )
    store = load_object(place)
    if not isinstance(store, VectorStore):
        raise UsageError(
            f"{place!r} is no store of vectors: it is of the type {type(store).__name__}.",
            hint="It needs `add`, `search`, `count` and `lacking` (askance.retrieval.VectorStore); "
            "`askance.retrieval.llama.LlamaVectorStore` makes one of a vector store of llama-index.",
        )
    return store


@dataclass(frozen=True, slots=True)
class _Loaded:
    """All vectors of a file, ready to be compared."""

    ids: list[str]
    places: dict[str, int]
    """By id its row."""
    rows: Matrix
    lengths: Numbers
    """Of the rows; 1 for one without a length, which is similar to nothing."""


class ExactVectors:
    """A file of vectors, searched whole: for up to a million vectors, without an index over them.

    The first search loads the file as one matrix of 32 bits: 4 bytes a number, 307 MB for 200,000 vectors of 384.
    Products in 32 bits find every vector that may be among the best within the bound of their rounding; those are then
    compared in 64 bits, in which sums of products of numbers of 16 bits are exact. So the result depends neither on the
    order of the sums nor on the machine.

    Args:
        folder: of the index; the file stands in its `vectors/`.
        about: says whose vectors these are, as JSON: the form of their embedder.
    """

    def __init__(self, folder: Path, about: JsonObject) -> None:
        self.file = VectorFile(folder, about)
        self._loaded: _Loaded | None = None
        self._lock = Lock()

    async def add(self, ids: Sequence[str], vectors: Sequence[Half]) -> None:
        """Holds the vectors, on the disk when this returns; an id that is there stays as it is.

        Raises:
            StoreError: they cannot be written, have another size than those that are there, or the file is damaged.
        """
        await asyncio.to_thread(self._add, ids, vectors)

    def _add(self, ids: Sequence[str], vectors: Sequence[Half]) -> None:
        rows = {_row_key(each): vector for each, vector in zip(ids, vectors, strict=True)}
        try:
            self.file.write(rows)
        except OSError as error:
            raise StoreError(
                f"Vectors cannot be written to {str(self.file.path)!r}: {error.strerror}.",
                hint="Make room, or build the index in another folder; what is there is kept.",
            ) from error
        self._loaded = None

    async def search(self, vectors: Sequence[Half], k: int, among: Collection[str] | None = None) -> list[list[Scored]]:
        """For each query its `k` nearest, by the cosine and then by id.

        Raises:
            UsageError: fewer than one is wanted, or the queries' vectors have another size than those in the file.
            StoreError: the file is damaged.
        """
        check_count(k)
        return await asyncio.to_thread(self._search, vectors, k, among)

    async def count(self) -> int:
        """How many vectors there are."""
        return len(await asyncio.to_thread(self.file.keys))

    async def lacking(self, ids: Sequence[str]) -> list[str]:
        """Of `ids`, those without a vector, in their order."""
        existing = set(await asyncio.to_thread(self.file.keys))
        return [each for each in ids if _row_key(each) not in existing]

    def verify(self) -> Iterator[str]:
        """What is wrong with the file, in words; nothing is, as a rule."""
        return self.file.verify()

    def _load(self) -> _Loaded:
        """All vectors, loaded once."""
        import numpy as np

        with self._lock:
            if self._loaded is None:
                keys, rows = self.file.matrix()
                ids = [_entry_of(key) for key in keys]
                lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
                lengths[lengths == 0] = 1.0
                self._loaded = _Loaded(ids, dict(zip(ids, range(len(ids)), strict=True)), rows, lengths)
            return self._loaded

    def _search(self, vectors: Sequence[Half], k: int, among: Collection[str] | None) -> list[list[Scored]]:
        import numpy as np

        stored = self._load()
        if among is None:
            places = np.arange(len(stored.ids))
        else:
            places = np.array(
                sorted(stored.places[each] for each in set(among) if each in stored.places), dtype=np.int64
            )
        if not vectors or not len(places):
            return [[] for _ in vectors]
        same_size(len(vectors[0]), stored.rows.shape[1])
        few = len(places) * 4 < len(stored.ids)
        rows, lengths = (stored.rows[places], stored.lengths[places]) if few else (stored.rows, stored.lengths)
        rankings: list[list[Scored]] = []
        for start in range(0, len(vectors), QUERIES):
            queries = np.stack(vectors[start : start + QUERIES])
            near = (queries.astype(np.float32) @ rows.T) / lengths
            near = near if few or among is None else near[:, places]
            for query, row in zip(queries, near, strict=True):
                length = float(np.sqrt((query.astype(np.float64) ** 2).sum()))
                best = _candidates(row, k, bound=_bound(len(query)) * length)
                rankings.append(_scored(stored, places[best], query)[:k])
        return rankings

    def pairs_above(self, least: float) -> Iterator[tuple[str, str]]:
        """The pairs of ids whose vectors have a cosine above `least`, which is more than 0; each pair once.

        Memory is bounded by the block: the products of two blocks, and the vectors of the pairs found in them.

        Raises:
            StoreError: the file is damaged.
        """
        import numpy as np

        stored = self._load()
        ids, rows, lengths = stored.ids, stored.rows, stored.lengths
        for start in range(0, len(ids), BLOCK):
            for other in range(start, len(ids), BLOCK):
                near = rows[start : start + BLOCK] @ rows[other : other + BLOCK].T
                shortest = float(lengths[start : start + BLOCK].min() * lengths[other : other + BLOCK].min())
                left, right = np.nonzero(near > (least - _bound(rows.shape[1])) * shortest)
                left, right = left + start, right + other
                left, right = left[left < right], right[left < right]
                for some in range(0, len(left), BLOCK):
                    one, two = left[some : some + BLOCK], right[some : some + BLOCK]
                    products = np.einsum("ij,ij->i", rows[one], rows[two], dtype=np.float64)
                    above = np.minimum(products / (lengths[one] * lengths[two]), 1.0) > least
                    yield from ((ids[i], ids[j]) for i, j in zip(one[above], two[above], strict=True))


def _candidates(near: Numbers, k: int, *, bound: float) -> Places:
    """Where the `k` largest of the numbers may be that `near` has but for `bound`."""
    import numpy as np

    if k >= len(near):
        return np.arange(len(near))
    # The k-th largest may have come out too large by the bound, and another one too small.
    return np.flatnonzero(near >= np.partition(near, len(near) - k)[len(near) - k] - 2 * bound)


def _scored(stored: _Loaded, places: Places, query: Half) -> list[Scored]:
    """The rows at `places`, the nearest to a query first; ties are broken by id."""
    import numpy as np

    exact = query.astype(np.float64)
    length = float(np.sqrt(exact @ exact)) or 1.0
    ids = stored.ids
    scored: list[Scored] = []
    for start in range(0, len(places), BLOCK):
        some = places[start : start + BLOCK]
        cosines = (stored.rows[some].astype(np.float64) @ exact) / (stored.lengths[some] * length)
        scored += zip(map(ids.__getitem__, some.tolist()), np.clip(cosines, -1.0, 1.0).tolist(), strict=True)
    return sorted(scored, key=best_first)


def best_first(scored: Scored) -> tuple[float, str]:
    """Orders ids by their score, the highest first, and equal scores by id."""
    return -scored[1], scored[0]


def _bound(size: int) -> float:
    """How far the cosine of two vectors in 32 bits may be off, whatever the order of the sums: twice n·2⁻²⁴."""
    return size * 2.0**-23


def _row_key(entry: str) -> str:
    """The key of a row: the id as the first of its 32 bytes, and zeros behind it."""
    return entry.ljust(2 * KEY, "0")


def _entry_of(key: str) -> str:
    return key[:16]
