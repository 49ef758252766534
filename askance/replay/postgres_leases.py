"""Leases in a PostgreSQL database: two workers on different machines do not pay for the same request twice.

A lease ends with the commit of its record, or when it is released, or by the server's clock: a worker renews what it
holds every few seconds, and what a dead one held is free after its time. Leases that are wanted at the same time are
taken in one statement, in a thread.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import randbits
from socket import gethostname
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from askance.errors import StoreError
from askance.replay.block_queue import BlockQueue
from askance.replay.leases import BATCH_EXPIRY, EXPIRY
from askance.replay.record import BLOCK
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.replay.postgres_database import Connection, Database

_log = logging.getLogger("askance")

RENEWAL = EXPIRY / 3
"""Seconds between two renewals of what a process holds."""
_FIRST_POLL, _LAST_POLL = 0.05, 1.0
"""Seconds between two tries to take a lease that another holds: at first, and at most."""

_TAKE = """
    INSERT INTO lease (key, owner, until)
    SELECT key, %(owner)s, now() + make_interval(secs => %(seconds)s) FROM unnest(%(keys)s::bytea[]) AS key ORDER BY key
    ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE lease.until < now()
    RETURNING key
"""
_RENEW = "UPDATE lease SET until = now() + make_interval(secs => %(seconds)s) WHERE owner = %(owner)s"
_RELEASE = "DELETE FROM lease WHERE key = ANY(%(keys)s) AND owner = %(owner)s"
_RELEASE_ALL = "DELETE FROM lease WHERE owner = %(owner)s"
_OWNER = "SELECT owner FROM lease WHERE key = %(key)s AND until >= now()"
_BATCHES = """
    SELECT DISTINCT batch.name, batch.host, batch.file FROM lease JOIN batch USING (owner)
    WHERE lease.key = ANY(%(keys)s)
"""
_BEGIN = """
    INSERT INTO batch (name, owner, host, file) VALUES (%(name)s, %(owner)s, %(host)s, %(file)s)
    ON CONFLICT (name) DO UPDATE SET host = excluded.host, file = excluded.file RETURNING owner
"""
_ASSIGN = """
    INSERT INTO lease (key, owner, until)
    SELECT key, %(batch)s, now() + make_interval(secs => %(seconds)s) FROM unnest(%(keys)s::bytea[]) AS key ORDER BY key
    ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE lease.owner IN (excluded.owner, %(owner)s) OR lease.until < now()
    RETURNING key
"""
_END = """
    WITH ended AS (DELETE FROM batch WHERE name = %(name)s RETURNING owner)
    DELETE FROM lease USING ended WHERE lease.owner = ended.owner
