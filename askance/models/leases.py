"""Leases: two processes on one store do not pay for the same request twice.

Who makes a call holds its lease, a file in the store's folder that is named by the request's key; others wait until the
answer is on record or the lease is free. All leases of a process are links to a file of its own, which falls free with
the process (see `holders`). Nobody reads the wall's clock: a jump of it harms nothing; but a batch that nobody comes
back for holds its leases for a day of it.

What a batch asks for is held by the batch and not by a process: one file with all its keys, until it is let go or
nobody can come for its answers any more. A lease is taken first, and such files are looked at then; who hands leases
over to a batch writes the file first, and frees them then: so no call is held by nobody in between.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from bisect import bisect_left
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from askance.models.holders import Holder, inode_of, locked, look

_log = logging.getLogger("askance")

FOLDER = "leases"
DAY = 26 * 3600.0
"""Seconds after which a batch holds nothing any more: it has ended, and nobody has come for its answers."""
EXPIRY = 30.0
"""Seconds without a sign of life after which a holder counts as gone."""
_FIRST_LOOK, _LAST_LOOK = 0.05, 1.0
"""Seconds between two looks at a lease that is taken: at first, and at most."""
_MOMENT = 0.002


class Leases:
    """The leases in the folder of one store, for this process; from any thread.

    Where they cannot be kept (a disk that is full or read-only, a file system without links, a system without POSIX
    locks) nothing is held: an answer is worth more than the price of asking twice.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._prefix = f"{self._folder}{os.sep}"
        self._batches = self._folder / "batches"
        self._holder: Holder | None = None
        self._beginning = threading.Lock()
        self._signs: dict[int, tuple[bytes, float]] = {}
        """By holder: the last sign of life, and when it was new to us."""
        self._entrusted: dict[str, _Entrusted] = {}
        """By name: what batches hold, as far as it was read."""
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

    def take(self, key: str, *, of: str = "") -> bool:
        """Holds the lease of `key` until `release`, without a wait; False where somebody else has it.

        Args:
            key: of a request.
            of: a batch that takes back what it holds itself.
        """
        holder = self._own()
        try:
            while holder is not None and not self._tried(key, holder, of):
                if not self.free(key, of=of):
                    return False
                time.sleep(_MOMENT)  # others take over what the same dead holder held
        except OSError:
            pass
        return True

    def owns(self, key: str) -> bool:
        """Whether this process holds the lease of `key`."""
        return self._holder is not None and self._holder.owns(self._prefix + key)

    def release(self, key: str) -> bool:
        """Ends `take`; False where another process has taken the lease over, because this one seemed to be gone."""
        return self._holder is None or self._holder.release(self._prefix + key)

    def free(self, key: str, *, of: str = "") -> bool:
        """Whether nobody holds the lease of `key`, but for the batch `of`."""
        with suppress(OSError):
            found = look(self._prefix + key)
            return not self._with_a_batch(key, of) and (found is None or not self._lives(*found))
        return True

    def entrust(self, name: str, keys: Iterable[str], *, kept: Path | None = None) -> None:
        """Has `name`, such as a batch, hold the leases of `keys` until `let_go`, whatever becomes of this process.

        Args:
            name: of the batch.
            keys: of requests.
            kept: a file without which nobody can come for the batch's answers; they are free when it is gone.

        Raises:
            OSError: it cannot be written.
        """
        self._batches.mkdir(parents=True, exist_ok=True)
        fresh = self._folder / f"{name}.{os.getpid()}"
        with fresh.open("w", encoding="ascii") as file:
            file.write(json.dumps(None if kept is None else os.path.abspath(kept)) + "\n")  # noqa: PTH100
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
        with self._beginning:
            if self._holder is None or self._holder.process != os.getpid():
                try:
                    self._holder = Holder(self._folder)
                except OSError:
                    return None
            return self._holder

    async def _taken(self, key: str, holder: Holder, done: Callable[[], bool]) -> bool:
        """Whether the lease was taken; not where that was in vain or cannot be done."""
        wait = _FIRST_LOOK
        while True:
            try:
                if self._tried(key, holder):
                    return True
            except OSError:
                return False
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LAST_LOOK)
            if done():
                return False

    def _tried(self, key: str, holder: Holder, of: str = "") -> bool:
        """Whether the lease was free and now is held.

        Raises:
            OSError: it cannot be written.
        """
        file = self._prefix + key
        if self._with_a_batch(key, of) or not (holder.take(file) or self._seized(file, holder)):
            return False
        # It may have been handed over to a batch since that was looked at.
        if self._with_a_batch(key, of):
            holder.release(file)
            return False
        return True

    def _with_a_batch(self, key: str, of: str = "") -> bool:
        """Whether a batch other than `of` holds `key`; said once for each batch."""
        try:
            names = set(os.listdir(self._batches))  # noqa: PTH208  # for every call, and quicker so
        except FileNotFoundError:
            return False
        known = self._entrusted
        if names != known.keys():
            self._entrusted = known = dict(self._read(names, known))
        name = next((name for name, held in known.items() if name != of and held.holds(key)), None)
        if name is not None and name not in self._told:
            self._told.add(name)
            _log.warning("Some calls wait for the batch %s, which has asked for them already.", name)
        return name is not None

    def _read(self, names: Iterable[str], known: Mapping[str, _Entrusted]) -> Iterator[tuple[str, _Entrusted]]:
        for name in names:
            with suppress(OSError, ValueError):
                yield name, known.get(name) or _Entrusted(self._batches / name)

    def _seized(self, file: str, holder: Holder) -> bool:
        """Takes a lease over from a holder that is gone, if it is."""
        found = look(file)
        if found is None or self._lives(*found):
            return False
        lock = os.open(self._folder / "takeover", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if not locked(lock):
                return False
            # Another one may have been quicker.
            if inode_of(file) == found[0]:
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


class _Entrusted:
    """What one batch holds: sorted digests, in 32 bytes each, for there may be millions.

    Raises:
        OSError: its file cannot be read.
        ValueError: it is no such file.
    """

    def __init__(self, file: Path) -> None:
        kept, *keys = file.read_text(encoding="ascii").split("\n")
        self._file = file
        self._kept: str | None = json.loads(kept)
        self._digests = b"".join(sorted(map(bytes.fromhex, keys)))

    def holds(self, key: str) -> bool:
        """Whether the batch holds the lease of `key`, and somebody may yet come for its answer."""
        digest, count = bytes.fromhex(key), len(self._digests) // 32
        place = bisect_left(range(count), digest, key=self._at)
        if self._at(place) != digest or (self._kept is not None and not Path(self._kept).exists()):
            return False
        with suppress(OSError):
            # One of the day after tomorrow was written by no batch that is under way: it would hold for ever.
            return abs(time.time() - self._file.stat().st_mtime) < DAY
        return False

    def _at(self, place: int) -> bytes:
        return self._digests[place * 32 : place * 32 + 32]
