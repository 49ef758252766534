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

_BACK_OFF = 0.9
"""What a 429 leaves of the rate that is let through."""
_GROWTH = 0.02, 0.7
"""Calls per second that an answer adds to the rate: soon after the rate was learnt, and at most."""
_WINDOW = 1.0
"""Seconds over which the rate that is let through is measured."""
_REST = 4.0
"""Calls left out after a 429 at a rate that is known well."""
_LAG = 0.05
"""Seconds of lateness of the loop's timer that later calls make up for."""
_LONGEST_PAUSE = 30.0
"""Seconds, where the endpoint does not say how long."""


class Pace:
    """When the next call to one endpoint may start; used on one loop.

    Without a limit in sight calls start at once. After a 429 they start at a rate: a little less than what was let
    through lately, more with each answer, and the faster the longer no further 429 comes. As long as nothing is let
    through, all wait for as long as the endpoint asks.
    """

    def __init__(self, concurrency: int | None = None) -> None:
        self.slots = asyncio.Semaphore(concurrency or DEFAULT_CONCURRENCY)
        self.rate: float | None = None
        """Calls per second; None is without limit."""
        self._queue = asyncio.Lock()
        self._opens = 0.0
        self._slowed = 0.0
        self._rejected = 0
        self._times = 0
        self._answered: deque[float] = deque(maxlen=4096)

    async def turn(self) -> None:
        """Waits until a call may start; first come, first served."""
        async with self._queue:
            while (wait := self._opens - time.monotonic()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(wait)  # a 429 meanwhile makes the pause longer
            if self.rate is not None:
                self._opens = max(self._opens, time.monotonic() - _LAG) + 1 / self.rate

    def pause(self, retry_after: float | None) -> float:
        """Seconds that the next 429 in a row asks for, also where the endpoint says 0."""
        doubling = 2.0**self._rejected
        return min(doubling, _LONGEST_PAUSE) if retry_after is None else max(retry_after, min(doubling / 20, 1.0))

    def slow(self, sent: float, retry_after: float | None) -> None:
        """Notes a 429 to a call that was sent at `sent`, in `time.monotonic` seconds."""
        now = time.monotonic()
        if sent < self._slowed:
            return
        through = sum(now - at <= _WINDOW for at in self._answered) / _WINDOW
        pause = self.pause(retry_after)
        if through:
            self._times += 1
            self.rate = _BACK_OFF * (through if self.rate is None else min(through, self.rate))
            if self._times > 1 and not self._rejected:
                # The rate is nearly right: a short rest is enough, and a whole pause would waste the allowance.
                pause = min(pause, _REST / self.rate)
        self._opens = max(self._opens, now + pause)
        self._slowed = now
        self._rejected = min(self._rejected + 1, 10)

    def steady(self) -> None:
        """Notes an answer."""
        now = time.monotonic()
        self._answered.append(now)
        self._rejected = 0
        if self.rate is not None:
            slow, fast = _GROWTH
            self.rate += fast if self._times < 2 else min(fast, slow * (1 + now - self._slowed))


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
