"""The ledger of a budget in a small SQLite file, which all processes of a machine share.

A process that is killed leaves its reservations behind. They keep counting. When another process lacks budget, they are
settled at their worst case, since what those calls cost is not known. Each process holds a lock on a file of its own;
the operating system frees it when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import uuid4

from askance.errors import ConfigError, OverBudget, StoreError
from askance.process_lock import ProcessLock, has_ended, has_locks
from askance.replay import database
from askance.replay.held_file import WAY_OUT, HeldFile, Patience
from askance.replay.ledger import NOTHING, Balance, Budget, Cost

VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS spent (one INTEGER PRIMARY KEY CHECK (one = 1), nanodollars INTEGER, tokens INTEGER,
    calls INTEGER, lost_nanodollars INTEGER, lost_tokens INTEGER, lost_calls INTEGER) STRICT;
CREATE TABLE IF NOT EXISTS reserved (id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, nanodollars INTEGER,
    tokens INTEGER, calls INTEGER) STRICT;
INSERT OR IGNORE INTO spent VALUES (1, 0, 0, 0, 0, 0, 0);
"""
_SPENT = "SELECT nanodollars, tokens, calls FROM spent"
_RESERVE = "INSERT INTO reserved (owner, nanodollars, tokens, calls) VALUES (?, ?, ?, ?)"
_LOST = "SELECT lost_nanodollars, lost_tokens, lost_calls FROM spent"
_SUM = "SELECT coalesce(sum(nanodollars), 0), coalesce(sum(tokens), 0), coalesce(sum(calls), 0) FROM reserved"
_SPEND = "UPDATE spent SET nanodollars = nanodollars + ?, tokens = tokens + ?, calls = calls + ?"
_LOSE = (
    "UPDATE spent SET lost_nanodollars = lost_nanodollars + ?, lost_tokens = lost_tokens + ?, "
    "lost_calls = lost_calls + ?"
)


_OF_BATCH = "batch:"
"""What the owner of a batch's reservation begins with."""


