"""Leases: two processes on one store do not pay for the same request twice.

A process that makes a call holds the lease of its key. Others wait until the answer is on record or the lease is free.
Leases of a batch belong to the batch, not to a process: until they are released, or the answers cannot be fetched any
more.

Leases are a SQLite table in the store's folder. Each process holds a lock on a file of its own, and the lock ends with
the process. A heartbeat, a number that rises every few seconds, shows that a process is not stopped. The wall clock is
not read, so that a jump of it does no harm, with one exception: the leases of a batch expire after 26 hours.

A recorded answer takes no lease, and no event loop waits for a process that holds the table. A table that is damaged,
or not ours, is set aside and begun anew. SQLite does not wait for the disk here: a power loss ends every process that
holds a lease, and costs at most the leases of batches.
"""

from __future__ import annotations

import atexit
import logging
import os
import sqlite3
import stat
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from pathlib import Path
from secrets import randbits
from threading import Event, Lock, Thread
from typing import Protocol, TypeVar

from askance.process_lock import ProcessLock, has_ended
from askance.replay.database import make_folder
from askance.replay.held_file import is_busy
from askance.terminal import printable

T = TypeVar("T")

_log = logging.getLogger("askance")

FILE = "leases.db"
BATCH_EXPIRY = 26 * 3600.0
"""Seconds after which the leases of a batch expire, even if its answers were not fetched."""
EXPIRY = 30.0
"""Seconds without a heartbeat after which a process counts as gone."""
HEARTBEAT = 5.0
"""Seconds between two heartbeats."""
_FIRST_POLL, _LAST_POLL = 0.05, 1.0
"""Seconds between two tries to take a lease that another holds: at first, and at most."""
_BUSY_WAIT = 0.002
"""Seconds to wait while another process changes the table."""

_TABLES = (
    "CREATE TABLE worker (owner INTEGER PRIMARY KEY, beat INTEGER NOT NULL) STRICT",
    "CREATE TABLE batch (owner INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kept TEXT, at REAL NOT NULL) STRICT",
    "CREATE TABLE lease (key BLOB PRIMARY KEY, owner INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX lease_owner ON lease (owner)",
)
"""The owner of a lease is a worker, which is a process, or a batch."""
_TAKE = "INSERT INTO lease VALUES (?, ?) ON CONFLICT DO NOTHING"
_TAKE_OVER = "UPDATE lease SET owner = ? WHERE key = ? AND owner = ?"
_RELEASE = "DELETE FROM lease WHERE key = ? AND owner = ?"
_OWNER = "SELECT owner FROM lease WHERE key = ?"
_BEAT_ROW = "UPDATE worker SET beat = beat + 1 WHERE owner = ?"
_BEGIN = (
    "INSERT INTO batch VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET kept = excluded.kept, at = excluded.at "
    "RETURNING owner"
)
_ASSIGN = (
    "INSERT INTO lease VALUES (?, ?) ON CONFLICT DO UPDATE SET owner = excluded.owner "
    "WHERE owner IN (excluded.owner, ?)"
)
_BATCHES = (
    "SELECT owner, name, kept, at FROM batch "
    "WHERE typeof(name) = 'text' AND typeof(kept) IN ('text', 'null') AND typeof(at) = 'real'"
)
_BATCH = f"{_BATCHES} AND owner = ?"

_MAX_ROW_BYTES = 2**16
"""Most bytes of a row, of which the path of a file is the longest part."""
_DAMAGED = {
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_TOOBIG),
    *(sqlite3.SQLITE_ERROR, None),
}
"""Primary codes of SQLite: the file is damaged or not ours."""


