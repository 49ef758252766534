"""The pace of calls to one endpoint among workers: times at which calls may start, handed out ahead of time.

The times are evenly spaced: all workers together are no faster than the limits of the run. A 429 that one worker gets
is a pause for all. What else an endpoint lets through is learnt by each worker alone. A thread draws the times, and no
event loop waits for it.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Protocol

from askance.errors import StoreError

if TYPE_CHECKING:
    from askance.replay.pace import Allowance, Pace

_log = logging.getLogger("askance")

SLICE = 2.0
"""Seconds for which a worker draws times ahead, at most; and between two looks at the pause of all."""
LATE = 0.05
"""Seconds after which a time that was handed out counts as missed: two calls in a row would come too fast."""
_IDLE = 10.0
"""Seconds without a call after which the thread ends; the next call begins another."""
_POLL = 0.02
"""Seconds to wait for times that are being drawn."""
FIRST_SIZE = 1000.0
"""Tokens that a call is assumed to take before any has been answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTimes:
    """What a worker draws at once."""

    number: int
    """Of times; 0 only asks for the pause."""
    every: float
    """Seconds between two calls of all workers; 0 is without such a limit."""
    every_token: float
    """Likewise, seconds for a token."""
    size: float
    """Tokens that a call takes."""
    uncounted: float
    """Tokens that calls have taken beyond what was drawn for them."""
    pause: float
    """Seconds for which all are to pause; 0 where nobody asked this worker to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTimes:
    """What was drawn."""

    paused: float
    """Seconds for which all pause."""
    starts: tuple[float, ...]
    """When calls may start, in seconds from now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """When an endpoint is open to the next call of any worker, in seconds from now."""

    calls: float = 0.0
    """By the limit of calls."""
    tokens: float = 0.0
    """By the limit of tokens."""
    paused: float = 0.0
    """By what the endpoint asked for."""

    def after(self, wanted: WantedTimes) -> tuple[Opening, DrawnTimes]:
        """When it is open once a worker has drawn, and what that worker drew."""
        paused, tokens = max(self.paused, wanted.pause), max(self.tokens, 0.0)
        first, per_call = max(self.calls, paused, 0.0), wanted.every_token * wanted.size
        starts = [max(first + n * wanted.every, tokens + n * per_call) for n in range(wanted.number)]
        calls = starts[-1] + wanted.every if starts else self.calls
        tokens += wanted.every_token * (wanted.number * wanted.size + wanted.uncounted)
        return Opening(calls=calls, tokens=tokens, paused=paused), DrawnTimes(paused=paused, starts=tuple(starts))


class Starts(Protocol):
    """What hands out the times of one endpoint to all workers, from any thread."""

    @property
    def closings(self) -> int:
        """How often it was closed: a thread that draws ends then."""
        ...

    def draw(self, wanted: WantedTimes, /) -> DrawnTimes:
        """Draws times.

        Raises:
            StoreError: it does not answer.
        """
        ...


