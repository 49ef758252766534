"""Calls that are made at the same time, collected into batches: by the models that run on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Waiting(Generic[Item, Result]):
    """An item, and the future of who waits for its result."""

    item: Item
    future: asyncio.Future[Result]


class BatchCollector(Generic[Item, Result]):
    """Collects items while a batch runs; they are in the next one. Used on one event loop.

    Args:
        run: gives the result of each item, or the error that it ended with, in order; it runs in `thread`.
        thread: has one worker, so that one batch runs at a time.
        most: items in a batch; None is no limit.
        group: items of one group stand together in a batch, in the order of the first of each group.
        fill: waits, before each batch, until it is full enough.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Sequence[Result | Exception]],
        thread: ThreadPoolExecutor,
        *,
        most: Callable[[], int] | None = None,
        group: Callable[[Item], Hashable] | None = None,
        fill: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._run = run
        self._thread = thread
        self._most = most
        self._group = group
        self._fill = fill
        self._waiting: list[_Waiting[Item, Result]] = []
        self._batch: list[_Waiting[Item, Result]] = []
        self._worker: asyncio.Task[None] | None = None

    def put(self, item: Item) -> asyncio.Future[Result]:
        """The future result of `item`; an item whose future is cancelled before its batch begins is left out."""
        loop = asyncio.get_running_loop()
        waiting: _Waiting[Item, Result] = _Waiting(item, loop.create_future())
        # The error is read here, so that asyncio logs none where every caller has gone.
        waiting.future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting.append(waiting)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        return waiting.future

    @property
    def waiting(self) -> int:
        """Items that are in no batch yet."""
        return len(self._waiting)

    @property
    def items(self) -> list[Item]:
        """Items without a result: those that wait, and those of the batch that runs."""
        return [each.item for each in (*self._waiting, *self._batch)]

    async def _work(self) -> None:
        """Runs batch after batch until nothing waits."""
        try:
            while self._waiting:
                if self._fill is not None:
                    await self._fill()
                self._batch = self._next()
                await self._finish(self._batch)
        finally:
            for each in (*self._waiting, *self._batch):
                each.future.cancel()
            self._waiting, self._batch, self._worker = [], [], None

    def _next(self) -> list[_Waiting[Item, Result]]:
        """Takes the items that came first, with those of their groups, as many as a batch holds."""
        waiting = [each for each in self._waiting if not each.future.done()]
        if self._group is not None:
            group, first = self._group, dict[Hashable, int]()
            for place, each in enumerate(waiting):
                first.setdefault(group(each.item), place)
            waiting.sort(key=lambda each: first[group(each.item)])
        most = len(waiting) if self._most is None else self._most()
        self._waiting = waiting[most:]
        return waiting[:most]

    async def _finish(self, batch: Sequence[_Waiting[Item, Result]]) -> None:
        loop, items = asyncio.get_running_loop(), [each.item for each in batch]
        try:
            results = await loop.run_in_executor(self._thread, self._run, items)
        except Exception as error:  # noqa: BLE001  # every caller is given it
            results = [error] * len(batch)
        for each, result in zip(batch, results, strict=True):
            if each.future.done():
                continue
            if isinstance(result, Exception):
                each.future.set_exception(result)
            else:
                each.future.set_result(result)
