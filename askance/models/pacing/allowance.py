"""What the headers of a reply say about the endpoint's rate limits.

OpenAI and those who follow it send `x-ratelimit-limit-requests`, `-remaining-requests` and `-reset-requests` (and the
same for `tokens`): how many fit at most, how many are left, and how long until all are back. Others put a name in
front, or give a moment in place of a duration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from askance.models.pacing.moments import seconds_until

_NAMES = (
    "x-ratelimit-{part}-{unit}",
    "anthropic-ratelimit-{unit}-{part}",
)
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_SECONDS = (86400.0, 3600.0, 60.0, 1.0, 0.001)


@dataclass(frozen=True, slots=True)
class Quota:
    """One limit: of calls, or of tokens."""

    limit: float
    remaining: float
    reset: float
    """Seconds until `limit` is there again."""

    @property
    def refill(self) -> float | None:
        """What comes back per second; None where it cannot be told."""
        used = self.limit - self.remaining
        return used / self.reset if used > 0 and self.reset > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What an endpoint still allows; None is not said."""

    calls: Quota | None = None
    tokens: Quota | None = None


def limit_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of `headers`, names in any case, that say something about limits, and `date`; names in lower case."""
    small = {name.lower(): value for name, value in headers.items() if _is_of_limits(name)}
    return small | ({"date": headers["date"]} if small and "date" in headers else {})


def allowance_of(headers: Mapping[str, str]) -> Allowance | None:
    """What `headers`, names in any case, say about limits; None where they say nothing."""
    if not any(map(_is_of_limits, headers)):
        return None
    small = {name.lower(): value for name, value in headers.items()}
    calls, tokens = (_quota(small, unit) for unit in ("requests", "tokens"))
    return Allowance(calls=calls, tokens=tokens) if calls or tokens else None


def _is_of_limits(name: str) -> bool:
    return "ratelimit" in name.lower()


def _quota(headers: Mapping[str, str], unit: str) -> Quota | None:
    for name in _NAMES:
        said = [headers.get(name.format(part=part, unit=unit)) for part in ("limit", "remaining", "reset")]
        limit, remaining = _number(said[0]), _number(said[1])
        reset = _duration(said[2], headers)
        if limit is not None and remaining is not None and reset is not None:
            return Quota(limit, remaining, reset)
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e15 else None


def _duration(text: str | None, headers: Mapping[str, str]) -> float | None:
    """Seconds in a number, in `1m30.5s` and its like, or from a reply with `headers` to a moment in ISO form."""
    if not text or len(text) > 64:
        return None
    if (seconds := _number(text)) is not None:
        return seconds
    if found := _DURATION.fullmatch(text):
        return sum(float(part or 0) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True))
    try:
        return seconds_until(datetime.fromisoformat(text), headers)
    except ValueError:
        return None
