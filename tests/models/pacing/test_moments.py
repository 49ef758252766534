"""Moments that an endpoint names, whatever its clock and this machine's say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from askance.models.complaints import retry_after
from askance.models.pacing.allowance import allowance_of
from askance.models.pacing.moments import LONGEST_PAUSE, seconds_until

CLOCKS = {"as ours": 0, "ahead": 3600, "behind": -3600, "of another year": -4e8}
"""By name: how many seconds the endpoint's clock is ahead."""


def dated(seconds: float, *, clock: float) -> dict[str, str]:
    """Headers of a reply that asks for a wait up to a moment, by a clock that is `clock` seconds ahead."""
    there = datetime.now(UTC) + timedelta(seconds=clock)
    wait = format_datetime(there + timedelta(seconds=seconds), usegmt=True)
    return {"date": format_datetime(there, usegmt=True), "retry-after": wait}


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("seconds", [0, 1, 90], ids=["now", "a second", "a minute and a half"])
def test_a_wait_is_reckoned_by_the_clock_that_asks_for_it(seconds: int, clock: float) -> None:
    assert retry_after(dated(seconds, clock=clock)) == seconds


@pytest.mark.parametrize(
    ("clock", "wait"), [(0, 10), (3600, LONGEST_PAUSE), (-3600, 0)], ids=["as ours", "ahead", "behind"]
)
@pytest.mark.parametrize("date", [None, "yesterday", ""], ids=["none", "a word", "empty"])
def test_without_its_date_a_wait_is_no_longer_than_any_other(clock: float, wait: float, date: str | None) -> None:
    headers = {"retry-after": dated(10, clock=clock)["retry-after"]} | ({} if date is None else {"date": date})
    assert retry_after(headers) == pytest.approx(wait, abs=2)


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_limits_are_back_by_the_clock_of_the_endpoint(clock: float) -> None:
    there = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=int(clock))
    allowance = allowance_of(
        {
            "Date": format_datetime(there, usegmt=True),
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "20",
            "anthropic-ratelimit-requests-reset": (there + timedelta(seconds=15)).isoformat(),
        }
    )
    assert allowance is not None
    assert allowance.calls is not None
    assert (allowance.calls.reset, allowance.calls.refill) == (15, 2)


@pytest.mark.parametrize("moment", [None, datetime(2031, 1, 1)], ids=["none", "without a time zone"])  # noqa: DTZ001
def test_a_moment_that_cannot_be_told_is_no_wait(moment: datetime | None) -> None:
    assert seconds_until(moment, {}) is None
