"""Limits of an endpoint: how many calls it gets at once, and one pace that all of them share.

A 429 is about the endpoint, not about the call that it answers: it slows all calls down and uses up none of the call's
tries. Nor is a try used up while the endpoint answers nobody, as during a restart.

The number of calls at once is given or learnt. It grows while more calls at once are answered as quickly as fewer were,
and shrinks when answers take longer or the endpoint is overloaded. What counts is the mean over a round: as many
answers as there are places.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from typing import TYPE_CHECKING

from askance.amounts import duration
from askance.errors import CallTimeout, ModelError, RateLimited, ServerFault, Unreachable
from askance.models.headers import allowance_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.chat import ChatResponse
    from askance.models.live_call import LiveCall
    from askance.replay import Pace

DEFAULT_CONCURRENCY = 16
"""Calls to one endpoint at a time, to begin with."""
MOST = 256
"""The most places, where the number is learnt."""

_GROWTH = 1.5
_HOLDS, _SUFFERS = 1.5, 2.5
"""Times the quickest round's mean: up to the first more places are tried, from the second on there are fewer."""
_SHRINK = 0.8
_FORGET = 1.02
"""Factor by which the quickest round's mean grows with each round, since what is asked changes."""
_BAD = 0.1
"""Share of a round's outcomes, two at least, that are timeouts or signs of overload before places are halved."""


class ConcurrencyLimit:
    """Places for calls to one endpoint; used on one loop.

    Args:
        fixed: number of places; None learns it.
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
        """Notes, now, that a call that started at `sent` met a timeout, a refused connection or a 503."""
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


_log = logging.getLogger("askance")

LATER = "Run the same command later, or with another `--rpm` or `--tpm`: what is on record is not asked again."

OUTAGE = 120.0
"""Seconds for which an endpoint that has answered before may answer nobody until calls use up tries."""

NEWS = 5.0
"""Least seconds of waiting that a warning tells of; it is repeated every `NEWS_AGAIN` seconds."""
NEWS_AGAIN = 30.0
LOOK_AGAIN = 1.0
"""Seconds after which a call that waits for its turn looks again when that is."""

_GONE = frozenset({502, 503, 504})
"""Statuses of an endpoint that is overloaded, or of a proxy that does not reach it."""


class EndpointLimits:
    """What all calls to one endpoint share; used on one loop.

    Args:
        pace: when the next call may start.
        concurrency: calls at a time; None learns how many.
    """

    def __init__(self, pace: Pace, concurrency: int | None = None) -> None:
        self.pace = pace
        self.concurrency = ConcurrencyLimit(concurrency)
        self._line = asyncio.Lock()
        self._alive: float | None = None
        """When the endpoint answered last."""
        self._rejecting: float | None = None
        """Since when every reply has been a 429."""
        self._warned = -math.inf

    async def wait_for_turn(self, call: LiveCall) -> float:
        """Waits until a call may start, first come, first served; returns when it started.

        Raises:
            RateLimited: the next call may not start before the deadline of this one, or the endpoint has rejected every
                call for as long as a deadline.
        """
        async with self._line:
            while (wait := self.pace.wait(now := time.monotonic())) > 0:
                reason = self.pace.reason(now)
                if call.is_late(wait):
                    raise RateLimited(
                        f"{call.request.model} can be asked again in {duration(wait)}: the call waited for {reason}.",
                        hint=LATER,
                    )
                rejecting = 0.0 if self._rejecting is None else now - self._rejecting
                if call.deadline is not None and rejecting >= call.deadline:
                    raise RateLimited(
                        f"{call.request.model} has rejected every call for {duration(rejecting)} (429).", hint=LATER
                    )
                self._warn(now, wait, f"{call.request.model}: waiting {duration(wait)} for {reason}")
                # A 429 meanwhile makes it longer, and an answer may make it shorter.
                await asyncio.sleep(min(wait, LOOK_AGAIN))
            self.pace.started(now)
            return now

    def rejected(self, sent: float, error: RateLimited, call: LiveCall) -> bool:
        """Notes a 429 to a call that started at `sent`; whether `call` can wait as long as it asks for."""
        now = time.monotonic()
        if self._rejecting is None:
            self._rejecting = now
        # A pause beyond the deadline does not stop the others, whose deadlines would pass too.
        if call.is_late(self.pace.pause(now, error.retry_after)):
            return False
        self.pace.rejected(now, sent, error.retry_after)
        _log.debug("%s: no call starts for %.1f s", call.request.model, self.pace.wait(now))
        return True

    def _warn(self, now: float, wait: float, words: str) -> None:
        if wait >= NEWS and now - self._warned >= NEWS_AGAIN:
            self._warned = now
            _log.warning("%s", words)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Learns what a reply's headers say about limits."""
        if (allowance := allowance_of(headers)) is not None:
            self.pace.learn(time.monotonic(), allowance, under_way=self.concurrency.taken)

    def answered(self, sent: float, response: ChatResponse) -> None:
        """Notes an answer to a call that started at `sent`."""
        now = self._alive = time.monotonic()
        self._rejecting = None
        used = response.usage
        self.pace.answered(now, None if used.input is None else used.input + (used.output or 0))
        self.concurrency.answered(now - sent)

    def failed(self, sent: float, error: ModelError) -> bool:
        """Notes a fault; whether it is the endpoint's alone, so that it uses up no try of the call."""
        now = time.monotonic()
        gone = isinstance(error, Unreachable) or (isinstance(error, ServerFault) and error.status in _GONE)
        if gone or isinstance(error, CallTimeout):
            self.concurrency.overloaded(now, sent)
        elif error.status is not None:
            self._alive = now
        return gone and self._alive is not None and self._alive < sent and now - self._alive < OUTAGE
