"""What the headers of a reply say about limits and waits.

**Limits.** OpenAI and those who follow it send `x-ratelimit-limit-requests`, `-remaining-requests` and
`-reset-requests` (and the same for `tokens`): how many fit at most, how many are left, and how long until all are back.
Others put a name in front, or give a moment in place of a duration.

**Moments.** The endpoint's clock need not agree with this machine's. A reply carries the time at which it was sent
(`Date`; RFC 9110, section 6.6.1) by the endpoint's clock, so seconds are counted from there. Without it they are
counted by this machine's clock and capped at `LONGEST_PAUSE`: two clocks an hour apart would otherwise turn a second
into an hour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from askance.replay import Allowance, Quota

LONGEST_PAUSE = 30.0
"""Most seconds of a wait that is counted by this machine's clock, since the endpoint did not send its own."""

LONGEST_WAIT = 1e9
"""Most seconds that any header says, about 32 years: clocks and numbers may be off by more."""


def seconds_until(moment: datetime | None, headers: Mapping[str, str]) -> float | None:
    """Seconds, 0 or more, from a reply with `headers` (names in lower case) to a moment that it names.

    None where the moment or its time zone is missing.
    """
    if moment is None or moment.tzinfo is None:
        return None
    sent = http_date(headers.get("date"))
    if sent is not None and sent.tzinfo is not None:
        return min(max(0.0, (moment - sent).total_seconds()), LONGEST_WAIT)
    return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), LONGEST_PAUSE)


def http_date(text: str | None) -> datetime | None:
    """The moment that a header such as `Date` holds; None where it holds none."""
    from email.utils import parsedate_to_datetime  # loaded with the first such header: a replay meets none

    try:
        return None if text is None else parsedate_to_datetime(text)
    except (OverflowError, ValueError):
        return None


_NAMES = (
    "x-ratelimit-{part}-{unit}",
    "anthropic-ratelimit-{unit}-{part}",
)
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_SECONDS = (86400.0, 3600.0, 60.0, 1.0, 0.001)


def limit_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of `headers`, names in any case, that are about limits, and `date`; names in lower case."""
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
        values = [headers.get(name.format(part=part, unit=unit)) for part in ("limit", "remaining", "reset")]
        limit, remaining = _number(values[0]), _number(values[1])
        reset = _duration(values[2], headers)
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
    """Seconds in a number or in `1m30.5s`, or from a reply with `headers` to a moment in ISO form."""
    if not text or len(text) > 64:
        return None
    if (seconds := _number(text)) is not None:
        return min(seconds, LONGEST_WAIT)
    if match := _DURATION.fullmatch(text):
        seconds = sum(float(part or 0) * unit for part, unit in zip(match.groups(), _SECONDS, strict=True))
        return min(seconds, LONGEST_WAIT)
    try:
        return seconds_until(datetime.fromisoformat(text), headers)
    except ValueError:
        return None


def headers_of(cause: BaseException) -> Mapping[str, str]:
    """The headers of the reply in a vendor's exception, names in lower case; empty where there is none."""
    headers: Any = getattr(getattr(cause, "response", None), "headers", None)
    return {str(name).lower(): str(value) for name, value in headers.items()} if hasattr(headers, "items") else {}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers of a reply ask to wait, from `retry-after-ms` or either form of `retry-after`."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return min(seconds, LONGEST_WAIT) if 0 <= seconds < float("inf") else None
    return seconds_until(http_date(headers.get("retry-after")), headers)
