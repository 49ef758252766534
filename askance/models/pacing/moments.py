"""Moments that an endpoint names, as seconds from now. Its clock need not agree with this machine's.

A reply carries the time at which it was sent (`Date`; RFC 9110, section 6.6.1), by the clock that named the moment, so
the seconds are reckoned from there. Where it carries none they are reckoned by this machine's clock and taken to be no
more than `LONGEST_PAUSE`: two clocks an hour apart would otherwise make an hour of every second.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_PAUSE = 30.0
"""Seconds to wait at most where the endpoint does not say, by its own clock, how long."""


def seconds_until(moment: datetime | None, headers: Mapping[str, str]) -> float | None:
    """Seconds, none of them negative, from a reply with `headers` (names in lower case) to a moment that it names.

    None where the moment is missing, or its time zone.
    """
    if moment is None or moment.tzinfo is None:
        return None
    sent = http_date(headers.get("date"))
    if sent is not None and sent.tzinfo is not None:
        return max(0.0, (moment - sent).total_seconds())
    return min(max(0.0, (moment - datetime.now(UTC)).total_seconds()), LONGEST_PAUSE)


def http_date(text: str | None) -> datetime | None:
    """The moment that a header such as `Date` holds; None where it holds none."""
    from email.utils import parsedate_to_datetime  # loaded with the first such header: a replay meets none

    try:
        return None if text is None else parsedate_to_datetime(text)
    except ValueError:
        return None