class Leases(Protocol):
    """Leases of requests among all processes that use the same records; usable from any thread.

    Keys are those of requests: 64 hex digits. Where leases cannot be kept, every call goes ahead without one: to pay
    twice is better than to have no answer.
    """

    def lease(self, key: str, done: Callable[[], bool], /) -> AbstractAsyncContextManager[None]:
        """Holds the lease of `key` once it is free; ends the wait without the lease as soon as `done()` is true."""
        ...

    def take(self, key: str, /, *, of: str = "") -> bool:
        """Holds the lease of `key` until `release`, without a wait; False where somebody else has it.

        Args:
            key: of a request.
            of: a batch that gives up its own leases; they count as free.
        """
        ...

    def owns(self, key: str, /) -> bool:
        """Whether this holds the lease of `key`."""
        ...

    def release(self, key: str, /) -> None:
        """Ends `take`; does nothing where another has taken over the lease because this one seemed to be gone."""
        ...

    def is_free(self, key: str, /) -> bool:
        """Whether nobody holds the lease of `key`."""
        ...

    def assign_to_batch(self, name: str, keys: Iterable[str], /, *, file: Path | None = None) -> bool:
        """Hands leases that this holds, or that are free, over to a batch.

        The batch holds them until `release_batch`, whatever becomes of this process.

        Args:
            name: of the batch.
            keys: of requests.
            file: what is needed to fetch the batch's answers; once it is deleted, the leases are free.

        Returns:
            False where another one holds one of them by now; the batch then holds none.

        Raises:
            OSError: leases cannot be kept; the batch holds none.
        """
        ...

    def release_batch(self, name: str, /) -> None:
        """Frees what a batch holds; nothing where it holds nothing."""
        ...

    def close(self) -> None:
        """Frees all leases that are still held, but not those of batches; a later call opens the leases again."""
        ...


