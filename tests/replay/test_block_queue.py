"""Work in a thread, in blocks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from askance.errors import StoreError
from askance.replay.block_queue import TOGETHER, BlockQueue


class Book:
    """Writes when it is let."""

    def __init__(self) -> None:
        self.pages: list[list[int]] = []
        self.open = threading.Event()
        self.begun = threading.Event()

    def put(self, some: Sequence[int]) -> list[bool]:
        self.begun.set()
        self.open.wait(10)
        self.pages.append([*some])
        return [one % 2 == 0 for one in some]


async def test_what_waits_at_the_same_time_is_written_together() -> None:
    book = Book()
    queue = BlockQueue(book.put, name="book")
    first = asyncio.create_task(queue.do(0))
    await asyncio.to_thread(book.begun.wait, 10)
    others = [asyncio.create_task(queue.do(number)) for number in range(1, 5)]
    await asyncio.sleep(0)
    queue.do_soon(5)
    book.open.set()

    assert [await task for task in (first, *others)] == [True, False, True, False, True]
    queue.flush()
    assert book.pages == [[0], [1, 2, 3, 4, 5]]


async def test_only_so_much_is_written_at_once() -> None:
    book = Book()
    queue = BlockQueue(book.put, name="book")
    queue.do_soon(-1)
    await asyncio.to_thread(book.begun.wait, 10)
    for number in range(TOGETHER + 1):
        queue.do_soon(number)
    book.open.set()
    queue.flush()
    assert [len(page) for page in book.pages] == [1, TOGETHER, 1]
    assert [number for page in book.pages for number in page] == [*range(-1, TOGETHER + 1)]


async def test_what_nobody_waits_for_any_more_is_written_all_the_same() -> None:
    book = Book()
    queue = BlockQueue(book.put, name="book")
    queue.do_soon(0)
    await asyncio.to_thread(book.begun.wait, 10)
    given_up = asyncio.create_task(queue.do(1))
    await asyncio.sleep(0)
    given_up.cancel()
    book.open.set()
    queue.flush()
    await asyncio.gather(given_up, return_exceptions=True)
    assert book.pages == [[0], [1]]


def test_a_loop_that_has_ended_stops_nobody() -> None:
    book = Book()
    queue = BlockQueue(book.put, name="book")

    async def begin() -> None:
        task = asyncio.create_task(queue.do(1))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(begin())
    book.open.set()
    queue.flush()
    queue.do_soon(2)
    queue.flush()
    assert book.pages == [[1], [2]]


async def test_what_a_block_raises_is_raised_for_each_of_it() -> None:
    def work(some: Sequence[int]) -> list[int]:
        if 3 in some:
            raise StoreError("The database is gone.")
        return [-one for one in some]

    queue = BlockQueue(work, name="work", most=1)
    results = await asyncio.gather(*map(queue.do, range(1, 5)), return_exceptions=True)
    assert [str(each) for each in results] == ["-1", "-2", "The database is gone.", "-4"]
    with pytest.raises(StoreError):
        await queue.do(3)
    queue.flush()
