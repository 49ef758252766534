"""The pace of calls to one endpoint, calls and tokens a second: given, or learnt from what the endpoint lets through.

A 429 says that all calls together come too fast. The rate that was let through just before it is nearly the limit. So
the pace falls a little below that rate, comes back to it within seconds, stays there for a while, and then rises. The
allowance is used in full, at the price of a 429 now and then, by which the limit is known.

All times are seconds of one monotonic clock; a jump of the wall clock changes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.chat import MOST_TOKENS
from askance.models.headers import LONGEST_PAUSE

if TYPE_CHECKING:
    from askance.replay import Allowance

LAG = 0.05
"""Seconds by which the loop's timer may be late; later calls make up for that much."""

FIRST_SIZE = 1000.0
"""Tokens that a call is assumed to take before any has been answered."""

_BACK_OFF = 0.1
"""Part of the known rate that a 429 takes away at first."""
_SEARCH = 2.0
"""Growth a second while a limit has been met once only and what was let through then may be far below it."""
_COUNTED = 20
"""Calls that a measured rate should rest on."""
_SHORTEST, _LONGEST = 1.0, 30.0
"""Seconds over which it is measured, at least and at most."""
_SETTLED = 0.3
"""Seconds after which a call that has not been rejected has been let through: a 429 comes at once."""
_REST = 4.0
"""Calls left out after a 429 at a rate that is known well."""
_UNLIMITED = 1e4
"""Calls per second from which on there is no limit to speak of."""


Claim: TypeAlias = Literal["none", "made", "tested", "wrong"]
"""A claim of the endpoint's that nothing is left for long: one call starts all the same, and its end decides."""


@dataclass(slots=True)
class RateLimit:
    """A limit of calls, or of tokens, per second."""

    rate: float | None = None
    """Per second; None is without limit."""
    longest: float = LONGEST_PAUSE
    """Most seconds from now to `opens`. A rate that is learnt is a guess, which a call has to test."""
    opens: float = 0.0
    """When the next is let through."""

    def take(self, now: float, amount: float = 1.0) -> None:
        """Lets `amount` through now; a negative amount gives back."""
        if self.rate is not None:
            self.opens = min(max(self.opens, now - LAG) + amount / self.rate, now + self.longest)


