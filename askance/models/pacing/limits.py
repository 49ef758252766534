"""Limits: how many calls an endpoint gets at once, and one pace that all of them share.

A 429 says something about the endpoint, not about the call that met it: it slows all calls down and uses up none of the
call's tries. Neither does an endpoint that stopped answering anybody, as one that is being restarted does.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING

from askance.amounts import duration
from askance.errors import CallTimeout, ModelError, RateLimited, ServerFault, Unreachable
from askance.models.pacing.allowance import allowance_of
from askance.models.pacing.pace import Pace
from askance.models.pacing.room import Room

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.chat import ChatResponse
    from askance.models.call import LiveCall

_log = logging.getLogger("askance")

LATER = "Run the same command later, or with another `--rpm` or `--tpm`: what is on record is not asked again."

OUTAGE = 120.0
"""Seconds that an endpoint that has answered before may answer nobody, before calls give up."""

SAID = 5.0
"""Seconds of waiting that are worth a word; it is said again every `SAID_AGAIN` seconds."""
SAID_AGAIN = 30.0

_GONE = frozenset({502, 503, 504})
"""Statuses of an endpoint that is overloaded, or of a proxy with none behind it."""


class Endpoint:
    """What all calls to one endpoint share; used on one loop.

    Args:
        concurrency: calls at a time; None finds out how many.
        rpm: calls per minute; None learns the rate.
        tpm: tokens per minute; None learns that from what the endpoint says.
    """

    def __init__(self, concurrency: int | None = None, *, rpm: float | None = None, tpm: float | None = None) -> None:
        self.room = Room(concurrency)
        self.pace = Pace(rpm=rpm, tpm=tpm)
        self._line = asyncio.Lock()
        self._alive: float | None = None
        self._rejecting: float | None = None
        """Since when every reply has been a 429."""
        self._said = -math.inf

    async def turn(self, call: LiveCall) -> float:
        """Waits until a call may start, first come, first served; returns when it started.

        Raises:
            RateLimited: the next call may not start before the deadline of this one, or the endpoint has rejected every
                call for as long as a deadline.
        """
        async with self._line:
            while (wait := self.pace.wait(now := time.monotonic())) > 0:
                reason = self.pace.reason(now)
                if call.late(wait):
                    raise RateLimited(
                        f"{call.request.model} can be asked again in {duration(wait)}: the call waited for {reason}.",
                        hint=LATER,
                    )
                rejecting = 0.0 if self._rejecting is None else now - self._rejecting
                if call.deadline is not None and rejecting >= call.deadline:
                    raise RateLimited(
                        f"{call.request.model} has rejected every call for {duration(rejecting)} (429).", hint=LATER
                    )
                self._say(now, wait, f"{call.request.model}: waiting {duration(wait)} for {reason}")
                await asyncio.sleep(min(wait, SAID_AGAIN))  # a 429 meanwhile makes it longer
            self.pace.start(now)
            return now

    def slows(self, sent: float, error: RateLimited, call: LiveCall) -> bool:
        """Notes a 429 to a call that started at `sent`, and slows all calls down; whether `call` can wait so long."""
        now = time.monotonic()
        if self._rejecting is None:
            self._rejecting = now
        # A pause beyond the deadline is not imposed on the others: they would only wait for their own end.
        if call.late(self.pace.pause(now, error.retry_after)):
            return False
        self.pace.slow(now, sent, error.retry_after)
        _log.debug("%s: no call starts for %.1f s", call.request.model, self.pace.wait(now))
        return True

    def _say(self, now: float, wait: float, words: str) -> None:
        if wait >= SAID and now - self._said >= SAID_AGAIN:
            self._said = now
            _log.warning("%s", words)

    def hear(self, headers: Mapping[str, str]) -> None:
        """Takes what a reply's headers say about limits."""
        if (allowance := allowance_of(headers)) is not None:
            self.pace.hear(time.monotonic(), allowance, under_way=self.room.taken)

    def answered(self, sent: float, response: ChatResponse) -> None:
        """Notes an answer to a call that started at `sent`."""
        now = self._alive = time.monotonic()
        self._rejecting = None
        used = response.usage
        self.pace.spent(now, None if used.input is None else used.input + (used.output or 0))
        self.room.answered(now - sent)

    def failed(self, sent: float, error: ModelError) -> bool:
        """Notes a fault; returns whether it is the endpoint's alone, so that it uses up no try of the call's."""
        now = time.monotonic()
        gone = isinstance(error, Unreachable) or (isinstance(error, ServerFault) and error.status in _GONE)
        if gone or isinstance(error, CallTimeout):
            self.room.overloaded(now, sent)
        elif error.status is not None:
            self._alive = now
        return gone and self._alive is not None and self._alive < sent and now - self._alive < OUTAGE