class StoreLeases:
    """The leases in the folder of a store.

    They cannot be kept on a disk that is full or read-only, on a system without POSIX locks, and while a process is
    stopped in the middle of a change, since it holds SQLite's lock.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._lock = Lock()
        self._process = os.getpid()
        self._worker: _Worker | None = None
        self._parents: list[_Worker | None] = []
        """Workers that a fork has copied: closing one here could damage the parent's connection."""
        self._unreleased: set[bytes] = set()
        """Leases still to be released, because another process held the table."""
        self._busy_since: float | None = None
        self._heartbeats: dict[int, tuple[object, float]] = {}
        """By owner: the last heartbeat, and when it was first seen."""
        self._warned: set[str] = set()
        """Batches that calls wait for, and the table where it is held: each is said once."""

    @asynccontextmanager
    async def lease(self, key: str, done: Callable[[], bool], /) -> AsyncGenerator[None]:
        """Holds the lease of `key` once it is free; ends the wait without the lease as soon as `done()` is true."""
        held = await self._take_when_free(key, done)
        try:
            yield
        finally:
            if held:
                self.release(key)

    def take(self, key: str, /, *, of: str = "") -> bool:
        """Holds the lease of `key` until `release`, without a wait; False where somebody else has it; see `Leases`."""
        try:
            return self._run_waiting(lambda worker: self._try_take(worker, key, of))
        except OSError:
            return True

    def owns(self, key: str, /) -> bool:
        """Whether this process holds the lease of `key`."""
        with suppress(OSError):
            return self._run_waiting(lambda worker: _owner_of(worker, key) == worker.owner)
        return False

    def release(self, key: str, /) -> None:
        """Ends `take`; does nothing where another process has taken over the lease because this one seemed gone."""
        worker = self._worker
        if worker is None:  # closed meanwhile, and so it is free
            return
        digest = bytes.fromhex(key)
        try:
            self._run(lambda worker: worker.table.execute(_RELEASE, (digest, worker.owner)))
        except BlockingIOError:
            self._unreleased.add(digest)
            worker.wake.set()
        except OSError:
            pass

    def is_free(self, key: str, /) -> bool:
        """Whether nobody holds the lease of `key`."""

        def held(worker: _Worker) -> bool:
            owner = _owner_of(worker, key)
            return owner is not None and self._still_holds(worker, owner)

        with suppress(OSError):
            return not self._run_waiting(held)
        return True

    def assign_to_batch(self, name: str, keys: Iterable[str], /, *, file: Path | None = None) -> bool:
        """Has a batch hold leases that this process holds, or that are free; see `Leases`.

        Raises:
            OSError: leases cannot be kept; the batch holds none.
        """
        digests = sorted({bytes.fromhex(key) for key in keys})
        place = None if file is None else os.path.abspath(file)  # noqa: PTH100

        def handed_over(worker: _Worker) -> bool:
            worker.table.execute("BEGIN IMMEDIATE")
            ((owner,),) = worker.table.execute(_BEGIN, (randbits(62), name, place, time.time())).fetchall()
            rows = [(digest, owner, worker.owner) for digest in digests]
            done = not rows or worker.table.executemany(_ASSIGN, rows).rowcount == len(rows)
            worker.table.execute("COMMIT" if done else "ROLLBACK")
            return done

        return self._run_waiting(handed_over)

    def release_batch(self, name: str, /) -> None:
        """Frees what a batch holds; nothing where it holds nothing."""

        def freed(worker: _Worker) -> None:
            worker.table.execute("BEGIN IMMEDIATE")
            for (owner,) in worker.table.execute("SELECT owner FROM batch WHERE name = ?", (name,)).fetchall():
                _remove(worker.table, "batch", owner)
            worker.table.execute("COMMIT")

        with suppress(OSError):
            self._run_waiting(freed)

    def close(self) -> None:
        """Frees the leases that this process still holds; a later call opens the leases again."""
        atexit.unregister(self.close)
        if self._process == os.getpid():
            with self._lock:
                self._close_worker()

    async def _take_when_free(self, key: str, done: Callable[[], bool]) -> bool:
        """Takes the lease once it is free; False where `done()` came first, or leases cannot be kept."""
        import asyncio  # reading records takes none

        wait, moment = _FIRST_POLL, _BUSY_WAIT
        while True:
            try:
                if self._run(lambda worker: self._try_take(worker, key)):
                    return True
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, _LAST_POLL)
                if done():
                    return False
            except BlockingIOError:
                await asyncio.sleep(moment)
                moment = min(moment * 1.5, _LAST_POLL)
            except OSError:
                return False

    def _try_take(self, worker: _Worker, key: str, of: str = "") -> bool:
        """Takes the lease if it is free; whether it was."""
        digest = bytes.fromhex(key)
        if worker.table.execute(_TAKE, (digest, worker.owner)).rowcount:
            return True
        owner = _owner_of(worker, key)
        if owner is None or self._still_holds(worker, owner, of):
            return False
        return worker.table.execute(_TAKE_OVER, (worker.owner, digest, owner)).rowcount == 1

    def _still_holds(self, worker: _Worker, owner: int, of: str = "") -> bool:
        """Whether the owner of a lease still holds it, and is not the batch `of`; warns once of each batch."""
        batch = worker.table.execute(_BATCH, (owner,)).fetchone()
        if batch is None:
            return owner == worker.owner or self._is_alive(worker, owner)
        _, name, job_file, at = batch
        if name == of or not _can_be_fetched(job_file, at):
            return False
        if name not in self._warned:
            self._warned.add(name)
            _log.warning("Some calls wait for the batch %s, which has asked for them already.", printable(name))
        return True

    def _is_alive(self, worker: _Worker, owner: int) -> bool:
        beat = worker.table.execute("SELECT beat FROM worker WHERE owner = ?", (owner,)).fetchone()
        if beat is None or has_ended(_alive_file(self._file, owner)):
            self._heartbeats.pop(owner, None)
            return False
        now = time.monotonic()
        last = self._heartbeats.get(owner)
        if last is None or last[0] != beat:
            self._heartbeats[owner] = (beat, now)
            return True
        return now - last[1] < EXPIRY

    def _run_waiting(self, work: Callable[[_Worker], T]) -> T:
        """Like `_run`, but waits while others hold the table; not to be called on the event loop.

        Raises:
            OSError: leases cannot be kept.
        """
        while True:
            try:
                return self._run(work)
            except BlockingIOError:
                time.sleep(_BUSY_WAIT)

    def _run(self, work: Callable[[_Worker], T]) -> T:
        """The result of `work` on the table.

        Raises:
            BlockingIOError: another process or thread holds the table now.
            OSError: leases cannot be kept.
        """
        if self._process != os.getpid():
            self._parents.append(self._worker)
            self._process, self._lock, self._worker, self._unreleased = os.getpid(), Lock(), None, set()
        if not self._lock.acquire(timeout=_BUSY_WAIT):
            raise BlockingIOError
        try:
            try:
                result = self._run_once(work)
            except sqlite3.DatabaseError as error:
                if _code(error) not in _DAMAGED:
                    raise
                self._set_aside()
                result = self._run_once(work)
        except (sqlite3.Error, BlockingIOError) as error:
            raise self._as_os_error(error) from error
        finally:
            self._lock.release()
        self._busy_since = None
        return result

    def _run_once(self, work: Callable[[_Worker], T]) -> T:
        worker = self._open_worker()
        try:
            self._release_delayed(worker)
            return work(worker)
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                worker.table.rollback()
            raise

    def _open_worker(self) -> _Worker:
        """This process in the table.

        Raises:
            BlockingIOError: another process opens the file.
            OSError, sqlite3.Error: it cannot be opened.
        """
        worker = self._worker
        if worker is not None:
            if worker.inode == _inode(self._file):
                return worker
            self._close_worker()  # another process has set the file aside
        self._worker = worker = _Worker(self._file)
        Thread(target=self._send_heartbeats, args=(worker,), name="askance-leases", daemon=True).start()
        atexit.unregister(self.close)
        atexit.register(self.close)
        return worker

    def _send_heartbeats(self, worker: _Worker) -> None:
        """Raises this process's heartbeat, and releases what could not be released at once."""
        wait = HEARTBEAT
        while True:
            worker.wake.wait(wait)
            with self._lock:
                if self._worker is not worker:
                    return
                worker.wake.clear()
                try:
                    worker.table.execute(_BEAT_ROW, (worker.owner,))
                    self._release_delayed(worker)
                    self._busy_since, wait = None, HEARTBEAT
                except sqlite3.Error as error:
                    wait = _FIRST_POLL if is_busy(error) else HEARTBEAT

    def _release_delayed(self, worker: _Worker) -> None:
        while self._unreleased:
            digest = next(iter(self._unreleased))
            worker.table.execute(_RELEASE, (digest, worker.owner))
            self._unreleased.discard(digest)

    def _close_worker(self) -> None:
        worker, self._worker = self._worker, None
        self._unreleased.clear()
        if worker is not None:
            worker.close()

    def _set_aside(self) -> None:
        """Moves a file that is damaged or not ours out of the way, unless another process has done so.

        Raises:
            OSError: it cannot be moved.
        """
        inode = _inode(self._file) if self._worker is None else self._worker.inode
        with closing(ProcessLock(self._file.parent)):
            self._close_worker()
            if inode is not None and inode == _inode(self._file):
                for end in ("-wal", "-shm", "-journal"):
                    self._file.with_name(FILE + end).unlink(missing_ok=True)
                aside = self._file.replace(self._file.with_name(f"{FILE}.damaged"))
                _log.warning("The file of leases is damaged and was replaced; the damaged one is %r.", str(aside))

    def _as_os_error(self, error: Exception) -> OSError:
        if isinstance(error, sqlite3.Error) and not is_busy(error):
            return OSError(str(error))
        now = time.monotonic()
        since = self._busy_since = now if self._busy_since is None else self._busy_since
        if now - since < EXPIRY:
            return BlockingIOError()
        if FILE not in self._warned:
            self._warned.add(FILE)
            _log.warning(
                "Another process has held the file %r for %g s: calls are made without leases, and another run may "
                "make the same ones. End that process (on most systems `fuser FILE` names it).",
                str(self._file),
                EXPIRY,
            )
        return OSError("Another process does not give the table free")