"""


class PostgresLeases:
    """The leases of one worker; see `Leases`. It renews what it holds from the first lease on, until it is closed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._process = 0
        self._owner = 0
        self._closed = Event()
        self._warned = False
        self._waited_for = set[str]()
        """Batches already named in a warning."""
        self._takes = BlockQueue(self._take_block, name="askance-leases", most=BLOCK)
        self._releases = BlockQueue(self._release_block, name="askance-leases-end", most=BLOCK)

    @asynccontextmanager
    async def lease(self, key: str, done: Callable[[], bool], /) -> AsyncGenerator[None]:
        """Holds the lease of `key` once it is free; ends the wait without the lease as soon as `done()` is true."""
        held, wait = await self._takes.do(key), _FIRST_POLL
        while not held:
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LAST_POLL)
            if await asyncio.to_thread(done):
                break
            held = await self._takes.do(key)
        try:
            yield
        finally:
            if held:
                await self._releases.do(key)

    def take(self, key: str, /, *, of: str = "") -> bool:
        """Holds the lease of `key` until `release`, without a wait; False where somebody else has it; see `Leases`."""
        if of:
            self._end_batches([key], of)
        return self._take_block([key])[0]

    def owns(self, key: str, /) -> bool:
        """Whether this worker holds the lease of `key`."""
        return self._owner_of(key) == self._own()

    def release(self, key: str, /) -> None:
        """Ends `take`; does nothing where another worker has taken over the lease because this one seemed gone."""
        self._release_block([key])

    def is_free(self, key: str, /) -> bool:
        """Whether nobody holds the lease of `key`."""
        self._end_batches([key])
        return self._owner_of(key) is None

    def assign_to_batch(self, name: str, keys: Iterable[str], /, *, file: Path | None = None) -> bool:
        """Has a batch hold leases that this worker holds, or that are free; see `Leases`.

        Raises:
            OSError: leases cannot be kept; the batch holds none.
        """
        digests = sorted({bytes.fromhex(key) for key in keys})
        place = None if file is None else os.path.abspath(file)  # noqa: PTH100
        own = self._own()

        def assign(connection: Connection) -> bool:
            begun = {"name": name, "owner": randbits(62), "host": gethostname(), "file": place}
            ((batch,),) = connection.execute(_BEGIN, begun)
            held = connection.execute(
                _ASSIGN, {"batch": batch, "keys": digests, "owner": own, "seconds": BATCH_EXPIRY}
            ).fetchall()
            if len(held) < len(digests):
                raise _HeldByAnother
            return True

        try:
            return self._database.change(assign)
        except _HeldByAnother:
            return False
        except StoreError as error:
            raise OSError(error.message) from error

    def release_batch(self, name: str, /) -> None:
        """Frees what a batch holds; nothing where it holds nothing."""
        with suppress(StoreError):
            self._database.rows(_END, {"name": name})

    def close(self) -> None:
        """Frees the leases that this worker still holds; a later call opens the leases again."""
        atexit.unregister(self.close)
        self._takes.flush()
        self._releases.flush()
        with self._lock:
            owner, self._owner = self._owner, 0
            self._closed.set()
        if owner and self._process == os.getpid():
            with suppress(StoreError):
                self._database.rows(_RELEASE_ALL, {"owner": owner})

    # ---- in threads ----------------------------------------------------------------------------------------------

    def _own(self) -> int:
        """This worker, which renews what it holds from now on."""
        with self._lock:
            if not self._owner or self._process != os.getpid():
                self._process, self._owner, self._closed = os.getpid(), randbits(62), Event()
                renews = (self._owner, self._closed)
                Thread(target=self._renew, args=renews, name="askance-leases-renewal", daemon=True).start()
                atexit.register(self.close)
            return self._owner

    def _renew(self, owner: int, closed: Event) -> None:
        while not closed.wait(RENEWAL):
            with suppress(StoreError):
                self._database.rows(_RENEW, {"owner": owner, "seconds": EXPIRY})

    def _take_block(self, keys: Sequence[str]) -> list[bool]:
        """Takes those leases that are free; for each, whether this took it. All count as taken if none can be kept."""
        try:
            taken = self._taken(keys)
            if len(taken) < len(set(keys)) and self._end_batches([key for key in keys if key not in taken]):
                taken |= self._taken([key for key in keys if key not in taken])
        except StoreError as error:
            if not self._warned:
                self._warned = True
                _log.warning("%s Calls are made without leases: another worker may make the same ones.", error.message)
            return [True] * len(keys)
        return [key in taken for key in keys]

    def _taken(self, keys: Iterable[str]) -> set[str]:
        values = {"keys": sorted({bytes.fromhex(key) for key in keys}), "owner": self._own(), "seconds": EXPIRY}
        return {key.hex() for (key,) in self._database.rows(_TAKE, values)}

    def _release_block(self, keys: Sequence[str]) -> list[None]:
        owner = self._owner
        if owner:  # else closed meanwhile, and so they are free
            with suppress(StoreError):
                self._database.rows(_RELEASE, {"keys": [bytes.fromhex(key) for key in keys], "owner": owner})
        return [None] * len(keys)

    def _owner_of(self, key: str) -> int | None:
        with suppress(StoreError):
            rows = self._database.rows(_OWNER, {"key": bytes.fromhex(key)})
            return rows[0][0] if rows else None
        return None

    def _end_batches(self, keys: Sequence[str], of: str = "") -> bool:
        """Ends batches that hold one of the leases and are `of`, or whose answers cannot be fetched any more.

        Whether the file of a batch is there only its own machine can tell.
        """
        ended = False
        with suppress(StoreError):
            for name, machine, file in self._database.rows(_BATCHES, {"keys": [bytes.fromhex(key) for key in keys]}):
                if name == of or (machine == gethostname() and file is not None and not Path(file).exists()):
                    self.release_batch(name)
                    ended = True
                elif name not in self._waited_for:
                    self._waited_for.add(name)
                    about = printable(name), printable(machine)
                    _log.warning("Some calls wait for the batch %s of %s, which has asked for them already.", *about)
        return ended


class _HeldByAnother(Exception):
    """Another worker holds one of the leases that a batch should have."""
