"""The reader of a store's file: it changes nothing, and does without diskcache, which writes on opening a file."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from threading import Lock

from askance.errors import StoreError
from askance.replay import database
from askance.replay.database import (
    DATABASE,
    MAX_VALUE,
    check_file,
    may_write,
    network_file_system,
    refuse_link,
)
from askance.replay.held_file import WAY_OUT, is_busy

StoreRow = tuple[object, ...]


class StoreReader:
    """One connection for all threads of a process; a file that does not exist counts as empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._inherited: list[sqlite3.Connection] = []

    def one(self, query: str, values: StoreRow = ()) -> StoreRow | None:
        """The first row, or None.

        Raises:
            StoreError: the file is no store, is of another version, or cannot be read.
        """
        with self._lock:
            try:
                connection = self._connected()
                return None if connection is None else connection.execute(query, values).fetchone()
            except (sqlite3.Error, OSError) as error:
                raise self._store_error(error) from error

    def all(self, query: str, values: StoreRow = ()) -> list[StoreRow]:
        """All rows.

        Raises:
            StoreError: the file is no store, is of another version, or cannot be read.
        """
        with self._lock:
            try:
                connection = self._connected()
                return [] if connection is None else connection.execute(query, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                raise self._store_error(error) from error

    def check(self) -> None:
        """Open the file if there is one.

        Raises:
            StoreError: the file is no store, is of another version, or cannot be read.
        """
        self.one("SELECT 1")

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
                self._connection = None

    def _connected(self) -> sqlite3.Connection | None:
        """The connection, once the file and its tables are there."""
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        if self._process != os.getpid():
            self._forget_parents_connection()
        if (self._folder / DATABASE).exists():
            refuse_link(self._folder)
            connection = self._open(self._folder / DATABASE)
            try:
                ready = check_file(connection, self._folder)
            except (StoreError, sqlite3.Error):
                connection.close()
                raise
            if ready:
                self._connection = connection
            else:
                connection.close()
        return self._connection

    def _open(self, file: Path) -> sqlite3.Connection:
        """Opened for writing, so that SQLite can remove its journal and index; where that is not allowed, read-only."""
        journal = file.with_name(f"{file.name}-wal")
        pending = journal.exists() and journal.stat().st_size > 0
        if network_file_system(file.parent) is not None:
            if pending:
                msg = f"The record store {str(file.parent)!r} is on a network file system and was not closed."
                raise StoreError(msg, hint="Close it where it is written, or copy the folder to a local disk.")
            return _open(file, "immutable=1")
        try:
            return _open(file, "mode=rw")
        except sqlite3.OperationalError:
            if may_write(file.parent) or pending:
                raise
            # SQLite may not write its index beside the file; with an empty journal it does not need one.
            return _open(file, "immutable=1")

    def _forget_parents_connection(self) -> None:
        """Forgets, without closing, a connection that a fork has copied: closing it could damage the parent's."""
        if self._connection is not None:
            self._inherited.append(self._connection)
        self._connection, self._process = None, os.getpid()

    def _store_error(self, error: Exception) -> StoreError:
        held = isinstance(error, sqlite3.Error) and is_busy(error)
        why = (
            f"another process has held the file {str(self._folder / DATABASE)!r} for {database.BUSY_TIMEOUT:g} s"
            if held
            else str(error)
        )
        way_out = f"{WAY_OUT} name" if held else "Name"
        return StoreError(
            f"The record store {str(self._folder)!r} cannot be read: {why}.",
            hint=f"{way_out} another folder with ASKANCE_STORE, or bring the records in from a cassette.",
        )


def _open(file: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}?{how}",
        uri=True,
        timeout=database.BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
