"""Writing in a thread of its own: what waits at the same time is written together, and then acknowledged."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

TOGETHER = 64
"""Most that is written at once: other processes wait meanwhile."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Who waits for something to be written."""

    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[bool]


class Scribe(Generic[T]):
    """Has things written, in the order in which they come.

    Args:
        put: writes several and says of each whether it is on the disk; it raises nothing.
    """

    def __init__(self, put: Callable[[Sequence[T]], Sequence[bool]]) -> None:
        self._put = put
        self._queue: deque[tuple[T, _Waiting | None]] = deque()
        self._lock = Lock()
        self._at_work = False
        self._thread: tuple[int, ThreadPoolExecutor] | None = None

    async def write(self, what: T) -> bool:
        """Whether `what` is on the disk now; it is written even if nobody waits any more."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(loop, loop.create_future())
        self._add(what, waiting)
        return await waiting.done

    def write_soon(self, what: T) -> None:
        """Like `write`, without waiting for it."""
        self._add(what, None)

    def flush(self) -> None:
        """Waits until everything is written."""
        thread, self._thread = self._thread, None
        if thread is not None and thread[0] == os.getpid():
            thread[1].shutdown()

    def _add(self, what: T, waiting: _Waiting | None) -> None:
        with self._lock:
            executor = self._executor()
            self._queue.append((what, waiting))
            if not self._at_work:
                self._at_work = True
                executor.submit(self._work)

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None or self._thread[0] != os.getpid():
            if self._thread is not None:  # a copy of what the parent still writes
                self._queue.clear()
                self._at_work = False
            self._thread = (os.getpid(), ThreadPoolExecutor(1, thread_name_prefix="askance-records"))
        return self._thread[1]

    def _work(self) -> None:
        while some := self._some():
            written = self._put([what for what, _ in some])
            _acknowledge([(waiting, done) for (_, waiting), done in zip(some, written, strict=True)])

    def _some(self) -> list[tuple[T, _Waiting | None]]:
        with self._lock:
            some = [self._queue.popleft() for _ in range(min(len(self._queue), TOGETHER))]
            self._at_work = bool(some)
            return some


def _acknowledge(written: Sequence[tuple[_Waiting | None, bool]]) -> None:
    """Tells those who wait, each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[bool], bool]]] = defaultdict(list)
    for waiting, done in written:
        if waiting is not None:
            by_loop[waiting.loop].append((waiting.done, done))
    for loop, futures in by_loop.items():
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(_settle, futures)


def _settle(futures: Sequence[tuple[asyncio.Future[bool], bool]]) -> None:
    for future, done in futures:
        if not future.done():
            future.set_result(done)
