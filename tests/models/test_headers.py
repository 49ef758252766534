"""Moments that an endpoint names, whatever its clock and this machine's say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from askance.models.headers import LONGEST_PAUSE, LONGEST_WAIT, allowance_of, retry_after, seconds_until
from askance.replay import Allowance, Quota

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


OPENAI = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-reset-tokens": "6m0s",
}


def calls(limit: str, remaining: str, reset: str) -> dict[str, str]:
    return {
        "X-RateLimit-Limit-Requests": limit,
        "X-RateLimit-Remaining-Requests": remaining,
        "X-RateLimit-Reset-Requests": reset,
    }


@pytest.mark.parametrize(
    ("headers", "allowance"),
    [
        (OPENAI, Allowance(calls=Quota(60, 59, 1.0), tokens=Quota(150_000, 149_984, 360.0))),
        (calls("10", "4", "1d2h3m4.5s"), Allowance(calls=Quota(10, 4, 93_784.5))),
        (calls("10", "4", "20ms"), Allowance(calls=Quota(10, 4, 0.02))),
        (calls("10", "4", "30"), Allowance(calls=Quota(10, 4, 30.0))),
        (calls("10", "4", "soon"), None),
        (calls("many", "4", "1s"), None),
        (calls("10", "-4", "1s"), None),
        (calls("10", "nan", "1s"), None),
        (calls("10", "4", "9" * 1000), None),
        ({"content-type": "application/json"}, None),
    ],
    ids=["openai", "days", "milliseconds", "bare", "words", "no number", "negative", "nan", "endless", "nothing"],
)
def test_what_headers_say(headers: dict[str, str], allowance: Allowance | None) -> None:
    assert allowance_of(headers) == allowance


@pytest.mark.parametrize(
    ("quota", "refill"),
    [(Quota(60, 0, 30), 2.0), (Quota(60, 60, 0), None), (Quota(60, 0, 0), None)],
    ids=["used", "untouched", "no time"],
)
def test_what_comes_back_per_second(quota: Quota, refill: float | None) -> None:
    assert quota.refill == refill


FAR_OFF = {
    "beyond all years": "Mon, 01 Jan 99999999999999 00:00:00 GMT",
    "beyond all days": "Mon, 99999999999999999999 Jan 2024 00:00:00 GMT",
    "beyond all zones": "Mon, 01 Jan 2024 00:00:00 +99999999999999",
    "the first year": "Mon, 01 Jan 0001 00:00:00 +2359",
    "the last year": "Fri, 31 Dec 9999 23:59:59 -2359",
}


@pytest.mark.parametrize("date", FAR_OFF.values(), ids=FAR_OFF)
@pytest.mark.parametrize("moment", [*FAR_OFF.values(), "1e300"], ids=[*FAR_OFF, "beyond all numbers"])
def test_a_clock_that_is_far_off_is_no_error(date: str, moment: str) -> None:
    said = {
        "date": date,
        "retry-after": moment,
        **{name.lower(): each for name, each in calls("9", "0", moment).items()},
    }
    wait = retry_after(said)
    assert wait is None or 0 <= wait <= LONGEST_WAIT
    allowance = allowance_of(said)
    assert allowance is None or allowance.calls is None or 0 <= allowance.calls.reset <= LONGEST_WAIT
