"""Records in memory: a cassette that is only played, a test, a demonstration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from askance.errors import StoreError
from askance.replay.reading import read_cassette
from askance.replay.records import Record, RecordKind, check_key

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.replay.leases import Leases


class MemoryStore:
    """Records that end with the process."""

    def __init__(self, records: Iterable[Record] = (), *, name: str = "memory", writable: bool = True) -> None:
        self._records = {record.key: record for record in records}
        self._name = name
        self._writable = writable

    @classmethod
    def from_cassette(cls, path: Path | str, *, check: bool = True, writable: bool = False) -> MemoryStore:
        """The records of a cassette, by default to be read only.

        `check=False` believes the file: for one that ships with the package.

        Raises:
            CassetteError: a line is no record; the message names the line.
            StoreError: the file cannot be read.
        """
        return cls(read_cassette(path, check=check), name=str(path), writable=writable)

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r}, {len(self)} records)"

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return self._name

    @property
    def writable(self) -> bool:
        """Whether `put` works."""
        return self._writable

    def get(self, key: str, /) -> Record | None:
        """The record with this key, or None."""
        return self._records.get(key)

    @property
    def folder(self) -> Path | None:
        """None: nothing is on disk."""
        return None

    def leases(self) -> Leases | None:
        """None: no other process sees these records."""
        return None

    def answer(self, key: str, _asked: str, /) -> JsonObject | None:
        """The response to the request with this key, or None."""
        record = self._records.get(key)
        return None if record is None else record.response

    def put(self, record: Record, /) -> None:
        """Keep the record; one with the same key is replaced.

        Raises:
            StoreError: it is open for reading only, or the key is not that of the request.
        """
        self.put_all((record,))

    def put_all(self, records: Iterable[Record], /) -> None:
        """Keep all of the records or none; those with the same keys are replaced.

        Raises:
            StoreError: it is open for reading only, or a key is not that of the request.
        """
        if not self._writable:
            msg = f"The records of {self._name!r} are open for reading only."
            raise StoreError(msg, hint="Import the cassette into a store, or replay what it holds.")
        new = {record.key: record for record in records}
        for record in new.values():
            check_key(record)
        self._records |= new

    def keys(self) -> Iterator[str]:
        """The keys, in their order."""
        return iter(sorted(self._records))

    def __iter__(self) -> Iterator[Record]:
        """The records, in the order of their keys."""
        return (self._records[key] for key in self.keys())

    def __len__(self) -> int:
        return len(self._records)

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The records of one kind, the oldest first."""
        return iter([record for record in self._records.values() if record.kind == kind])
