from __future__ import annotations

import pytest

from askance.models.pacing.allowance import Allowance, Quota, allowance_of

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
