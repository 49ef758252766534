"""The pace of calls to one endpoint: the protocol, and what an endpoint says about its limits.

All times are seconds of one monotonic clock; a jump of the wall clock changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Quota:
    """One limit: of calls, or of tokens."""

    limit: float
    remaining: float
    reset: float
    """Seconds until `limit` is there again."""

    @property
    def refill(self) -> float | None:
        """What is there again each second; None where that is not known."""
        used = self.limit - self.remaining
        return used / self.reset if used > 0 and self.reset > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What an endpoint still allows; None is not known."""

    calls: Quota | None = None
    tokens: Quota | None = None


class Pace(Protocol):
    """When the next call to one endpoint may start.

    It is used on the live loop, which none of its methods may hold up. `now` and `sent` are seconds of
    `time.monotonic()`. `LearntPace` knows what this process has learnt. A pace that several machines share can give
    each of them a part of the rate, fetched beside the loop.
    """

    def wait(self, now: float, /) -> float:
        """Seconds until a call may start; 0 and less is now."""
        ...

    def reason(self, now: float, /) -> str:
        """What the next call waits for, in words: `the endpoint's token limit`."""
        ...

    def started(self, now: float, /) -> None:
        """Notes that a call starts."""
        ...

    def answered(self, now: float, tokens: int | None, /) -> None:
        """Notes how many tokens an answered call took; a count that no call can have is ignored, as is None."""
        ...

    def pause(self, now: float, retry_after: float | None, /) -> float:
        """Seconds that a 429 asks for: longer with each in a row, also where the endpoint says 0."""
        ...

    def rejected(self, now: float, sent: float, retry_after: float | None, /) -> None:
        """Notes a 429 to a call that started at `sent`."""
        ...

    def learn(self, now: float, allowance: Allowance, /, *, under_way: int) -> None:
        """Notes what the endpoint says it still allows, while `under_way` calls are."""
        ...