class LearntPace:
    """The pace that this process has learnt, or that it is given.

    Args:
        rpm: calls per minute that are never exceeded; None learns the rate.
        tpm: tokens per minute, likewise.
    """

    def __init__(self, *, rpm: float | None = None, tpm: float | None = None) -> None:
        self._most = None if rpm is None else rpm / 60
        self._fixed_tokens = tpm is not None
        self._calls = RateLimit(self._most, LONGEST_PAUSE if rpm is None else max(LONGEST_PAUSE, 60 / rpm))
        self._tokens = RateLimit() if tpm is None else RateLimit(tpm / 60, math.inf)
        self._size = FIRST_SIZE
        self._known: float | None = None
        """Calls per second that were let through when the limit was last met."""
        self._before: float | None = None
        """What was known until then."""
        self._paused = 0.0
        self._slowed = -math.inf
        self._since = 0.0
        self._met = 0
        self._in_a_row = 0
        self._claim: Claim = "none"
        """What the endpoint says about a wait that is longer than any here."""
        self._sent: deque[float] = deque(maxlen=4096)
        """When calls started that have not been rejected."""

    def rate(self, now: float) -> float | None:
        """Calls per second that may start; None is without limit."""
        if self._known is None:
            return self._most
        age = max(0.0, now - self._since)
        if self._met < 2:
            learnt = (1 - _BACK_OFF) * self._known * math.exp(min(_SEARCH * age, 50.0))
        else:
            learnt = self._known * (1 + _BACK_OFF * (age / self._return() - 1) ** 3)
        if self._most is not None:
            return min(learnt, self._most)
        return learnt if learnt < _UNLIMITED else None

    def wait(self, now: float, /) -> float:
        return max(self._calls.opens, self._tokens.opens) - now

    def reason(self, now: float, /) -> str:
        if self._tokens.opens > self._calls.opens:
            limit = f"the limit of {60 * self._tokens.rate:g} tokens a minute" if self._tokens.rate else ""
            return limit if self._fixed_tokens else "the endpoint's token limit"
        if self._paused > now:
            return "the endpoint, which asked to slow down (429)"
        if self._most is not None and self._calls.rate == self._most:
            return f"the limit of {60 * self._most:g} calls a minute"
        return "the endpoint's rate limit"

    def started(self, now: float, /) -> None:
        if self._claim == "made":
            self._claim = "tested"
        self._calls.rate = self.rate(now)
        self._calls.take(now)
        self._tokens.take(now, self._size)
        self._sent.append(now)

    def answered(self, now: float, tokens: int | None, /) -> None:
        if self._claim == "tested":
            self._contradict(now)
        if tokens is not None and 0 <= tokens <= MOST_TOKENS:
            self._tokens.take(now, tokens - self._size)
            self._size += (tokens - self._size) / 16

    def pause(self, now: float, retry_after: float | None, /) -> float:
        doubling = 2.0 ** min(self._limits_in_a_row(now), 10)
        return min(doubling, LONGEST_PAUSE) if retry_after is None else max(retry_after, min(doubling / 20, 1.0))

    def rejected(self, now: float, sent: float, retry_after: float | None, /) -> None:
        self._claim = "none"
        if sent in self._sent:
            self._sent.remove(sent)
        if sent < self._slowed:
            # It was under way when the pace slowed down already; it only tells by how much the calls were too many.
            self._measure()
            return
        pause, self._in_a_row = self.pause(now, retry_after), self._limits_in_a_row(now)
        self._before, self._met, self._slowed = self._known, self._met + 1, now
        self._measure()
        if self._before is not None and self._known:
            # The rate is nearly right: a short rest is enough, and a whole pause would waste the allowance.
            pause = min(pause, _REST * 4**self._in_a_row / self._known)
        self._since = self._paused = max(self._paused, now + pause)
        self._calls.opens = max(self._calls.opens, self._paused)  # a pause is no lateness to make up for

    def learn(self, now: float, allowance: Allowance, /, *, under_way: int) -> None:
        if self._claim == "wrong":
            return
        calls, tokens = allowance.calls, allowance.tokens
        if calls is not None and calls.refill and calls.remaining <= under_way:
            self._known, self._met, self._since = calls.refill, max(self._met, 2), now
            self._since -= self._return()  # as if it had been known for a while
            self._note_claim(calls.refill, 1.0)
        if tokens is not None and tokens.refill and not self._fixed_tokens:
            least = self._size / LONGEST_PAUSE
            short = tokens.remaining <= (under_way + 1) * self._size
            self._tokens.rate = max(tokens.refill, least) if short else None
            if short:
                self._note_claim(tokens.refill, self._size)

    def _note_claim(self, refill: float, amount: float) -> None:
        """Notes a claim by which the next call would wait longer than any wait that is only claimed."""
        if self._claim == "none" and refill * LONGEST_PAUSE < amount:
            self._claim = "made"

    def _contradict(self, now: float) -> None:
        """Forgets what the endpoint claims: it answered a call that was to wait, and so says nothing until a 429."""
        self._claim = "wrong"
        if not self._fixed_tokens:
            self._tokens = RateLimit()
        self._known, self._met = None, 0
        self._calls.rate, self._calls.opens = self._most, min(self._calls.opens, now)

    def _limits_in_a_row(self, now: float) -> int:
        """How many 429s came in a row before one that comes now."""
        if not self._met or any(self._slowed < at < now - _SETTLED for at in self._sent):
            return 0
        return self._in_a_row + 1

    def _measure(self) -> None:
        """Works out what was let through before the pace was slowed down."""
        if self._before is not None and self._in_a_row:
            self._known = (1 - _BACK_OFF) * self._before
            return
        count = _COUNTED if self._met > 2 else _COUNTED // 2
        ages = [age for at in reversed(self._sent) if 0 <= (age := self._slowed - at) < _LONGEST]
        span = _SHORTEST if self._before is None else min(max([*ages, 0.0][:count]), _LONGEST)
        span = max(span, _SHORTEST if self._before is None else _SHORTEST / 5)
        through = max(sum(age <= span for age in ages), 1) / span
        # Fewer may have been sent than were allowed, so that one measure takes away no more than half.
        least = 0.5 if self._met < 3 else 0.85
        self._known = through if self._before is None else max(through, least * self._before)

    def _return(self) -> float:
        """Seconds until the rate is back at what was let through."""
        sure = min(max(self._met - 1, 1), 4) / 2
        return sure * max(1.0, min(_COUNTED / (self._known or 1.0), 20.0))
