"""Limits: how many calls an endpoint gets at once, and one pace that all of them share.

A 429 says something about the endpoint, not about the call that met it: it slows all calls down and uses up none of the
call's tries.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

from askance.errors import RateLimited
from askance.models.attempt import Journal, journal

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse
    from askance.models.loop import PerLoop
    from askance.models.seam import ChatModel

DEFAULT_CONCURRENCY = 16
"""Calls to one endpoint at a time."""

_BACK_OFF = 0.8
"""What a 429 leaves of the rate."""
_GROWTH = 0.2
"""Calls per second that each answer adds to the rate again."""
_WINDOW = 1.0
"""Seconds over which the rate that is let through is measured."""
_LONGEST_PAUSE = 30.0
"""Seconds, where the endpoint does not say how long."""


class Pace:
    """When the next call to one endpoint may start; used on one loop.

    Without a limit in sight calls start at once. A 429 stops all of them for as long as the endpoint asks, and from
    then on they start at a rate: what was let through lately, less on each further 429, more on each answer.
    """

    def __init__(self, concurrency: int | None = None) -> None:
        self.slots = asyncio.Semaphore(concurrency or DEFAULT_CONCURRENCY)
        self.rate: float | None = None
        """Calls per second; None is without limit."""
        self._queue = asyncio.Lock()
        self._opens = 0.0
        self._slowed = 0.0
        self._pause = 1.0
        self._answered: deque[float] = deque(maxlen=1024)

    async def turn(self) -> None:
        """Waits until a call may start; first come, first served."""
        async with self._queue:
            while (wait := self._opens - time.monotonic()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(wait)  # a 429 meanwhile makes the pause longer
            if self.rate is not None:
                self._opens = time.monotonic() + 1 / self.rate

    def pause(self, retry_after: float | None) -> float:
        """Seconds to stop for after a 429."""
        return self._pause if retry_after is None else retry_after

    def slow(self, sent: float, retry_after: float | None) -> None:
        """Notes a 429 to a call that was sent at `sent`, in `time.monotonic` seconds."""
        now = time.monotonic()
        self._opens = max(self._opens, now + self.pause(retry_after))
        if sent < self._slowed:
            return
        self._slowed = now
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        through = sum(now - at <= _WINDOW for at in self._answered) / _WINDOW
        self.rate = max((self.rate or through) * _BACK_OFF, 1.0)

    def steady(self) -> None:
        """Notes an answer."""
        self._answered.append(time.monotonic())
        self._pause = 1.0
        if self.rate is not None:
            self.rate += _GROWTH


class Limited:
    """Lets a call through when there is room; repeats it at the shared pace while the endpoint asks to slow down."""

    def __init__(self, wrapped: ChatModel, pace: PerLoop[Pace]) -> None:
        self._wrapped = wrapped
        self._pace = pace

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer.

        Raises:
            RateLimited: the endpoint asks for a longer pause than the call's deadline leaves.
        """
        pace = self._pace()
        notes = journal.get() or Journal(None)
        async with pace.slots:
            while True:
                await pace.turn()
                sent = time.monotonic()
                try:
                    response = await self._wrapped.generate(request)
                except RateLimited as error:
                    # A pause beyond the deadline is not imposed on the others: they would only wait for their own end.
                    if notes.late(pace.pause(error.retry_after)):
                        raise
                    pace.slow(sent, error.retry_after)
                else:
                    pace.steady()
                    return response
