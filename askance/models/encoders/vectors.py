"""Vectors: in records, and beside them in files, where an encoder has one row for each of its vectors.

`vectors/DIGEST.rows` in the store's folder begins with a line that says whose vectors these are. Then come rows of one
size: 32 bytes of key, 4 of checksum, and numbers of 16 bits. A file only grows, and is read through a memory
map. So a copy of it can be used at any moment: at most it lacks the rows that were being written. Half a row, which a
crash may leave, is cut off by the next writer. A row whose checksum does not match is an error. Writers take turns by a
lock that is freed when their process ends.

The file is a cache: what a run used is on record, and without the file vectors are made anew. Vectors have the length 1
and are rounded to 16 bits before they are used, so that it makes no difference whether they were kept. The products of
two such vectors add up in 64 bits without rounding, so that results do not depend on the order of the sums.
"""

from __future__ import annotations

import binascii
import errno
import json
import logging
import math
import os
import struct
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from operator import mul
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

from askance.documents import parse_json
from askance.errors import BadRecord, ModelError, StoreError, UsageError
from askance.replay import DAMAGED_HINT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.chat import JsonObject

    Half: TypeAlias = NDArray[np.float16]

# --- in records: numbers of 32 bits ---

Vector: TypeAlias = tuple[float, ...]
"""Numbers of 32 bits each: what a record holds, so that a replay gives the very same."""

_FIELD = "float32"
"""Field of a response: the numbers in base64, four bytes each, the lowest first."""


def packed(vector: Sequence[float], *, by: str) -> JsonObject:
    """The response that holds `vector`; `by` is who made it.

    Raises:
        ModelError: it is empty, or one of its numbers is none or too large for 32 bits.
    """
    try:
        data = struct.pack(f"<{len(vector)}f", *vector)
        sound = all(map(math.isfinite, vector))
    except (OverflowError, TypeError, struct.error):
        data, sound = b"", False
    if not data or not sound:
        raise _no_vector(by)
    return {_FIELD: b64encode(data).decode("ascii"), "size": len(vector)}


def checked_vectors(vectors: Sequence[Sequence[float]], count: int, *, by: str) -> Sequence[Sequence[float]]:
    """`vectors`, if they are `count` lists of numbers of one size; `by` is who made them.

    Raises:
        ModelError: they are not. Whether the numbers are finite is seen where they are kept.
    """
    import numpy as np

    try:
        sizes = {len(vector) for vector in vectors}
        if len(vectors) != count or len(sizes) > 1:
            problem = "of different sizes" if len(sizes) > 1 else f"{len(vectors)} in all"
            raise ModelError(f"{by!r} was asked for {count} vectors of one size and gave some {problem}.")
        numbers = np.asarray(vectors, dtype=np.float64)
        sound = not count or (numbers.ndim == 2 and numbers.size > 0)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise _no_vector(by)
    return vectors


def _no_vector(by: str) -> ModelError:
    return ModelError(f"{by!r} gave a vector that is empty or holds something that is no number of 32 bits.")


def unpacked(response: Mapping[str, Any], *, key: str) -> Vector:
    """The vector in a response; `key` is that of its record.

    Raises:
        BadRecord: it holds none.
    """
    try:
        data = b64decode(response[_FIELD], validate=True)
        vector = struct.unpack(f"<{len(data) // 4}f", data)
        if vector and len(vector) == response["size"] and all(map(math.isfinite, vector)):
            return vector
    except (KeyError, TypeError, ValueError, binascii.Error, struct.error):
        pass
    raise BadRecord(f"The record {key[:12]!r} holds no vector.", hint=DAMAGED_HINT)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, from −1 to 1; 0 where one has no length.

    Raises:
        UsageError: they are not of one size.
    """
    same_size(len(one), len(other))
    lengths = math.hypot(*one) * math.hypot(*other)
    return max(-1.0, min(1.0, sum(map(mul, one, other)) / lengths)) if lengths else 0.0


def same_size(one: int, other: int) -> None:
    """Refuses to compare vectors of `one` and of `other` numbers where those differ.

    Raises:
        UsageError: they differ.
    """
    if one != other:
        raise UsageError(
            f"Vectors of {one} and of {other} numbers cannot be compared.", hint="Make them by one encoder."
        )


# --- in files: rows of 16 bits ---

FOLDER = "vectors"
"""In the store's folder."""