class SharedPace:
    """When the next call to one endpoint may start, for this worker among all; see `Pace`.

    Args:
        starts: hands out the times, for this endpoint.
        own: what this process learns of the endpoint.
        rpm: calls per minute that all workers together never exceed; None is without such a limit.
        tpm: tokens per minute, likewise.
    """

    def __init__(self, starts: Starts, own: Pace, *, rpm: float | None, tpm: float | None) -> None:
        self._starts = starts
        self._own = own
        self._every = None if rpm is None else 60 / rpm
        """Seconds between two calls of all workers."""
        self._per_token = None if tpm is None else 60 / tpm
        self._size = FIRST_SIZE
        self._lock = Lock()
        self._times: deque[float] = deque()
        """When calls may start, by this process's clock."""
        self._number = 1
        """How many are drawn at once: more while they are used, fewer while they are missed."""
        self._uncounted: float = 0.0
        """Tokens that calls have taken beyond what was drawn for them."""
        self._paused = 0.0
        """Until when all pause."""
        self._pause_all = 0.0
        """Seconds for which all have still to be told to pause."""
        self._wanted = Event()
        self._used = 0.0
        self._thread: tuple[int, Thread] | None = None

    @property
    def _limited(self) -> bool:
        return self._every is not None or self._per_token is not None

    def wait(self, now: float, /) -> float:
        self._begin(now)
        with self._lock:
            wait = max(self._own.wait(now), self._paused - now)
            if not self._limited:
                return wait
            while self._times and self._times[0] < now - LATE:
                self._times.popleft()
                self._number = max(1, self._number // 2)
            if not self._times:
                self._wanted.set()
                return max(wait, _POLL)
            return max(wait, self._times[0] - now)

    def reason(self, now: float, /) -> str:
        if self._paused > now:
            return "the endpoint, which asked a worker to slow down (429)"
        if self._limited and self._own.wait(now) <= 0:
            limits = {"calls": self._every, "tokens": self._per_token}
            words = [f"{60 / each:g} {unit}" for unit, each in limits.items() if each is not None]
            return f"the limit of {' and '.join(words)} a minute for all workers"
        return self._own.reason(now)

    def started(self, now: float, /) -> None:
        self._own.started(now)
        with self._lock:
            if self._times:
                self._times.popleft()
            if self._limited and len(self._times) <= self._number // 2:
                self._wanted.set()

    def answered(self, now: float, tokens: int | None, /) -> None:
        self._own.answered(now, tokens)
        if tokens is not None and tokens >= 0:
            with self._lock:
                self._uncounted += tokens - self._size
                self._size += (tokens - self._size) / 16

    def pause(self, now: float, retry_after: float | None, /) -> float:
        return self._own.pause(now, retry_after)

    def rejected(self, now: float, sent: float, retry_after: float | None, /) -> None:
        self._own.rejected(now, sent, retry_after)
        with self._lock:
            self._pause_all = max(self._pause_all, self._own.wait(now))
        self._wanted.set()

    def learn(self, now: float, allowance: Allowance, /, *, under_way: int) -> None:
        self._own.learn(now, allowance, under_way=under_way)

    # ---- beside the loop -----------------------------------------------------------------------------------------

    def _begin(self, now: float) -> None:
        self._used = now
        thread = self._thread
        if thread is None or thread[0] != os.getpid() or not thread[1].is_alive():
            begun = Thread(target=self._follow, name="askance-pace", daemon=True)
            self._thread = (os.getpid(), begun)
            begun.start()

    def _follow(self) -> None:
        closings = self._starts.closings
        while time.monotonic() - self._used < _IDLE:
            self._wanted.wait(SLICE)
            self._wanted.clear()
            if self._starts.closings > closings:
                break
            try:
                self._draw()
            except StoreError as error:
                _log.warning("%s Workers do not know of each other's calls meanwhile.", error.message)
                time.sleep(SLICE)

    def _draw(self) -> None:
        """Takes over the pause of all, and draws times where there are few left.

        Raises:
            StoreError: nobody hands out times; nothing was drawn.
        """
        with self._lock:
            wanted = WantedTimes(
                number=self._number if self._limited and len(self._times) <= self._number // 2 else 0,
                every=self._every or 0.0,
                every_token=self._per_token or 0.0,
                size=self._size,
                uncounted=self._uncounted,
                pause=self._pause_all,
            )
        drawn = self._starts.draw(wanted)
        now = time.monotonic()
        with self._lock:
            self._paused = max(self._paused, now + drawn.paused)
            self._times.extend(now + start for start in drawn.starts)
            self._uncounted -= wanted.uncounted
            if self._pause_all <= wanted.pause:
                self._pause_all = 0.0
            if wanted.number:
                self._number = min(2 * wanted.number, self._most())

    def _most(self) -> int:
        every = max(self._every or 0.0, (self._per_token or 0.0) * self._size)
        return max(1, int(SLICE / every)) if every else 1
