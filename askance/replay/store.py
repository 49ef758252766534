"""The record store: one SQLite file, many readers and writers.

diskcache writes the file. It does not read it: opening a diskcache writes to the disk, which a read-only disk forbids
and a replay does not need.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from askance import replay
from askance.amounts import many
from askance.errors import DamagedRecord, StoreError
from askance.replay import database
from askance.replay.database import (
    DATABASE,
    MAX_VALUE,
    StoreWriter,
    checkpoint,
    may_write,
    open_writer,
    refuse_network,
    row_text,
    vacuum,
)
from askance.replay.held_file import WAY_OUT, HeldFile, Patience
from askance.replay.leases import StoreLeases
from askance.replay.reader import StoreReader, StoreRow
from askance.replay.record import (
    Record,
    RecordKind,
    Records,
    check_key,
    in_blocks,
    record_in_row,
    recorded_response,
)
from askance.trust import warn_world_writable

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.replay.ledger import Budget
    from askance.replay.sqlite_ledger import SqliteLedger

BUDGETS = "budgets"
"""Folder beside the records, of ledgers."""

_ROW_OVERHEAD = 4096
"""Most bytes of the other columns of a row."""

_TEXT_KEY = "raw = 1 AND typeof(key) = 'text'"
_ROW = "SELECT key, mode, filename, value, rowid FROM Cache"
_GET = f"{_ROW} WHERE key = ? AND raw = 1"
_GET_ALL = f"{_ROW} WHERE key IN (SELECT value FROM json_each(?)) AND raw = 1"
_VALUE = "SELECT mode, filename, value FROM Cache WHERE key = ? AND raw = 1"
_ALL = f"{_ROW} WHERE key > ? AND {_TEXT_KEY} ORDER BY key LIMIT 64"
_KIND = f"{_ROW} WHERE rowid > ? AND tag = ? AND {_TEXT_KEY} ORDER BY rowid LIMIT 64"
_KEYS = f"SELECT key FROM Cache WHERE key > ? AND {_TEXT_KEY} ORDER BY key LIMIT 1024"
_COUNT = f"SELECT count(*) FROM Cache WHERE {_TEXT_KEY}"
_COUNT_FOREIGN = f"SELECT count(*) FROM Cache WHERE NOT ({_TEXT_KEY})"


class Store(Records):
    """Records on disk, safe with several threads and processes.

    A store that does not exist is empty; folder and file are made by the first `put`. `open_records` opens it.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self._folder = folder
        self._read_only = read_only
        self._reader = StoreReader(folder)
        self._writer: StoreWriter | None = None
        self._opening = Lock()
        self._patience = Patience(folder / DATABASE)

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False) -> Store:
        """The store in the folder, whose file is looked at if there is one.

        Raises:
            StoreError: what is there is not a store, or one of another version; or it would be written and is on a
                network file system.
        """
        store = cls(folder, read_only=read_only)
        if not read_only:
            refuse_network(store.folder)
        store._reader.check()
        for place in (store.folder, store.folder / DATABASE):
            warn_world_writable(place)
        return store

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Store.open, read_only=self._read_only), (self._folder.absolute(),)

    def __repr__(self) -> str:
        return f"Store({self.name!r})"

    @property
    def name(self) -> str:
        """The folder."""
        return str(self._folder)

    @property
    def folder(self) -> Path:
        """The folder, in which leases and batches are kept beside the records."""
        return self._folder

    @property
    def writable(self) -> bool:
        """Whether the store was opened for writing and the disk allows it."""
        if self._read_only:
            return False
        file = self.folder / DATABASE
        folder = next(spot for spot in file.parents if os.path.lexists(spot))
        return folder.is_dir() and may_write(folder) and (not file.exists() or may_write(file))

    def leases(self) -> StoreLeases | None:
        """The leases of calls that are not on record, among all processes; None where the store cannot be written."""
        return StoreLeases(self.folder) if self.writable else None

    def ledger(self, name: str, budget: Budget, /) -> SqliteLedger:
        """The ledger of a budget, by its name, in a file beside the records.

        Raises:
            ConfigError: this system has no POSIX locks, by which it is known that a process has ended.
        """
        return replay.SqliteLedger(self.folder / BUDGETS / f"{name}.db", budget)

    def get(self, key: str, /) -> Record | None:
        """The record with this key, or None.

        Raises:
            StoreError: the store cannot be read.
            DamagedRecord: the row is no record.
        """
        row = self._reader.one(_GET, (key,))
        return None if row is None else _record(row)

    def get_all(self, keys: Iterable[str], /) -> dict[str, Record]:
        """By key, in the order of `keys`: the records that are there; one query reads a block of them.

        Raises:
            StoreError: the store cannot be read.
            DamagedRecord: a row is no record.
        """
        records: dict[str, Record] = {}
        for block in in_blocks(dict.fromkeys(keys)):
            rows = {row[0]: row for row in self._reader.all(_GET_ALL, (json.dumps(block),))}
            records |= {key: _record(rows[key]) for key in block if key in rows}
        return records

    def answer(self, key: str, canonical_text: str, /) -> JsonObject | None:
        """The response to a chat request, by its key and its canonical JSON; None where it is not on record.

        Raises:
            StoreError: the store cannot be read.
            DamagedRecord: the row is no record.
        """
        row = self._reader.one(_VALUE, (key,))
        if row is None:
            return None
        try:
            response = recorded_response(row_text(*row), key=key, canonical_text=canonical_text)
        except (ValueError, RecursionError, StoreError):
            response = None
        if response is None:  # decode all of it, which also says what is wrong with it
            record = self.get(key)
            response = None if record is None else record.response
        return response

    def put_all(self, records: Iterable[Record], /) -> None:
        """Keep all of the records or none; they are on disk, whole, when this returns.

        Raises:
            StoreError: the store cannot be written, or a key is not that of the request.
        """
        self._write([(record.key, _checked_json(record), record.kind) for record in records])

    def _write(self, rows: Sequence[tuple[str, str, str]]) -> None:
        self._refuse_read_only()
        try:
            with self._patience.waiting(database.BUSY_TIMEOUT):
                (self._writer or self._open_writer()).set_all(rows)
        except (OSError, sqlite3.Error) as error:
            raise self._write_error(error) from error

    def put_texts(self, rows: Iterable[tuple[str, str, str]], /) -> None:
        """Keep records of another store as they stand there: key, text and kind. They are checked when they are read.

        Raises:
            StoreError: the store cannot be written.
        """
        self._write([*rows])

    def remove(self, keys: Iterable[str], /) -> None:
        """Deletes the records with these keys, where there are any, and shrinks the file.

        Raises:
            StoreError: the store cannot be written.
        """
        self._refuse_read_only()
        going = list(keys)
        if not going or not (self.folder / DATABASE).exists():
            return
        try:
            with self._patience.waiting(database.BUSY_TIMEOUT):
                (self._writer or self._open_writer()).remove(going)
        except (OSError, sqlite3.Error) as error:
            raise self._write_error(error) from error
        vacuum(self.folder)

    def keys(self) -> Iterator[str]:
        """The keys, sorted."""
        last = ""
        while page := self._reader.all(_KEYS, (last,)):
            for (key,) in page:
                yield (last := cast("str", key))

    def __iter__(self) -> Iterator[Record]:
        """The records, sorted by key; a few are held at a time.

        Raises:
            StoreError: the store cannot be read.
            DamagedRecord: a row is no record.
        """
        return map(_record, self._rows(None))

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The records of one kind, in the order in which they were added; a few are held at a time.

        Raises:
            StoreError: the store cannot be read.
            DamagedRecord: a row is no record.
        """
        return map(_record, self._rows(kind))

    def readable(self, kind: RecordKind | None = None, /, *, damaged: set[str] | None = None) -> Iterator[Record]:
        """The records, or those of one kind, without those that are damaged: for comparisons and counts.

        Args:
            kind: None is every kind.
            damaged: the keys of what is left out are added to it.

        Raises:
            StoreError: the store cannot be read at all.
        """
        for row in self._rows(kind):
            try:
                record = _record(row)
            except DamagedRecord:
                if damaged is not None:
                    damaged.add(cast("str", row[0]))
                continue
            yield record

    def __len__(self) -> int:
        row = self._reader.one(_COUNT)
        return 0 if row is None else cast("int", row[0])

    def damages(self) -> Iterator[str]:
        """What is wrong with the file itself, in words.

        Raises:
            StoreError: the store cannot be read at all.
        """
        messages = self._reader.all("PRAGMA quick_check")
        yield from (str(message) for (message,) in messages if message != "ok")
        strange = self._reader.one(_COUNT_FOREIGN)
        if strange is not None and strange[0]:
            yield (
                many(
                    cast("int", strange[0]),
                    "row has a key that is no text; it is",
                    "rows have a key that is no text; they are",
                )
                + " never read"
            )

    def close(self) -> None:
        """Closes the file; a later call opens it again."""
        self._reader.close()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            checkpoint(self.folder)

    def _rows(self, kind: RecordKind | None) -> Iterator[StoreRow]:
        """The rows, sorted by key; those of one kind in the order in which they were added."""
        if kind is None:
            last: object = ""
            while page := self._reader.all(_ALL, (last,)):
                yield from page
                last = page[-1][0]
        else:
            last = -1
            while page := self._reader.all(_KIND, (last, kind)):
                yield from page
                last = page[-1][-1]

    def _refuse_read_only(self) -> None:
        if self._read_only:
            msg = f"The record store {self.name!r} is open for reading only."
            raise StoreError(msg, hint="Open it for writing, or replay what it holds.")

    def _open_writer(self) -> StoreWriter:
        with self._opening:
            if self._writer is None:
                self._writer = open_writer(self.folder)
            return self._writer

    def _write_error(self, error: Exception) -> StoreError:
        msg = f"The record store {self.name!r} cannot be written: {error}."
        if isinstance(error, HeldFile):
            return StoreError(msg, hint=f"{WAY_OUT} name another folder with ASKANCE_STORE.")
        return StoreError(msg, hint="Name a folder that can be written with ASKANCE_STORE, or replay with --replay.")


def _checked_json(record: Record) -> str:
    """The JSON text of a record, as it is written.

    Raises:
        StoreError: its key is not that of the request, or it is too long.
    """
    check_key(record)
    text = record.to_json()
    if len(text) > MAX_VALUE // 4 and len(text.encode()) > MAX_VALUE - _ROW_OVERHEAD:
        msg = f"The record {record.key[:12]!r} is longer than {MAX_VALUE} bytes."
        raise StoreError(msg, hint="Ask for less at once: fewer texts in a call, a shorter answer (`max_tokens`).")
    return text


def _record(row: StoreRow) -> Record:
    """The record in a row, whose other columns are not trusted.

    Raises:
        DamagedRecord: the row holds none, or one with another key.
    """
    key, mode, filename, value, _ = row
    return record_in_row(str(key), lambda: row_text(mode, filename, value))
