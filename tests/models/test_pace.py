"""The pace, on a clock of the test's own."""

from __future__ import annotations

import heapq

import pytest

from askance.models.headers import LONGEST_PAUSE
from askance.models.learnt_pace import LearntPace
from askance.replay import Allowance, Quota


def spread(pace: LearntPace, calls: int, *, now: float = 0.0) -> float:
    """When the last of `calls` starts."""
    for _ in range(calls):
        now += max(pace.wait(now), 0.0)
        pace.started(now)
    return now


def through_a_bucket(
    *, rate: float, room: int, calls: int, at_once: int, latency: float = 0.1, retry_after: float | None = 1.0
) -> tuple[float, int]:
    """Seconds until `calls` got through a token bucket, and how many rejections that took."""
    pace, now, tokens, filled, under_way, left, rejected = LearntPace(), 0.0, float(room), 0.0, 0, calls, 0
    events: list[tuple[float, int, bool, float]] = []
    number = 0
    while left or under_way:
        while left and under_way < at_once and pace.wait(now) <= 0:
            pace.started(now)
            tokens, filled = min(room, tokens + (now - filled) * rate), now
            let, number = tokens >= 1, number + 1
            tokens -= let
            heapq.heappush(events, (now + (latency if let else 0.003), number, let, now))
            left, under_way = left - 1, under_way + 1
        coming = [events[0][0]] if events else []
        now = min(coming + ([now + max(pace.wait(now), 0.001)] if left and under_way < at_once else []))
        while events and events[0][0] <= now:
            _, _, let, sent = heapq.heappop(events)
            under_way -= 1
            if not let:
                left, rejected = left + 1, rejected + 1
                pace.rejected(now, sent, retry_after)
    return now, rejected


@pytest.mark.parametrize(
    ("rate", "room", "calls", "at_once", "bound"),
    [
        pytest.param(50, 5, 737, 16, 1.2, id="50 a second"),
        pytest.param(50, 5, 737, 128, 1.2, id="many at once"),
        pytest.param(50, 200, 1500, 64, 1.1, id="a large bucket"),
        pytest.param(5, 5, 200, 16, 1.1, id="5 a second"),
        pytest.param(1, 1, 100, 16, 1.2, id="1 a second"),
        pytest.param(200, 5, 3000, 64, 1.25, id="200 a second"),
    ],
)
def test_an_allowance_is_used_in_full(rate: float, room: int, calls: int, at_once: int, bound: float) -> None:
    seconds, rejected = through_a_bucket(rate=rate, room=room, calls=calls, at_once=at_once)
    assert seconds <= bound * (calls - room) / rate
    assert rejected <= at_once + 25


def test_without_a_limit_in_sight_calls_start_at_once() -> None:
    assert spread(LearntPace(), 1000) == 0


def test_a_given_rate_is_not_exceeded_whatever_is_let_through() -> None:
    assert spread(LearntPace(rpm=600), 101) == pytest.approx(10, abs=0.06)


def test_tokens_are_counted_as_they_turn_out() -> None:
    pace, now = LearntPace(tpm=60_000), 0.0
    for _ in range(40):
        now += max(pace.wait(now), 0.0)
        pace.started(now)
        pace.answered(now, 500)
    assert now == pytest.approx(19.5, abs=0.6), "40 calls of 500 tokens at 1,000 tokens a second"


@pytest.mark.parametrize(
    ("retry_after", "pauses"),
    [
        (None, [1, 2, 4, 8, 16, 30, 30]),
        (0.0, [0.05, 0.1, 0.2, 0.4, 0.8, 1, 1]),
        (3.0, [3, 3, 3, 3, 3, 3, 3]),
    ],
    ids=["not said", "at once", "three seconds"],
)
def test_pauses_grow_while_nothing_is_let_through(retry_after: float | None, pauses: list[float]) -> None:
    pace, asked = LearntPace(), list[float]()
    for now in range(7):
        asked.append(pace.pause(now, retry_after))
        pace.started(now)
        pace.rejected(now, now, retry_after)
    pace.started(100)
    assert (asked, pace.pause(110, retry_after)) == (pauses, pauses[0])


def test_a_429_slows_all_calls_down_once() -> None:
    pace = LearntPace()
    for _ in range(10):
        pace.started(0.0)
    for _ in range(4):
        pace.rejected(0.1, 0.0, 1.0)
    assert (pace.wait(0.1), pace.rate(1.1)) == (pytest.approx(1), pytest.approx(0.9 * 6))


def test_what_the_endpoint_says_it_allows_is_the_pace() -> None:
    pace = LearntPace()
    pace.learn(0.0, Allowance(calls=Quota(600, 590, 1.0)), under_way=5)
    assert pace.rate(0.0) is None, "plenty is left"
    pace.learn(0.0, Allowance(calls=Quota(600, 3, 59.7)), under_way=5)
    assert pace.rate(0.0) == pytest.approx(10)


def test_tokens_that_run_short_slow_the_calls() -> None:
    pace = LearntPace()
    pace.learn(0.0, Allowance(tokens=Quota(60_000, 0, 60.0)), under_way=5)
    assert spread(pace, 11) == pytest.approx(10, abs=0.06), "1,000 tokens a second, and as many a call"


NEVER = Quota(600, 0, 3.6e9)
"""Nothing left, and nothing again for a century."""


@pytest.mark.parametrize("claim", [Allowance(calls=NEVER), Allowance(tokens=NEVER)], ids=["calls", "tokens"])
def test_a_claim_that_the_next_reply_contradicts_counts_for_nothing(claim: Allowance) -> None:
    """Until a 429 says that there is a limit after all."""
    pace, now, waits = LearntPace(), 0.0, list[float]()
    for _ in range(20):
        waits.append(max(pace.wait(now), 0.0))
        now += waits[-1]
        pace.started(now)
        pace.learn(now + 0.1, claim, under_way=1)
        pace.answered(now + 0.1, 500)
        now += 0.1
    assert waits == [0] * 20

    pace.started(now)
    pace.rejected(now, now, 1.0)
    now += pace.wait(now)
    pace.started(now)
    pace.learn(now, claim, under_way=1)
    pace.started(now)
    assert pace.wait(now) == pytest.approx(LONGEST_PAUSE, abs=0.1)


@pytest.mark.parametrize("kind", ["calls", "tokens"])
def test_a_claim_that_is_kept_is_believed(kind: str) -> None:
    """Replies to calls that had started before it, or that wait for as long as it says, contradict nothing."""
    pace = LearntPace()
    claim = Allowance(**{kind: Quota(60, 0, 60.0) if kind == "calls" else Quota(60_000, 0, 60.0)})
    for _ in range(5):
        pace.started(0.0)
    for _ in range(5):
        pace.learn(0.1, claim, under_way=5)
        pace.answered(0.1, 1000)
    now = 0.1
    for _ in range(10):
        now += max(pace.wait(now), 0.0)
        pace.started(now)
        pace.learn(now, claim, under_way=1)
        pace.answered(now, 1000)
    assert now == pytest.approx(10, abs=1.2)
