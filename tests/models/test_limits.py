from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.errors import RateLimited, UsageError
from askance.models import Engine, get_model
from askance.models.limits import Pace

Ask = Callable[..., ChatRequest]
Engines = Callable[..., Engine]


class Counting:
    """Answers after a moment and counts how many calls it has at once."""

    id = "counting"

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.002)
        self.now -= 1
        return ChatResponse(text="a cup")


@pytest.mark.parametrize("concurrency", [1, 3], ids=["one", "three"])
async def test_an_endpoint_gets_no_more_calls_at_once(engine: Engines, ask: Ask, concurrency: int) -> None:
    counting, run = Counting(), engine(concurrency=concurrency)
    models = [get_model(counting, engine=run) for _ in range(2)]
    await asyncio.gather(*(models[draw % 2].generate(ask(draw=draw)) for draw in range(20)))
    assert counting.most == concurrency


def test_a_concurrency_below_one_is_refused(engine: Engines) -> None:
    with pytest.raises(UsageError, match=r"^A concurrency of 0 lets no call through\. Give at least 1\.$"):
        engine(concurrency=0)


class Bucket:
    """A rate limit: a bucket of tokens that fills again at a rate."""

    id = "bucket"

    def __init__(self, *, rate: float, room: int) -> None:
        self.rate, self.room, self.tokens = rate, room, float(room)
        self.at = time.monotonic()
        self.rejected = 0

    async def generate(self, request: ChatRequest) -> ChatResponse:
        now = time.monotonic()
        self.tokens = min(self.room, self.tokens + (now - self.at) * self.rate)
        self.at = now
        await asyncio.sleep(0.001)
        if self.tokens < 1:
            self.rejected += 1
            raise RateLimited("Slow down.", retry_after=0.05)
        self.tokens -= 1
        return ChatResponse(text="a cup")


async def test_all_calls_get_through_a_rate_limit(engine: Engines, ask: Ask) -> None:
    bucket = Bucket(rate=400, room=20)
    model = get_model(bucket, engine=engine(concurrency=32))
    answers = await asyncio.gather(*(model.generate(ask(draw=draw)) for draw in range(60)))
    assert {answer.text for answer in answers} == {"a cup"}
    assert 0 < bucket.rejected < 60


async def test_a_429_slows_all_calls_down() -> None:
    pace = Pace()
    for _ in range(10):
        pace.steady()
    sent = time.monotonic()
    pace.slow(sent, 0.03)
    assert pace.rate == pytest.approx(9), "a little less than the ten that were let through in the last second"
    pace.slow(sent - 1, 10)
    assert pace.rate == pytest.approx(9), "a call sent before the pace slowed down says nothing new"
    await pace.turn()
    await pace.turn()
    assert 0.03 + 1 / 9 - 0.01 <= time.monotonic() - sent < 1


def test_answers_bring_the_rate_back() -> None:
    async def main() -> list[float]:
        pace = Pace()
        pace.steady()
        rates: list[float] = []
        for _ in range(3):
            pace.slow(time.monotonic(), 0.0)
            rates.append(round(pace.rate or 0, 2))
            pace.steady()
            rates.append(round(pace.rate or 0, 2))
        return rates

    assert asyncio.run(main()) == [0.9, 1.6, 1.44, 1.46, 1.31, 1.33]


@pytest.mark.parametrize(
    ("retry_after", "pauses"),
    [
        (None, [1, 2, 4, 8, 16, 30, 30, 1]),
        (0.0, [0.05, 0.1, 0.2, 0.4, 0.8, 1, 1, 0.05]),
        (3.0, [3, 3, 3, 3, 3, 3, 3, 3]),
    ],
    ids=["not said", "at once", "three seconds"],
)
def test_pauses_grow_while_nothing_is_let_through(retry_after: float | None, pauses: list[float]) -> None:
    async def main() -> list[float]:
        pace = Pace()
        asked: list[float] = []
        for _ in range(7):
            asked.append(pace.pause(retry_after))
            pace.slow(time.monotonic(), retry_after)
        pace.steady()
        return [*asked, pace.pause(retry_after)]

    assert asyncio.run(main()) == pauses
