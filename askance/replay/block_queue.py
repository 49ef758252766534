"""Work in a thread, in blocks: what waits at the same time is done together.

To write a record, to look one up over a network or to take a lease costs a transaction or a round trip each, however
many there are. No event loop waits for it.
"""

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
R = TypeVar("R")

TOGETHER = 64
"""Most items of a block, unless a queue has its own number: other processes wait meanwhile."""


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[R]):
    """A caller that waits for the result of one item."""

    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[R]


class BlockQueue(Generic[T, R]):
    """Does work in a thread, in the order of the calls; items that wait at the same time are a block.

    Args:
        work: does a block; the result of each item, in their order. What it raises is raised for each of them.
        name: of the thread.
        most: items of a block.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], *, name: str, most: int = TOGETHER) -> None:
        self._work = work
        self._name = name
        self._most = most
        self._queue: deque[tuple[T, _Waiting[R] | None]] = deque()
        self._lock = Lock()
        self._busy = False
        self._thread: tuple[int, ThreadPoolExecutor] | None = None

    async def do(self, item: T, /) -> R:
        """The result of `item`, once its block is done; it is done even if this is cancelled."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting[R] = _Waiting(loop, loop.create_future())
        self._add(item, waiting)
        return await waiting.done

    def do_soon(self, item: T, /) -> None:
        """Like `do`, without waiting for it."""
        self._add(item, None)

    def flush(self) -> None:
        """Waits until everything is done."""
        thread, self._thread = self._thread, None
        if thread is not None and thread[0] == os.getpid():
            thread[1].shutdown()

    def _add(self, item: T, waiting: _Waiting[R] | None) -> None:
        with self._lock:
            executor = self._executor()
            self._queue.append((item, waiting))
            if not self._busy:
                self._busy = True
                executor.submit(self._do_all)

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None or self._thread[0] != os.getpid():
            if self._thread is not None:  # after a fork: the parent does these
                self._queue.clear()
                self._busy = False
            self._thread = (os.getpid(), ThreadPoolExecutor(1, thread_name_prefix=self._name))
        return self._thread[1]

    def _do_all(self) -> None:
        while block := self._next_block():
            waiting = [each for _, each in block]
            try:
                results = self._work([item for item, _ in block])
            except Exception as error:  # noqa: BLE001  # it is the callers' to handle
                _answer([(each, error) for each in waiting])
            else:
                _answer([*zip(waiting, results, strict=True)])

    def _next_block(self) -> list[tuple[T, _Waiting[R] | None]]:
        with self._lock:
            block = [self._queue.popleft() for _ in range(min(len(self._queue), self._most))]
            self._busy = bool(block)
            return block


def _answer(results: Sequence[tuple[_Waiting[R] | None, R | Exception]]) -> None:
    """Answers those who wait; wakes each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[R], R | Exception]]] = defaultdict(list)
    for waiting, result in results:
        if waiting is not None:
            by_loop[waiting.loop].append((waiting.done, result))
    for loop, futures in by_loop.items():
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(_settle, futures)


def _settle(futures: Sequence[tuple[asyncio.Future[R], R | Exception]]) -> None:
    for future, result in futures:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