class _Worker:
    """This process in the table of one store.

    Raises:
        BlockingIOError: another process opens the file.
        OSError, sqlite3.Error: it cannot be opened.
    """

    def __init__(self, file: Path) -> None:
        self.owner = randbits(62)
        self.wake = Event()
        self._alive_file = _alive_file(file, self.owner)
        make_folder(file.parent)
        with closing(ProcessLock(file.parent)):
            for mark in file.parent.glob(f"{FILE}-*.alive"):
                has_ended(mark)
            self._alive_lock = ProcessLock(self._alive_file)
            try:
                self.table = _open_table(file, self.owner)
            except BaseException:
                self._end()
                raise
            self.inode = _inode(file)

    def close(self) -> None:
        """Frees all leases of this process; even where the table cannot be changed, it then counts as ended."""
        for _ in range(50):
            try:
                self.table.execute("BEGIN IMMEDIATE")
                _remove(self.table, "worker", self.owner)
                self.table.execute("COMMIT")
                break
            except sqlite3.Error as error:
                if not is_busy(error):
                    break
                time.sleep(_BUSY_WAIT)
        with suppress(sqlite3.Error):
            self.table.close()
        self._end()
        self.wake.set()

    def _end(self) -> None:
        with suppress(OSError):
            self._alive_file.unlink(missing_ok=True)
        self._alive_lock.close()