class SqliteLedger:
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
        self.path = path
        self.budget = budget
        self._lock = RLock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._owner = ""
        self._alive: ProcessLock | None = None
        self._patience = Patience(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return SqliteLedger, (self.path.absolute(), self.budget)

    def reserve(self, worst: Cost, /, *, what: str = "the next call") -> int | None:
        with self._changing() as ledger:
            if not self._fits(ledger, worst, what, waits_for="no batch"):
                return None
            return ledger.execute(_RESERVE, (self._owner, *_amounts(worst))).lastrowid

    def settle(self, reservation: int, actual: Cost, /) -> None:
        with self._changing() as ledger:
            if ledger.execute("DELETE FROM reserved WHERE id = ?", (reservation,)).rowcount:
                ledger.execute(_SPEND, _amounts(actual))

    def place_of(self, folder: Path, /) -> str:
        """See `Ledger`; it stays the same when the file and the folder are moved together."""
        place = os.path.relpath(folder, self.path.parent)
        return sha256(os.fsencode(place)).hexdigest()[:16]

    def hold(self, batch: str, worst: Cost, /, *, what: str = "the next call") -> bool:
        owner = _OF_BATCH + batch
        with self._changing() as ledger:
            if not self._fits(ledger, worst, what, waits_for=f"{_OF_BATCH}{batch.partition(':')[0]}:"):
                return False
            held = _cost(ledger, f"{_SUM} WHERE owner = ?", owner)
            ledger.execute("DELETE FROM reserved WHERE owner = ?", (owner,))
            ledger.execute(_RESERVE, (owner, *_amounts(held + worst)))
            return True

    def trim(self, batch: str, worst: Cost, /) -> None:
        with self._changing() as ledger:
            ledger.execute(
                "UPDATE reserved SET nanodollars = ?, tokens = ?, calls = ? WHERE owner = ?",
                (*_amounts(worst), _OF_BATCH + batch),
            )

    def held(self, place: str, /) -> list[str]:
        start = f"{_OF_BATCH}{place}:"
        with self._changing() as ledger:
            owners = ledger.execute("SELECT DISTINCT owner FROM reserved").fetchall()
        return [owner.removeprefix(_OF_BATCH) for (owner,) in owners if owner.startswith(start)]

    def settle_batch(self, batch: str, actual: Cost | None, /) -> None:
        owner = _OF_BATCH + batch
        with self._changing() as ledger:
            if actual is None:
                self._write_off(ledger, owner)
            elif ledger.execute("DELETE FROM reserved WHERE owner = ?", (owner,)).rowcount:
                ledger.execute(_SPEND, _amounts(actual))

    def balance(self) -> Balance:
        with self._changing() as ledger:
            self._write_off_ended(ledger)
            return Balance(spent=_cost(ledger, _SPENT), lost=_cost(ledger, _LOST), reserved=_cost(ledger, _SUM))

    def close(self) -> None:
        with self._lock:
            if self._process == os.getpid() and self._connection is not None:
                with contextlib.suppress(StoreError), self._changing() as ledger:
                    self._write_off(ledger, self._owner)
                self._connection.close()
                _alive_file(self.path, self._owner).unlink(missing_ok=True)
            if self._alive is not None:
                self._alive.close()
            self._connection = self._alive = None

    @contextlib.contextmanager
    def _changing(self) -> Generator[sqlite3.Connection]:
        """The file in a transaction: no other process writes meanwhile, and all changes are kept or none."""
        with self._lock:
            try:
                with self._patience.waiting(database.BUSY_TIMEOUT):
                    ledger = self._open()
                    ledger.execute("BEGIN IMMEDIATE")
                try:
                    yield ledger
                except OverBudget:
                    ledger.execute("COMMIT")  # what was settled on the way to a refusal stays so
                    raise
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        ledger.execute("ROLLBACK")
                    raise
                ledger.execute("COMMIT")
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

    def _write_off_ended(self, ledger: sqlite3.Connection) -> None:
        """Settles the reservations of processes that have ended."""
        owners = ledger.execute("SELECT DISTINCT owner FROM reserved WHERE owner != ?", (self._owner,)).fetchall()
        for (owner,) in owners:
            if not owner.startswith(_OF_BATCH) and has_ended(_alive_file(self.path, owner)):
                self._write_off(ledger, owner)

    def _write_off(self, ledger: sqlite3.Connection, owner: str) -> None:
        left = _cost(ledger, f"{_SUM} WHERE owner = ?", owner)
        if left != NOTHING:
            ledger.execute(_SPEND, _amounts(left))
            ledger.execute(_LOSE, _amounts(left))
            ledger.execute("DELETE FROM reserved WHERE owner = ?", (owner,))

    def _fits(self, ledger: sqlite3.Connection, worst: Cost, what: str, *, waits_for: str) -> bool:
        """Whether `worst` fits by now; not where it has to wait for calls of processes, or of batches named so.

        Raises:
            OverBudget: there is nothing to wait for.
        """
        if self.budget.allows(_cost(ledger, _SPENT) + _cost(ledger, _SUM) + worst):
            return True
        self._write_off_ended(ledger)
        spent = _cost(ledger, _SPENT)
        batches = _cost(
            ledger,
            f"{_SUM} WHERE substr(owner, 1, ?) = ? AND substr(owner, 1, ?) != ?",
            len(_OF_BATCH),
            _OF_BATCH,
            len(waits_for),
            waits_for,
        )
        if not self.budget.allows(spent + batches + worst):
            raise self._over(spent, worst, what, batches=batches)
        return self.budget.allows(spent + _cost(ledger, _SUM) + worst)

    def _over(self, spent: Cost, worst: Cost, what: str, *, batches: Cost) -> OverBudget:
        words = self.budget.words
        held = "" if batches == NOTHING else f", {words(batches)} set aside for batches under way"
        return OverBudget(
            f"The budget of {self.budget} is used up: {words(spent)} spent{held}, and {what} may take {words(worst)}.",
            hint="The same command with a larger budget goes on; a smaller `max_tokens` lowers what a call may take.",
        )


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


def _cost(ledger: sqlite3.Connection, query: str, *values: str | int) -> Cost:
    nanodollars, tokens, calls = ledger.execute(query, values).fetchone()
    return Cost(nanodollars=nanodollars, tokens=tokens, calls=calls)


def _amounts(amount: Cost) -> tuple[int, int, int]:
    return amount.nanodollars, amount.tokens, amount.calls


def _alive_file(path: Path, owner: str) -> Path:
    """The file that a process holds locked as long as it lives."""
    return path.with_name(f"{path.name}-{owner}.alive")
