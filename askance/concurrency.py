"""Work on many inputs at once: results come in the order of the inputs, and few are held at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

HELD = 4
"""Inputs whose results are not given out yet, at most, in multiples of those under way."""

In = TypeVar("In")
Out = TypeVar("Out")


async def map_in_order(
    work: Callable[[In], Coroutine[Any, Any, Out]], inputs: Iterable[In], *, room: Callable[[], int]
) -> AsyncGenerator[Out, None]:
    """The results of `work`, each as soon as it and those before it are there.

    Where one takes long, at most a few times `room` results are held until it has ended. What is left is cancelled when
    the caller stops reading.

    Args:
        work: what is done with one input.
        inputs: taken one by one, when there is room.
        room: how many may be under way by now.
    """
    begun: deque[asyncio.Task[Out]] = deque()
    unfinished, ended = 0, asyncio.Event()

    def end(_: object) -> None:
        nonlocal unfinished
        unfinished -= 1
        ended.set()

    try:
        for one in inputs:
            task = asyncio.create_task(work(one))
            task.add_done_callback(end)
            begun.append(task)
            unfinished += 1
            while unfinished >= room() or len(begun) >= HELD * room() or (begun and begun[0].done()):
                if begun[0].done():
                    yield begun.popleft().result()
                else:
                    ended.clear()
                    await ended.wait()
        while begun:
            yield await begun.popleft()
    finally:
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