MAGIC = b"askance vectors 1 "
KEY, _SUM = 32, 4
"""Bytes of a row before its numbers."""
_ALIGNED = 64
_LONGEST_HEADER = 100_000

BLOCK = 4096
"""Vectors that are looked at at a time."""
LONGEST_TURN = 60.0
"""Seconds for which another process that writes is waited for."""
_log = logging.getLogger("askance")


class VectorFile:
    """The vectors of one encoder on disk; safe with several threads and processes.

    The keys of all rows are held in memory, about 150 bytes each; the numbers are not.

    Args:
        folder: of the store.
        about: says whose vectors these are, as JSON.
    """

    def __init__(self, folder: Path, about: JsonObject) -> None:
        self.about = json.dumps(about, sort_keys=True)
        self.path = folder / FOLDER / f"{sha256(self.about.encode()).hexdigest()[:32]}.rows"
        self._lock = Lock()
        self._told = False
        self._forget()

    def find(self, keys: Sequence[str]) -> dict[str, Half]:
        """Of `keys`, those that are here, with their vectors.

        Raises:
            StoreError: the file is none of vectors, or one of the rows is damaged.
        """
        with self._lock:
            self._look()
            return {key: self._stored_vector(key) for key in dict.fromkeys(keys) if bytes.fromhex(key) in self._places}

    def keys(self) -> list[str]:
        """The keys of all rows that are here, in their order.

        Raises:
            StoreError: the file is none of vectors.
        """
        with self._lock:
            self._look()
            return [key.hex() for key in self._places]

    def matrix(self) -> tuple[list[str], NDArray[np.float32]]:
        """The keys of all rows that are here, and their vectors as one matrix; 32 bits hold numbers of 16 exactly.

        Raises:
            StoreError: the file is none of vectors, or one of the rows is damaged or holds something that is no number.
        """
        import numpy as np

        with self._lock:
            self._look()
            places = np.fromiter(self._places.values(), dtype=np.int64)
            matrix = np.empty((len(places), self._size), dtype=np.float32)
            for start in range(0, len(places), BLOCK):
                some = places[start : start + BLOCK]
                rows = self._rows[some]
                self._check(rows, some)
                matrix[start : start + BLOCK] = rows["vector"]
                numbers = np.isfinite(matrix[start : start + BLOCK]).all(axis=1)
                if not numbers.all():
                    raise _damaged(self.path, f"row {some[~numbers][0]:,} holds something that is no number")
            return [key.hex() for key in self._places], matrix

    def keep(self, vectors: Mapping[str, Half]) -> None:
        """As `write`; warns once where the disk fails.

        Raises:
            StoreError: the file is none of vectors, or of vectors of another size.
        """
        try:
            self.write(vectors)
        except OSError as error:
            if not self._told:
                self._told = True
                _log.warning("Vectors cannot be kept in %s and are made anew in the next run: %s.", self.path, error)

    def verify(self) -> Iterator[str]:
        """What is wrong with the file, in words; nothing is, as a rule."""
        with self._lock:
            try:
                self._look()
            except StoreError as error:
                yield str(error)
                return
            for key in self._places:
                try:
                    self._stored_vector(key.hex())
                except StoreError as error:
                    yield str(error)

    def write(self, vectors: Mapping[str, Half]) -> None:
        """Writes the vectors that are not here yet, on the disk when this returns.

        Raises:
            StoreError: the file is none of vectors, or of vectors of another size.
            OSError: they cannot be written, or another process writes for longer than `LONGEST_TURN`.
        """
        if not vectors:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, self._turn():
            size = len(next(iter(vectors.values())))
            if not self.path.exists():
                _begin(self.path, self.about, size)
            self._look()
            fresh = {key: vector for key, vector in vectors.items() if bytes.fromhex(key) not in self._places}
            if size != self._size:
                raise _damaged(self.path, f"its rows have {self._size} numbers, and now they are {size}")
            with self.path.open("r+b") as file:
                end = file.seek(0, os.SEEK_END)
                end -= (end - self._start) % self._step
                file.truncate(end)
                file.seek(end)
                file.write(b"".join(_packed(key, vector) for key, vector in fresh.items()))
                file.flush()
                os.fsync(file.fileno())
            self._look()

    @contextmanager
    def _turn(self) -> Generator[None]:
        """Keeps other processes from writing. Once keeping has failed, nobody waits for them any more."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.path.parent / "lock", timeout=0 if self._told else LONGEST_TURN)
        try:
            lock.acquire()
        except Timeout as error:
            msg = f"another process has held {lock.lock_file!r} for {LONGEST_TURN:g} s"
            raise TimeoutError(errno.ETIMEDOUT, msg) from error
        try:
            yield
        finally:
            lock.release()

    def _forget(self) -> None:
        self._file = (0, 0)
        self._start = self._size = self._step = self._count = 0
        self._rows: Any = None
        self._places: dict[bytes, int] = {}

    def _look(self) -> None:
        """Takes in what was added since the last look."""
        import numpy as np

        try:
            state = self.path.stat()
        except FileNotFoundError:
            self._forget()
            return
        file = (state.st_dev, state.st_ino)
        if file != self._file or (state.st_size - self._start) // max(1, self._step) < self._count:
            self._forget()
            self._read_header()
            self._file = file
        count = (state.st_size - self._start) // self._step
        if count == self._count:
            return
        row = np.dtype([("key", f"V{KEY}"), ("sum", "<u4"), ("vector", "<f2", (self._size,))])
        self._rows = np.memmap(self.path, dtype=row, mode="r", offset=self._start, shape=(count,))
        added: list[bytes] = self._rows["key"][self._count :].tolist()
        self._places.update(zip(added, range(self._count, count), strict=True))
        self._count = count

    def _read_header(self) -> None:
        try:
            about, self._size, self._start = _header(self.path)
        except ValueError:
            raise _damaged(self.path, "it does not begin as one") from None
        if about != self.about:
            raise _damaged(self.path, "it is another encoder's")
        self._step = KEY + _SUM + 2 * self._size

    def _stored_vector(self, key: str) -> Half:
        place = self._places[bytes.fromhex(key)]
        row = self._rows[place : place + 1]
        self._check(row, (place,))
        vector: Half = row["vector"][0].copy()
        return vector

    def _check(self, rows: Any, places: Iterable[int]) -> None:
        """Raises StoreError where the checksum of one of `rows`, which stand at `places`, does not fit."""
        data = memoryview(rows.tobytes())
        sums: list[int] = rows["sum"].tolist()
        for start, place, checksum in zip(range(0, len(data), self._step), places, sums, strict=True):
            vector = data[start + KEY + _SUM : start + self._step]
            if checksum != crc32(vector, crc32(data[start : start + KEY])):
                raise _damaged(self.path, f"the checksum of row {place:,} does not fit")


class MemoryVectors:
    """The vectors of an encoder where there is no folder: the latest 4,096, in memory."""

    MOST = 4096

    def __init__(self) -> None:
        self._vectors: dict[str, Half] = {}

    def find(self, keys: Sequence[str]) -> dict[str, Half]:
        """Of `keys`, those that are here, with their vectors."""
        return {key: self._vectors[key] for key in keys if key in self._vectors}

    def keep(self, vectors: Mapping[str, Half]) -> None:
        """Holds `vectors`."""
        self._vectors.update(vectors)
        for key in list(self._vectors)[: max(0, len(self._vectors) - self.MOST)]:
            del self._vectors[key]


def half(vector: Any) -> Half:
    """`vector`, numbers of any kind, at the length 1 and in 16 bits; one that is so but for rounding stays as it is.

    Raises:
        ModelError: it holds something that is no number.
    """
    import numpy as np

    numbers = np.asarray(vector, dtype=np.float64)
    length = float(np.sqrt((numbers * numbers).sum()))
    if not math.isfinite(length):
        raise ModelError(
            "An encoder gave a vector that holds something that is no number.",
            hint="In float16 numbers may run over: give `dtype=float32`. Or its weights are damaged.",
        )
    # Rounding to 16 bits changes a number by a part of 2⁻¹¹ at most, and so the length.
    if abs(length - 1) < 2**-10 and bool((numbers == numbers.astype("<f2")).all()):
        return numbers.astype("<f2")
    return (numbers / length if length else numbers).astype("<f2")


def cosine_of(one: Half, other: Half) -> float:
    """The cosine of two vectors, from −1 to 1; 0 where one has no length. The sums are not rounded."""
    import numpy as np

    left, right = one.astype(np.float64), other.astype(np.float64)
    lengths = float(np.sqrt(left @ left)) * float(np.sqrt(right @ right))
    return max(-1.0, min(1.0, float(left @ right) / lengths)) if lengths else 0.0


def mean_of(vectors: Sequence[Half]) -> Half:
    """The mean of vectors of the length 1, brought to the length 1; a single one stays as it is."""
    import numpy as np

    return vectors[0] if len(vectors) == 1 else half(np.stack(vectors).astype(np.float64).mean(axis=0))


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Vectors as the rows of a matrix, for their cosines with one vector after another; some belong together."""

    _rows: NDArray[np.float64]
    _lengths: NDArray[np.float64]
    _starts: Sequence[int]
    """The first row of each group."""

    @classmethod
    def of(cls, groups: Sequence[Sequence[Half]]) -> VectorRows:
        """The rows of groups, of which each is one vector or several."""
        import numpy as np

        vectors = [vector for group in groups for vector in group]
        rows = np.stack(vectors).astype(np.float64) if vectors else np.empty((0, 0))
        starts = list(accumulate((len(group) for group in groups), initial=0))[:-1]
        return cls(rows, np.sqrt((rows * rows).sum(axis=1)), starts)

    def cosines(self, vector: Half) -> list[float]:
        """Of each group its cosine with a vector, as `cosine_of` gives it; of several vectors the highest."""
        import numpy as np

        if not self._starts:
            return []
        other = vector.astype(np.float64)
        lengths = self._lengths * float(np.sqrt(other @ other))
        cosines = np.divide(self._rows @ other, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return np.maximum.reduceat(np.clip(cosines, -1, 1), self._starts).tolist()


def files_in(folder: Path) -> list[Path]:
    """The files of vectors in a store's folder."""
    return sorted((folder / FOLDER).glob("*.rows"))


def verify_files(folder: Path) -> Iterator[str]:
    """What is wrong with the files of vectors in a store's folder, in words."""
    for path in files_in(folder):
        try:
            file = VectorFile(folder, json.loads(_header(path)[0]))
        except ValueError:
            yield str(_damaged(path, "it does not begin as one"))
            continue
        if file.path.name == path.name:
            yield from file.verify()
        else:
            yield str(_damaged(path, "it has the name of another encoder's"))


def _header(path: Path) -> tuple[str, int, int]:
    """Whose vectors a file holds, how many numbers each has, and where they begin.

    Raises:
        ValueError: it is no file of vectors.
    """
    with path.open("rb") as file:
        first = file.read(_LONGEST_HEADER).partition(b"\n")[0]
    try:
        header: JsonObject = parse_json(first.removeprefix(MAGIC)) if first.startswith(MAGIC) else {}
        size, about = int(header["size"]), json.dumps(header["encoder"], sort_keys=True)
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
    if size < 1:
        msg = f"vectors of {size} numbers"
        raise ValueError(msg)
    return about, size, len(first) + 1


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(
        f"The file of vectors {str(path)!r} cannot be used: {why}.",
        hint="Delete it: its vectors are made anew from the weights, and no record depends on it.",
    )


def _packed(key: str, vector: Half) -> bytes:
    name, numbers = bytes.fromhex(key), vector.astype("<f2").tobytes()
    return name + crc32(name + numbers).to_bytes(_SUM, "little") + numbers


def _begin(path: Path, about: str, size: int) -> None:
    """Makes the file with its first line, whole or not at all."""
    header = json.dumps({"encoder": json.loads(about), "size": size}, sort_keys=True).encode()
    blank = -(len(MAGIC) + len(header) + 1) % _ALIGNED
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(MAGIC + header + b" " * blank + b"\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