def _open_table(file: Path, owner: int) -> sqlite3.Connection:
    """The table, with this process in it, and without the leases of processes and batches that have ended.

    Raises:
        sqlite3.Error: it cannot be opened, is damaged, or is not ours.
    """
    for end, allowed in (("", True), ("-wal", True), ("-shm", True), ("-journal", False)):
        with suppress(FileNotFoundError):
            # A link could overwrite a file elsewhere, and opening a pipe could hang.
            if not stat.S_ISREG(os.lstat(f"{file}{end}").st_mode) or not allowed:
                raise sqlite3.DatabaseError
    table = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        table.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_ROW_BYTES)
        table.execute("PRAGMA trusted_schema = OFF")
        _check_tables(table)
        # Small pages: the space of a small disk is for the records.
        table.execute("PRAGMA page_size = 1024")
        table.execute("PRAGMA journal_mode = WAL")
        table.execute("PRAGMA wal_autocheckpoint = 64")
        # A power loss may damage the file, which is then replaced: no process that held a lease has survived it.
        table.execute("PRAGMA synchronous = OFF")
        table.execute("BEGIN IMMEDIATE")
        if _check_tables(table):
            for statement in _TABLES:
                table.execute(statement)
        for (other,) in table.execute("SELECT owner FROM worker").fetchall():
            if has_ended(_alive_file(file, other)):
                _remove(table, "worker", other)
        for other, _, job_file, at in table.execute(_BATCHES).fetchall():
            if not _can_be_fetched(job_file, at):
                _remove(table, "batch", other)
        table.execute("INSERT INTO worker VALUES (?, 0)", (owner,))
        table.execute("COMMIT")
    except BaseException:
        table.close()
        raise
    return table


def _check_tables(table: sqlite3.Connection) -> bool:
    """Whether the file is empty.

    Raises:
        sqlite3.Error: it holds anything but our tables, or cannot be read.
    """
    statements = {sql for (sql,) in table.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if statements and statements != set(_TABLES):
        raise sqlite3.DatabaseError
    return not statements


def _owner_of(worker: _Worker, key: str) -> int | None:
    row = worker.table.execute(_OWNER, (bytes.fromhex(key),)).fetchone()
    return None if row is None else row[0]


def _remove(table: sqlite3.Connection, kind: str, owner: int) -> None:
    """Removes a worker or a batch, and its leases."""
    table.execute("DELETE FROM lease WHERE owner = ?", (owner,))
    table.execute(f"DELETE FROM {kind} WHERE owner = ?", (owner,))


def _can_be_fetched(job_file: str | None, at: float) -> bool:
    """Whether the answers of a batch that was made at `at` may still be fetched."""
    # A time in the future is wrong: no running batch wrote it, and its leases would never expire.
    return abs(time.time() - at) < BATCH_EXPIRY and (job_file is None or os.path.exists(job_file))  # noqa: PTH110


def _alive_file(file: Path, owner: int) -> Path:
    """The file on which a process holds a lock until it ends."""
    return file.with_name(f"{FILE}-{owner:016x}.alive")


def _inode(file: Path) -> int | None:
    """Which file it is; None where there is none."""
    try:
        return os.lstat(file).st_ino
    except OSError:
        return None


def _code(error: sqlite3.Error) -> int | None:
    """The primary result code of SQLite; None where the error has none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
