"""The ledger of a budget in a small SQLite file, which all processes of a machine share.

A process that is killed leaves its reservations behind. They keep counting. When another process lacks budget, they are
settled at their worst case, since what those calls cost is not known. Each process holds a lock on a file of its own;
the operating system frees it when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar
from uuid import uuid4

from askance.errors import ConfigError, OverBudget, StoreError
from askance.process_lock import ProcessLock, has_ended, has_locks
from askance.replay import database
from askance.replay.held_file import WAY_OUT, HeldFile, Patience
from askance.replay.ledger import NOTHING, Balance, Budget, Cost
from askance.replay.table_ledger import OF_BATCH, LedgerTable, TableLedger

T = TypeVar("T")

VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS spent (one INTEGER PRIMARY KEY CHECK (one = 1), nanodollars INTEGER, tokens INTEGER,
    calls INTEGER, lost_nanodollars INTEGER, lost_tokens INTEGER, lost_calls INTEGER) STRICT;
CREATE TABLE IF NOT EXISTS reserved (id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, nanodollars INTEGER,
    tokens INTEGER, calls INTEGER) STRICT;
INSERT OR IGNORE INTO spent VALUES (1, 0, 0, 0, 0, 0, 0);
"""
_SUMS = "coalesce(sum(nanodollars), 0), coalesce(sum(tokens), 0), coalesce(sum(calls), 0)"


