"""How many calls an endpoint has at once: given, or found out from how it takes them.

The room grows while more calls at once are answered as quickly as fewer were, and gives way when answers take longer or
the endpoint is overloaded. What counts is the mean over a round: as many answers as the room holds.
"""

from __future__ import annotations

import asyncio
from collections import deque

DEFAULT_CONCURRENCY = 16
"""Calls to one endpoint at a time, to begin with."""
MOST = 256
"""The most that the room grows to."""

_GROWTH = 1.5
_HOLDS, _SUFFERS = 1.5, 2.5
"""Times the quickest round's mean, up to which latency holds, and from which on the room shrinks."""
_SHRINK = 0.8
_FORGET = 1.02
"""Growth a round of the mean that others are held against, since what is asked changes."""
_BAD = 0.1
"""Part of the outcomes of a round that may be time-outs or signs of overload; two, at least, must be."""


class Room:
    """Places for calls to one endpoint; used on one loop.

    Args:
        fixed: places; None finds out how many.
    """

    def __init__(self, fixed: int | None = None) -> None:
        self.places = fixed or DEFAULT_CONCURRENCY
        self.taken = 0
        self._fixed = fixed is not None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._full = False
        self._good = self._bad = 0
        self._seconds = 0.0
        self._best: float | None = None
        self._shrunk = 0.0

    async def enter(self) -> None:
        """Waits for a place, first come, first served."""
        if self.taken < self.places and not self._waiting:
            self.taken += 1
            return
        self._full = True
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Gives a place back."""
        self.taken -= 1
        self._wake()

    def answered(self, seconds: float) -> None:
        """Notes how long an answer took."""
        self._good += 1
        self._seconds += seconds
        if self._good >= self.places and not self._fixed:
            self._end_round()

    def overloaded(self, now: float, sent: float) -> None:
        """Notes, now, that a call that started at `sent` met a time-out, a refused connection or a 503."""
        if self._fixed or sent < self._shrunk:
            return
        self._bad += 1
        if self._bad >= 2 and self._bad >= _BAD * (self._good + self._bad):
            self.places = max(1, self.places // 2)
            self._shrunk = now
            self._start_round()

    def _end_round(self) -> None:
        mean, full = self._seconds / self._good, self._full
        self._start_round()
        if self._best is None or mean < self._best:
            self._best = mean
        if mean > _SUFFERS * self._best:
            self.places = max(min(self.places, DEFAULT_CONCURRENCY), int(self.places * _SHRINK))
        elif mean <= _HOLDS * self._best and full:
            self.places = min(int(self.places * _GROWTH) + 1, MOST)
            self._wake()
        self._best *= _FORGET

    def _start_round(self) -> None:
        self._good = self._bad = 0
        self._seconds, self._full = 0.0, bool(self._waiting)

    def _wake(self) -> None:
        while self._waiting and self.taken < self.places:
            place = self._waiting.popleft()
            if not place.done():
                self.taken += 1
                place.set_result(None)
