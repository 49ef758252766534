from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from askance.models.scribe import TOGETHER, Scribe


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
    scribe = Scribe(book.put)
    first = asyncio.create_task(scribe.write(0))
    await asyncio.to_thread(book.begun.wait, 10)
    others = [asyncio.create_task(scribe.write(number)) for number in range(1, 5)]
    await asyncio.sleep(0)
    scribe.write_soon(5)
    book.open.set()

    assert [await task for task in (first, *others)] == [True, False, True, False, True]
    scribe.flush()
    assert book.pages == [[0], [1, 2, 3, 4, 5]]


async def test_only_so_much_is_written_at_once() -> None:
    book = Book()
    scribe = Scribe(book.put)
    scribe.write_soon(-1)
    await asyncio.to_thread(book.begun.wait, 10)
    for number in range(TOGETHER + 1):
        scribe.write_soon(number)
    book.open.set()
    scribe.flush()
    assert [len(page) for page in book.pages] == [1, TOGETHER, 1]
    assert [number for page in book.pages for number in page] == [*range(-1, TOGETHER + 1)]


async def test_what_nobody_waits_for_any_more_is_written_all_the_same() -> None:
    book = Book()
    scribe = Scribe(book.put)
    scribe.write_soon(0)
    await asyncio.to_thread(book.begun.wait, 10)
    given_up = asyncio.create_task(scribe.write(1))
    await asyncio.sleep(0)
    given_up.cancel()
    book.open.set()
    scribe.flush()
    await asyncio.gather(given_up, return_exceptions=True)
    assert book.pages == [[0], [1]]


def test_a_loop_that_has_ended_stops_nobody() -> None:
    book = Book()
    scribe = Scribe(book.put)

    async def begin() -> None:
        task = asyncio.create_task(scribe.write(1))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(begin())
    book.open.set()
    scribe.flush()
    scribe.write_soon(2)
    scribe.flush()
    assert book.pages == [[1], [2]]