class SqliteLedger(TableLedger):
    """The ledger in a small file, which all processes of a machine share.

    Args:
        path: the file; it and its folder are made by the first reservation.
        budget: see `Ledger`.

    Raises:
        ConfigError: this system has no POSIX locks, by which it is known that a process has ended.
    """

    def __init__(self, path: Path, budget: Budget) -> None:
        if not has_locks():
            raise ConfigError(
                f"The budget of {budget} cannot be held: its ledger needs POSIX locks, which this system has not.",
                hint="Run without a budget; on Windows, run askance in WSL.",
            )
        super().__init__(budget)
        self.path = path
        self._lock = RLock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._alive: ProcessLock | None = None
        self._patience = Patience(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return SqliteLedger, (self.path.absolute(), self.budget)

    def place_of(self, folder: Path, /) -> str:
        """See `Ledger`; it stays the same when the file and the folder are moved together."""
        place = os.path.relpath(folder, self.path.parent)
        return sha256(os.fsencode(place)).hexdigest()[:16]

    def close(self) -> None:
        with self._lock:
            if self._process == os.getpid() and self._connection is not None:
                with contextlib.suppress(StoreError):
                    self._write_off_own()
                self._connection.close()
                _alive_file(self.path, self._owner).unlink(missing_ok=True)
            if self._alive is not None:
                self._alive.close()
            self._connection = self._alive = None

    def _change(self, work: Callable[[LedgerTable], T], /) -> T:
        """The result of `work` on the file, in a transaction: no other process writes meanwhile."""
        with self._lock:
            try:
                with self._patience.waiting(database.BUSY_TIMEOUT):
                    ledger = self._open()
                    ledger.execute("BEGIN IMMEDIATE")
                try:
                    result = work(_SqliteTable(ledger, self.path))
                except OverBudget:
                    ledger.execute("COMMIT")  # what was settled on the way to a refusal stays so
                    raise
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        ledger.execute("ROLLBACK")
                    raise
                ledger.execute("COMMIT")
                return result
            except (sqlite3.Error, OSError) as error:
                way_out = WAY_OUT if isinstance(error, HeldFile) else "Check the disk and its free space, or"
                raise StoreError(
                    f"The budget's ledger {str(self.path)!r} cannot be written: {error}.",
                    hint=f"No call is made without it. {way_out} run without a budget.",
                ) from error

    def _open(self) -> sqlite3.Connection:
        if self._process != os.getpid():
            # After a fork: these are the parent's connection and lock, and are not closed here.
            self._process, self._connection, self._alive = os.getpid(), None, None
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = _connected(self.path)
            self._owner = uuid4().hex
            self._alive = ProcessLock(_alive_file(self.path, self._owner))
            self._connection = connection
        return self._connection


def balance_in(path: Path) -> Balance:
    """Where the ledger in a file stands; it is only read. What a process that has ended had reserved is lost.

    Raises:
        StoreError: it cannot be.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            if connection.execute("PRAGMA user_version").fetchone() == (0,):  # nothing was written yet
                return Balance(spent=NOTHING, lost=NOTHING, reserved=NOTHING)
            table = _SqliteTable(connection, path)
            ended = sum(map(table.reserved_by, table.ended("", delete=False)), NOTHING)
            return Balance(spent=table.spent() + ended, lost=table.lost() + ended, reserved=table.reserved() - ended)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"The ledger {str(path)!r} cannot be read: {error}.", hint="Check its rights.") from error


class _SqliteTable:
    """The tables of the file, in a transaction; see `LedgerTable`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def spent(self) -> Cost:
        return self._cost("SELECT nanodollars, tokens, calls FROM spent")

    def lost(self) -> Cost:
        return self._cost("SELECT lost_nanodollars, lost_tokens, lost_calls FROM spent")

    def spend(self, amount: Cost, /, *, lost: bool = False) -> None:
        for before in ("", "lost_") if lost else ("",):
            columns = (f"{before}{unit} = {before}{unit} + ?" for unit in ("nanodollars", "tokens", "calls"))
            self._connection.execute(f"UPDATE spent SET {', '.join(columns)}", _amounts(amount))

    def reserved(self, start: str = "", /) -> Cost:
        return self._cost(f"SELECT {_SUMS} FROM reserved WHERE substr(owner, 1, ?) = ?", len(start), start)

    def reserved_by(self, owner: str, /) -> Cost:
        return self._cost(f"SELECT {_SUMS} FROM reserved WHERE owner = ?", owner)

    def reserve(self, reservation: int, owner: str, amount: Cost, /) -> None:
        self._connection.execute("INSERT INTO reserved VALUES (?, ?, ?, ?, ?)", (reservation, owner, *_amounts(amount)))

    def has(self, reservation: int, /) -> bool:
        return self._connection.execute("SELECT 1 FROM reserved WHERE id = ?", (reservation,)).fetchone() is not None

    def free(self, reservation: int, /) -> bool:
        return self._connection.execute("DELETE FROM reserved WHERE id = ?", (reservation,)).rowcount > 0

    def free_all(self, owner: str, /) -> bool:
        return self._connection.execute("DELETE FROM reserved WHERE owner = ?", (owner,)).rowcount > 0

    def owners(self) -> list[str]:
        return [owner for (owner,) in self._connection.execute("SELECT DISTINCT owner FROM reserved").fetchall()]

    def ended(self, own: str, /, *, delete: bool = True) -> list[str]:
        others = (owner for owner in self.owners() if owner != own and not owner.startswith(OF_BATCH))
        return [owner for owner in others if has_ended(_alive_file(self._path, owner), delete=delete)]

    def _cost(self, query: str, *values: str | int) -> Cost:
        nanodollars, tokens, calls = self._connection.execute(query, values).fetchone()
        return Cost(nanodollars=nanodollars, tokens=tokens, calls=calls)


def _connected(path: Path) -> sqlite3.Connection:
    """The file, open; SQLite waits for others by itself, but not where a journal begins or ends."""
    import tenacity  # only a run with a budget needs it

    waits = tenacity.Retrying(
        retry=tenacity.retry_if_exception(_is_locked),
        wait=tenacity.wait_random(0.01, 0.1),
        stop=tenacity.stop_after_delay(database.BUSY_TIMEOUT),
        reraise=True,
    )
    return waits(_open_file, path)


def _is_locked(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _open_file(path: Path) -> sqlite3.Connection:
    ledger = sqlite3.connect(path, timeout=database.BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        (version,) = ledger.execute("PRAGMA user_version").fetchone()
        if version not in {0, VERSION}:
            raise sqlite3.DatabaseError(f"it is of version {version}, and this is askance for version {VERSION}")
        ledger.execute("PRAGMA journal_mode = WAL")
        # A reservation is on the disk before its call starts, whatever happens to the machine.
        ledger.execute("PRAGMA synchronous = FULL")
        ledger.execute("BEGIN IMMEDIATE")
        for statement in _TABLES.split(";")[:-1]:
            ledger.execute(statement)
        ledger.execute(f"PRAGMA user_version = {VERSION}")
        ledger.execute("COMMIT")
    except BaseException:
        ledger.close()
        raise
    return ledger


def _amounts(amount: Cost) -> tuple[int, int, int]:
    return amount.nanodollars, amount.tokens, amount.calls


def _alive_file(path: Path, owner: str) -> Path:
    """The file that a process holds locked as long as it lives."""
    return path.with_name(f"{path.name}-{owner}.alive")
