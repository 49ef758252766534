from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from askance.chat import ChatRequest, ChatResponse, Usage
from askance.errors import RateLimited, ServerFault, Unreachable, UsageError
from askance.models import Engine, RetryPolicy, ScriptedModel, get_model
from askance.models.pacing.allowance import hand_on

Ask = Callable[..., ChatRequest]
Engines = Callable[..., Engine]


class Counting:
    """Answers after a moment and counts how many calls it has at once."""

    id = "counting"

    def __init__(self, seconds: float = 0.002) -> None:
        self.seconds = seconds
        self.now = 0
        self.most = 0

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1
        return ChatResponse(text="a cup")


@pytest.mark.parametrize("concurrency", [1, 3], ids=["one", "three"])
async def test_an_endpoint_gets_no_more_calls_at_once(engine: Engines, ask: Ask, concurrency: int) -> None:
    counting, run = Counting(), engine(concurrency=concurrency)
    models = [get_model(counting, engine=run) for _ in range(2)]
    await asyncio.gather(*(models[draw % 2].generate(ask(draw=draw)) for draw in range(20)))
    assert (counting.most, run.places) == (concurrency, concurrency)


async def test_an_endpoint_that_keeps_its_latency_gets_more(engine: Engines, ask: Ask) -> None:
    counting, run = Counting(0.05), engine()
    assert run.places == 16
    await asyncio.gather(*(get_model(counting, engine=run).generate(ask(draw=draw)) for draw in range(120)))
    assert 16 < counting.most <= run.places


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"concurrency": 0}, r"^A concurrency of 0 lets no call through\. Give at least 1\.$"),
        ({"rpm": 0}, r"^A limit of 0 \(rpm\) lets no call through\. Give more than 0\.$"),
        ({"tpm": -1}, r"^A limit of -1 \(tpm\) lets no call through\. Give more than 0\.$"),
    ],
    ids=["concurrency", "rpm", "tpm"],
)
def test_limits_that_let_nothing_through_are_refused(engine: Engines, settings: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine(**settings)


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


async def test_a_given_rate_is_kept(engine: Engines, ask: Ask) -> None:
    starts: list[float] = []

    def reply(_: ChatRequest) -> str:
        starts.append(time.monotonic())
        return "a cup"

    model = get_model(ScriptedModel(reply), engine=engine(rpm=60 * 50))
    await asyncio.gather(*(model.generate(ask(draw=draw)) for draw in range(10)))
    assert starts[-1] - starts[0] > 6 / 50, "nine intervals, less what makes up for a late timer"


async def test_a_given_rate_of_tokens_is_kept(engine: Engines, ask: Ask) -> None:
    starts: list[float] = []

    def reply(_: ChatRequest) -> ChatResponse:
        starts.append(time.monotonic())
        return ChatResponse(text="a cup", usage=Usage(input=400, output=100))

    model = get_model(ScriptedModel(reply), engine=engine(tpm=60 * 10_000))
    for draw in range(16):
        await model.generate(ask(draw=draw))
    assert starts[-1] - starts[0] > 13 / 20, "fifteen intervals of 500 tokens at 10,000 a second, less a late timer's"


async def test_the_headers_of_a_reply_reach_the_pace(engine: Engines, ask: Ask) -> None:
    class Says:
        id = "says"

        async def generate(self, request: ChatRequest) -> ChatResponse:
            hand_on(
                {
                    "X-RateLimit-Limit-Requests": "600",
                    "X-RateLimit-Remaining-Requests": "0",
                    "X-RateLimit-Reset-Requests": "1m0s",
                }
            )
            return ChatResponse(text="a cup")

    model = get_model(Says(), engine=engine())
    start = time.monotonic()
    for draw in range(4):
        await model.generate(ask(draw=draw))
    assert 0.15 < time.monotonic() - start < 5, "ten a second from the second call on"


async def test_an_endpoint_that_answers_nobody_uses_up_no_try(engine: Engines, ask: Ask) -> None:
    gone = [Unreachable("Refused."), ServerFault("Bad gateway.", status=502)] * 4
    script = ScriptedModel(["first", *gone, "a cup"])
    model = get_model(script, engine=engine(policy=RetryPolicy(tries=2, first_wait=0)))
    await model.generate(ask(draw=1))
    response = await model.generate(ask(draw=2))
    assert (response.text, len(response.meta.tries)) == ("a cup", 9)


async def test_an_endpoint_that_never_answered_gets_the_usual_tries(engine: Engines, ask: Ask) -> None:
    script = ScriptedModel(lambda _: Unreachable("Refused."))
    with pytest.raises(Unreachable, match=r"^Refused\.$"):
        await get_model(script, engine=engine(policy=RetryPolicy(tries=3, first_wait=0))).generate(ask())
    assert len(script.requests) == 3


async def test_a_fault_of_one_call_alone_uses_up_its_tries(engine: Engines, ask: Ask) -> None:
    script = ScriptedModel(lambda request: "a cup" if request.draw else ServerFault("It broke.", status=500))
    model = get_model(script, engine=engine(policy=RetryPolicy(tries=3, first_wait=0)))
    await model.generate(ask(draw=1))
    with pytest.raises(ServerFault, match=r"^It broke\.$"):
        await model.generate(ask())
    assert len(script.requests) == 4
