"""Vectors in a table of LanceDB: for an index that is larger than memory. It runs in this process; there is no server.

LanceDB compares in 32 bits, and says nothing of how it orders equal distances. So it finds candidates alone: their own
numbers are then compared in 64 bits, as `ExactVectors` does, and both give the same ids with the same scores.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from struct import error as StructError  # noqa: N812  # it is a class
from struct import unpack
from threading import Lock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast
from zlib import crc32

from askance.errors import StoreError, UsageError, optional_library
from askance.models.encoders.search import check_count
from askance.models.encoders.vectors import cosine_of, same_size
from askance.retrieval.vector_store import best_first

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.chat import JsonObject
    from askance.models.encoders.vectors import Half
    from askance.retrieval.vector_store import Scored

_ABOUT = b"askance"
"""Key of the schema's metadata with what the vectors are of."""
_MORE = 32
"""Candidates that are looked at beside the nearest."""
_BATCH = 10_000
"""Rows that are read at a time."""
_BASE_PATHS = 18
"""Number of the field of a manifest with other places of files."""
_MOST_BYTES = 100_000_000
"""Most bytes of a manifest."""
_SOUND = "Delete the folder and build the index again; its vectors are made anew."

P = ParamSpec("P")
T = TypeVar("T")


class LanceVectors:
    """A table of LanceDB with a vector for each id. Search is exact: every vector is compared.

    A row is an id, the vector in 32 bits, which hold its numbers of 16 bits exactly, and a checksum. A vector without
    length is similar to nothing; LanceDB passes it over, so its row holds no vector and it stands behind all that are
    similar to something.

    Args:
        folder: with the tables; an index has it as its `lance/`.
        about: says whose vectors these are, as JSON: the form of their embedder.
        approximate: search by the index that `build_approximate` makes, where there is one. **Its results are not
            deterministic**: an index that is built again finds other texts. They belong on record.
    """

    def __init__(self, folder: Path, about: JsonObject, *, approximate: bool = False) -> None:
        self.about = json.dumps(about, sort_keys=True)
        self.folder = folder
        self.name = sha256(self.about.encode()).hexdigest()[:32]
        """Of the table: each embedder has one."""
        self.approximate = approximate
        self._table: Any = None
        self._size = 0
        self._lock = Lock()

    @property
    def path(self) -> Path:
        """The folder of the table."""
        return self.folder / f"{self.name}.lance"

    async def add(self, ids: Sequence[str], vectors: Sequence[Half]) -> None:
        """Holds the vectors, on the disk when this returns; an id that is there stays as it is.

        Raises:
            MissingExtra: lancedb is not installed.
            UsageError: they have another size than those that are there.
            StoreError: they cannot be written, or the table is damaged or another's.
        """
        await self._run(LanceVectors._add, ids, vectors)

    async def search(self, vectors: Sequence[Half], k: int, among: Collection[str] | None = None) -> list[list[Scored]]:
        """For each query its `k` nearest, by the cosine and then by id.

        Raises:
            MissingExtra: lancedb is not installed.
            UsageError: fewer than one is wanted, or the queries' vectors have another size than those in the table.
            StoreError: the table is damaged or another's.
        """
        check_count(k)
        return await self._run(LanceVectors._search, vectors, k, among, approximate=self.approximate)

    async def count(self) -> int:
        """How many vectors there are."""
        return await self._run(LanceVectors._count)

    async def lacking(self, ids: Sequence[str]) -> list[str]:
        """Of `ids`, those without a vector, in their order."""
        return await self._run(LanceVectors._lacking, ids)

    async def build_approximate(self, queries: Sequence[Half], *, k: int = 100) -> float:
        """Builds LanceDB's index `IVF_FLAT` over all vectors, for `approximate`, and measures what it finds.

        Args:
            queries: what the index is measured with; a thousand real queries tell more than any default.
            k: how many of the nearest are looked for.

        Returns:
            The share of the `k` nearest of an exact search that the index finds too, over all queries.

        Raises:
            UsageError: there are no queries or no vectors, or fewer than one is wanted.
            StoreError: the table is damaged or another's.
        """
        check_count(k)
        return await self._run(LanceVectors._build_approximate, queries, k)

    def verify(self) -> Iterator[str]:
        """What is wrong with the table, in words; nothing is, as a rule."""
        try:
            yield from self._guarded(LanceVectors._twice)
        except StoreError as error:
            yield str(error)

    # --- in a thread: LanceDB's calls block ---

    async def _run(self, work: Callable[Concatenate[LanceVectors, P], T], *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(self._guarded, work, *args, **options)

    def _guarded(self, work: Callable[Concatenate[LanceVectors, P], T], *args: P.args, **options: P.kwargs) -> T:
        """What `work` gives; LanceDB raises plain errors over a table that it cannot read or write."""
        try:
            with self._lock:
                return work(self, *args, **options)
        except (StoreError, UsageError):
            raise
        except (OSError, RuntimeError, ValueError) as error:
            why = str(error).split(", /")[0].splitlines()[0] if str(error) else type(error).__name__
            raise self._damaged(f"LanceDB says: {why[:200]}") from error

    def _open(self) -> Any:
        """The table; None where there is none yet."""
        if self._table is None:
            if not self.path.is_dir():
                return None
            try:
                elsewhere = any(map(_names_places, self.path.rglob("*.manifest")))
            except (LookupError, StructError) as error:
                raise self._damaged("its manifest is damaged") from error
            if elsewhere:
                raise self._damaged("it names files outside of its folder")
            self._take(self._connect().open_table(self.name))
        return self._table

    def _connect(self) -> Any:
        # Each call looks whether another process has added rows.
        return optional_library("lancedb", "retrieval").connect(self.folder, read_consistency_interval=timedelta(0))

    def _take(self, table: Any) -> None:
        """Uses `table`, if it is one of these vectors."""
        schema = table.schema
        # LanceDB reads metadata of its own as code to run (embedding functions), so that any other key is refused.
        if set(schema.metadata or {}) != {_ABOUT} or schema.names != ["id", "vector", "sum"]:
            raise self._damaged("it is no table of an index")
        if schema.metadata[_ABOUT].decode(errors="replace") != self.about:
            raise self._damaged("its vectors are another encoder's")
        size: int = getattr(schema.field("vector").type, "list_size", 0)
        if [str(field.type) for field in schema] != [str(field.type) for field in self._schema(size)]:
            raise self._damaged("its columns are not those of an index")
        self._table, self._size = table, size

    def _schema(self, size: int) -> Any:
        arrow = optional_library("pyarrow", "retrieval")
        fields = [
            arrow.field("id", arrow.string(), nullable=False),
            arrow.field("vector", arrow.list_(arrow.float32(), size)),
            arrow.field("sum", arrow.uint32(), nullable=False),
        ]
        return arrow.schema(fields, metadata={_ABOUT: self.about.encode()})

    def _add(self, ids: Sequence[str], vectors: Sequence[Half]) -> None:
        fresh = dict(zip(ids, vectors, strict=True))
        fresh = {key: fresh[key] for key in self._lacking(list(fresh))}
        if not fresh:
            return
        arrow = optional_library("pyarrow", "retrieval")
        size = len(next(iter(fresh.values())))
        table = self._open()
        if table is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take(self._connect().create_table(self.name, schema=self._schema(size)))
        for vector in fresh.values():
            same_size(len(vector), self._size)
        rows = [vector.astype("<f4") for vector in fresh.values()]
        sums = [_sum(key, vector) for key, vector in zip(fresh, rows, strict=True)]
        numbers = [vector if vector.any() else None for vector in rows]
        schema = self._schema(self._size)
        columns = [
            arrow.array(each, type=field.type) for each, field in zip((list(fresh), numbers, sums), schema, strict=True)
        ]
        self._table.add(arrow.Table.from_arrays(columns, schema=schema))

    def _count(self) -> int:
        table = self._open()
        return 0 if table is None else int(table.count_rows())

    def _lacking(self, ids: Sequence[str]) -> list[str]:
        if self._open() is None:
            return list(ids)
        # A condition of very many ids takes longer than to read all that are there.
        existing = set(self._ids(_one_of(ids) if len(ids) <= _BATCH else None))
        return [key for key in ids if key not in existing]

    def _ids(self, where: str | None) -> list[str]:
        query = self._table.search().select(["id"])
        return (query if where is None else query.where(where)).to_arrow()["id"].to_pylist()

    def _search(
        self, vectors: Sequence[Half], k: int, among: Collection[str] | None, *, approximate: bool
    ) -> list[list[Scored]]:
        if self._open() is None or not vectors or (among is not None and not among):
            return [[] for _ in vectors]
        where = None if among is None else _one_of(sorted(among))
        for vector in vectors:
            same_size(len(vector), self._size)
        return [self._nearest(vector, k, where, approximate=approximate) for vector in vectors]

    def _nearest(self, query: Half, k: int, where: str | None, *, approximate: bool) -> list[Scored]:
        if not query.any():
            return [(key, 0.0) for key in sorted(self._ids(where))[:k]]
        # A cosine in 32 bits of n numbers is off by no more than this from that of their exact sums.
        bound = 4 * (self._size + 4) * 2.0**-24
        limit = k + _MORE
        while True:
            rows = self._candidates(query, limit, where, approximate=approximate)
            scored = [(key, cosine_of(vector, query)) for key, vector in self._ids_and_vectors(rows)]
            scored.sort(key=best_first)
            farthest = 1 - max(rows["_distance"].to_pylist(), default=0.0)
            if len(rows) < limit or approximate or scored[k - 1][1] > farthest + bound:
                break
            limit *= 4
        if len(scored) < k or scored[k - 1][1] <= 0:
            missing = "vector IS NULL" if where is None else f"vector IS NULL AND {where}"
            scored = sorted([*scored, *((key, 0.0) for key in self._ids(missing))], key=best_first)
        return scored[:k]

    def _candidates(self, query: Half, limit: int, where: str | None, *, approximate: bool) -> Any:
        search = self._table.search(query.astype("<f4"), vector_column_name="vector").distance_type("cosine")
        search = search.limit(limit).select(["id", "vector", "sum", "_distance"])
        if not approximate:
            search = search.bypass_vector_index()
        return (search if where is None else search.where(where, prefilter=True)).to_arrow()

    def _build_approximate(self, queries: Sequence[Half], k: int) -> float:
        if not self._count() or not queries:
            raise UsageError(
                "An approximate index is built over vectors and measured with queries, and there are none.",
                hint="Build the index first, and give queries.",
            )
        kind = optional_library("lancedb.index", "retrieval").IvfFlat(distance_type="cosine")
        self._table.create_index("vector", config=kind)
        hits = total = 0
        for query in queries:
            exact = {key for key, _ in self._nearest(query, k, None, approximate=False)}
            hits += len(exact & {key for key, _ in self._nearest(query, k, None, approximate=True)})
            total += len(exact)
        return hits / total

    def _twice(self) -> list[str]:
        """Which ids have two vectors, in words; every checksum is looked at."""
        table = self._open()
        counts = Counter[str]()
        for rows in () if table is None else table.search().to_batches(_BATCH):
            counts.update(key for key, _ in self._ids_and_vectors(rows))
        twice = [key for key, count in counts.items() if count > 1]
        return [f"The table of vectors {str(self.path)!r} has two vectors of the id {key!r}." for key in twice]

    def _ids_and_vectors(self, rows: Any) -> Iterator[tuple[str, Half]]:
        """The ids of `rows`, each with its vector in 16 bits.

        Raises:
            StoreError: a checksum does not fit.
        """
        column = rows["vector"]
        column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        numbers = cast("NDArray[np.float32]", column.fill_null([0.0] * self._size).flatten().to_numpy())
        vectors = numbers.reshape(-1, self._size)
        for key, vector, checksum in zip(rows["id"].to_pylist(), vectors, rows["sum"].to_pylist(), strict=True):
            if checksum != _sum(key, vector):
                raise self._damaged(f"the checksum of the vector of {key!r} does not fit")
            yield key, vector.astype("<f2")

    def _damaged(self, why: str) -> StoreError:
        return StoreError(f"The table of vectors {str(self.path)!r} cannot be used: {why}.", hint=_SOUND)


def _sum(key: str, vector: NDArray[np.float32]) -> int:
    return crc32(vector.astype("<f4").tobytes(), crc32(key.encode("utf-8", "surrogatepass")))


def _names_places(manifest: Path) -> bool:
    """Whether a manifest of LanceDB says where else its files lie, which may be any address that LanceDB reads from.

    A manifest is a message of protobuf (`Manifest` in Lance's `table.proto`); the end of its file says where it begins.

    Raises:
        LookupError, struct.error: it is no manifest.
    """
    with manifest.open("rb") as file:
        content = file.read(_MOST_BYTES)
    (start,) = unpack("<Q", content[-16:-8])
    (size,) = unpack("<I", content[start : start + 4])
    return _BASE_PATHS in _fields(content[start + 4 : start + 4 + size])


def _fields(message: bytes) -> Iterator[int]:
    """The numbers of the fields of a message of protobuf."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        value, behind = _varint(message, place) if tag & 7 in {0, 2} else (0, place)
        sizes = {0: behind - place, 1: 8, 2: behind - place + value, 5: 4}
        place += sizes[tag & 7]
        yield tag >> 3


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """A whole number of protobuf, and the place behind it."""
    value = shift = 0
    while True:
        value |= (message[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if message[place - 1] < 128 or shift > 63:
            return value, place


def _one_of(ids: Sequence[str]) -> str:
    """The condition, in LanceDB's SQL, that a row has one of `ids`."""
    texts = ", ".join("'{}'".format(key.replace("'", "''")) for key in ids)
    return f"id IN ({texts})"
