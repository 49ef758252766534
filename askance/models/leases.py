"""Leases: two processes on one store do not pay for the same request twice.

Who makes a call holds its lease, a file in the store's folder that is named by the request's key; others wait until the
answer is on record or the lease is free. All leases of a process are links to one file of its own. That file it keeps
locked, and the lock falls when the process dies, in whatever way; and it writes a rising number into it every few
seconds, so that the leases of a process that is stopped for long count for nothing. Nobody reads the wall's clock: a
jump of it harms nothing; but a batch that nobody comes back for holds its leases for a day of it.

What a batch asks for is held by the batch and not by a process: one file with all its keys, until it is let go.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover  # not a POSIX system
    fcntl = None

_log = logging.getLogger("askance")

FOLDER = "leases"
BEAT = 5.0
"""Seconds between two signs of life."""
DAY = 26 * 3600.0
"""Seconds after which a batch holds nothing any more: it has ended, and nobody has come for its answers."""
EXPIRY = 30.0
"""Seconds without one after which a holder counts as gone."""
_FIRST_LOOK, _LAST_LOOK = 0.05, 1.0
"""Seconds between two looks at a lease that is taken: at first, and at most."""


class Leases:
    """The leases in the folder of one store, for this process.

    Where they cannot be kept (a disk that is full or read-only, a file system without links, a system without POSIX
    locks) nothing is held: an answer is worth more than the price of asking twice.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._prefix = f"{self._folder}{os.sep}"
        self._batches = self._folder / "batches"
        self._batches_path = str(self._batches)
        self._holder: Holder | None = None
        self._signs: dict[int, tuple[bytes, float]] = {}
        """By holder: the last sign of life, and when it was new to us."""
        self._entrusted: dict[str, str] = {}
        self._read_at = 0
        self._told: set[str] = set()

    @asynccontextmanager
    async def lease(self, key: str, done: Callable[[], bool]) -> AsyncGenerator[None]:
        """Holds the lease of `key` once nobody else does; ends the wait without it as soon as `done()`."""
        holder = self._own()
        held = holder is not None and await self._taken(key, holder, done)
        try:
            yield
        finally:
            if held and holder is not None:
                holder.release(self._prefix + key)

    def entrust(self, name: str, keys: Iterable[str]) -> None:
        """Has `name`, such as a batch, hold the leases of `keys` until `let_go`, whatever becomes of this process.

        Raises:
            OSError: it cannot be written.
        """
        self._batches.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / f"{name}.{os.getpid()}"
        with fresh.open("w", encoding="ascii") as file:
            file.writelines(f"{key}\n" for key in keys)
        fresh.replace(self._batches / name)

    def let_go(self, name: str) -> None:
        """Frees what `name` holds; nothing where it holds nothing."""
        with suppress(OSError):
            (self._batches / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Ends the signs of life; what is still held is free at once."""
        holder, self._holder = self._holder, None
        if holder is not None:
            holder.stop()

    def _own(self) -> Holder | None:
        if self._holder is None or self._holder.process != os.getpid():
            try:
                self._holder = Holder(self._folder)
            except OSError:
                return None
        return self._holder

    async def _taken(self, key: str, holder: Holder, done: Callable[[], bool]) -> bool:
        """Whether the lease was taken; not where that was in vain or cannot be done."""
        file, look = self._prefix + key, _FIRST_LOOK
        while True:
            try:
                if not self._with_a_batch(key) and (holder.take(file) or self._seized(file, holder)):
                    return True
            except OSError:
                return False
            await asyncio.sleep(look)
            look = min(look * 1.5, _LAST_LOOK)
            if done():
                return False

    def _with_a_batch(self, key: str) -> bool:
        """Whether a batch holds `key`; said once for each batch."""
        try:
            changed = os.stat(self._batches_path).st_mtime_ns  # noqa: PTH116  # for every call, and quicker so
        except FileNotFoundError:
            return False
        if changed != self._read_at:
            self._read_at, self._entrusted = changed, _entrusted(self._batches)
        name = self._entrusted.get(key)
        if name is not None and name not in self._told:
            self._told.add(name)
            _log.warning("Some calls wait for the batch %s, which has asked for them already.", name)
        return name is not None

    def _seized(self, file: str, holder: Holder) -> bool:
        """Takes a lease over from a holder that is gone, if it is."""
        found = _look(file)
        if found is None or self._lives(*found):
            return False
        lock = os.open(self._folder / "takeover", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if not _locked(lock):
                return False
            # Another one may have been quicker.
            if _inode(file) == found[0]:
                with suppress(FileNotFoundError):
                    Path(file).unlink()
            return holder.take(file)
        finally:
            os.close(lock)

    def _lives(self, inode: int, sign: bytes | None) -> bool:
        if sign is None:
            self._signs.pop(inode, None)
            return False
        now = time.monotonic()
        last = self._signs.get(inode)
        if last is None or last[0] != sign:
            self._signs[inode] = (sign, now)
            return True
        return now - last[1] < EXPIRY


class Holder:
    """This process as one that holds leases.

    Raises:
        OSError: there can be no file for it.
    """

    def __init__(self, folder: Path) -> None:
        if fcntl is None:
            raise OSError
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        self.process = os.getpid()
        self._file = folder / f"{secrets.token_hex(8)}.holder"
        self._descriptor = os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._inode = os.fstat(self._descriptor).st_ino
        self._stopped = threading.Event()
        threading.Thread(target=self._beat, name="askance-leases", daemon=True).start()
        atexit.register(self.stop)

    def take(self, lease: str) -> bool:
        """Whether `lease` was free and now is held.

        Raises:
            OSError: it cannot be written.
        """
        try:
            os.link(self._file, lease)
        except FileExistsError:
            return False
        return True

    def release(self, lease: str) -> None:
        """Frees `lease`, unless another one has taken it over."""
        with suppress(OSError):
            if _inode(lease) == self._inode:
                Path(lease).unlink()

    def stop(self) -> None:
        atexit.unregister(self.stop)
        if not self._stopped.is_set() and os.getpid() == self.process:
            self._stopped.set()
            with suppress(OSError):
                self._file.unlink(missing_ok=True)
            os.close(self._descriptor)

    def _beat(self) -> None:
        number = 0
        while not self._stopped.wait(BEAT):
            number += 1
            with suppress(OSError):
                os.pwrite(self._descriptor, f"{number}\n".encode(), 0)


def _look(lease: str | Path) -> tuple[int, bytes | None] | None:
    """Who holds a lease, and the last sign of life, None where the holder has died; None where it has been freed."""
    try:
        descriptor = os.open(lease, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        inode = os.fstat(descriptor).st_ino
        return inode, None if _locked(descriptor, shared=True) else os.read(descriptor, 64)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, *, shared: bool = False) -> bool:
    """Whether the open file could be locked, which it is until it is closed."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _inode(file: str) -> int | None:
    try:
        return os.stat(file).st_ino  # noqa: PTH116
    except OSError:
        return None


def _entrusted(batches: Path) -> dict[str, str]:
    """The batch that holds it, by key."""
    found: dict[str, str] = {}
    for file in batches.iterdir():
        with suppress(OSError, UnicodeDecodeError):
            if time.time() - file.stat().st_mtime < DAY:
                found.update(dict.fromkeys(file.read_text(encoding="ascii").split(), file.name))
    return found


def _clear(folder: Path) -> None:
    """Removes the files of holders that have died; their leases go when they are wanted."""
    for file in folder.glob("*.holder"):
        with suppress(OSError):
            found = _look(file)
            if found is not None and found[1] is None:
                file.unlink(missing_ok=True)
