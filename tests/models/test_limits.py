from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from askance.chat import CallMeta, ChatRequest, ChatResponse, ModelId, Usage
from askance.errors import RateLimited, ServerFault, Unreachable, UsageError
from askance.models import Engine, RetryPolicy, ScriptedModel, call, get_model, limits
from askance.models.learnt_pace import LearntPace
from askance.models.limits import DEFAULT_CONCURRENCY, MOST, ConcurrencyLimit
from askance.replay import MemoryStore, Pace

Ask = Callable[..., ChatRequest]
Engines = Callable[..., Engine]


class Clock:
    """A clock that goes on while somebody waits for the pace, and at no other time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept = 0.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds
        await REAL_SLEEP(0)


REAL_SLEEP = asyncio.sleep


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (call, limits):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made.monotonic, time=time.time))
    monkeypatch.setattr(limits, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": made.sleep}))
    return made


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


class NotingPace(LearntPace):
    """A pace that notes what it is told."""

    def __init__(self, *, rpm: float | None, tpm: float | None) -> None:
        super().__init__(rpm=rpm, tpm=tpm)
        self.seen: list[str] = []

    def started(self, now: float, /) -> None:
        self.seen.append("started")
        super().started(now)

    def answered(self, now: float, tokens: int | None, /) -> None:
        self.seen.append("answered")
        super().answered(now, tokens)


class SharedRecords(MemoryStore):
    """Records of which each endpoint has a pace that all share who use them."""

    def __init__(self, paces: dict[str, NotingPace]) -> None:
        super().__init__()
        self.paces = paces

    def pace(self, endpoint: ModelId, own: Pace, /, *, rpm: float | None, tpm: float | None) -> NotingPace:
        return self.paces.setdefault(endpoint.provider, NotingPace(rpm=rpm, tpm=tpm))


async def test_the_pace_of_an_endpoint_comes_with_the_records(engine: Engines, ask: Ask) -> None:
    paces: dict[str, NotingPace] = {}

    run = engine(records=SharedRecords(paces), rpm=60_000)
    models = [get_model(ScriptedModel(["a cup"], identity=name), engine=run) for name in ("one", "two")]
    for draw, model in enumerate(models):
        await model.generate(ask(draw=draw))
    assert {name: made.seen for name, made in paces.items()} == {"scripted": ["started", "answered"] * 2}
    assert paces["scripted"].rate(0.0) == 1000


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
            said = {
                "X-RateLimit-Limit-Requests": "600",
                "X-RateLimit-Remaining-Requests": "0",
                "X-RateLimit-Reset-Requests": "1m0s",
            }
            return ChatResponse(text="a cup", meta=CallMeta(headers=said))

    model = get_model(Says(), engine=engine())
    start = time.monotonic()
    for draw in range(4):
        await model.generate(ask(draw=draw))
    assert 0.15 < time.monotonic() - start < 5, "ten a second from the second call on"


def says(headers: dict[str, str], usage: Usage | None = None) -> Callable[[ChatRequest], ChatResponse]:
    """Answers, with `headers` in the reply."""

    def reply(_: ChatRequest) -> ChatResponse:
        used = usage or Usage(input=400, output=100)
        return ChatResponse(text="a cup", usage=used, meta=CallMeta(headers=headers))

    return reply


def no_tokens(limit: int) -> dict[str, str]:
    """Headers that leave no token for 114 years."""
    return {
        "x-ratelimit-limit-tokens": str(limit),
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1000000h0m0s",
    }


@pytest.mark.parametrize(
    ("headers", "usage", "settings"),
    [
        (no_tokens(60_000), None, {}),
        (no_tokens(1), None, {}),
        (no_tokens(60_000), Usage(input=10**12, output=1), {}),
        ({}, Usage(input=10**12, output=1), {"tpm": 1e7}),
        ({name.replace("tokens", "requests"): value for name, value in no_tokens(600).items()}, None, {}),
    ],
    ids=["tokens", "one token", "usage", "usage under a limit", "calls"],
)
async def test_no_header_and_no_count_stops_the_run(
    headers: dict[str, str],
    usage: Usage | None,
    settings: dict[str, float],
    engine: Engines,
    ask: Ask,
    clock: Clock,
) -> None:
    model = get_model(ScriptedModel(says(headers, usage)), engine=engine(**settings))
    for draw in range(4):
        assert (await model.generate(ask(draw=draw))).text == "a cup"
    assert clock.slept <= 1, "a claim that the next reply contradicts counts for nothing"


async def test_a_wait_that_the_endpoint_asks_for_is_said(
    engine: Engines, ask: Ask, caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    soon = {name.replace("tokens", "requests"): value for name, value in no_tokens(60).items()}
    model = get_model(ScriptedModel(says(soon | {"x-ratelimit-reset-requests": "10m"})), engine=engine())
    for draw in range(4):
        await model.generate(ask(draw=draw))
    assert 15 < clock.slept <= 30
    assert {record.getMessage() for record in caplog.records} == {
        "scripted: waiting 10 s for the endpoint's rate limit"
    }


async def test_a_limit_of_the_run_that_lets_no_call_start_before_the_deadline_ends_in_words(
    engine: Engines, ask: Ask, clock: Clock
) -> None:
    model = get_model(ScriptedModel(says({})), engine=engine(tpm=1))
    await model.generate(ask())
    with pytest.raises(RateLimited, match=r"again in 8\.3 h: .* for the limit of 1 tokens a minute\. Run"):
        await model.generate(ask(draw=1))
    assert clock.slept == 0, "nobody waits for a turn that cannot come"


@pytest.mark.parametrize("retry_after", [None, 0.0, 3.0, 1e9], ids=["not said", "at once", "three seconds", "never"])
async def test_a_storm_of_429s_ends(retry_after: float | None, engine: Engines, ask: Ask, clock: Clock) -> None:
    script = ScriptedModel(lambda _: RateLimited("Slow down.", retry_after=retry_after))
    model = get_model(script, engine=engine())
    results = await asyncio.gather(*(model.generate(ask(draw=draw)) for draw in range(200)), return_exceptions=True)
    assert {type(result) for result in results} == {RateLimited}
    assert clock.slept < 700, "one deadline, and what is left of a pause"


async def test_after_a_storm_calls_go_through_again(engine: Engines, ask: Ask, clock: Clock) -> None:
    replies = iter([RateLimited("Slow down.")] * 60 + ["a cup"] * 2)
    model = get_model(ScriptedModel(lambda _: next(replies)), engine=engine(concurrency=1))
    for draw in range(3):
        with pytest.raises(RateLimited):
            await model.generate(ask(draw=draw))
    clock.now += 30
    while next(replies) != "a cup":
        pass
    assert (await model.generate(ask(draw=4))).text == "a cup"


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


async def _rounds(room: ConcurrencyLimit, rounds: int, *, seconds: float) -> None:
    """So many rounds of answers while others wait for a place."""

    async def call() -> None:
        await room.enter()
        await asyncio.sleep(0)
        room.leave()

    for _ in range(rounds):
        crowd = [asyncio.ensure_future(call()) for _ in range(room.places + 1)]
        await asyncio.sleep(0)
        for _ in range(room.places):
            room.answered(seconds)
        await asyncio.gather(*crowd)


async def test_the_room_grows_while_latency_holds() -> None:
    room = ConcurrencyLimit()
    sizes = [room.places]
    for _ in range(9):
        await _rounds(room, 1, seconds=1.0)
        sizes.append(room.places)
    assert sizes == [16, 25, 38, 58, 88, 133, 200, MOST, MOST, MOST]


async def test_it_stays_where_answers_take_a_little_longer_and_gives_way_where_much() -> None:
    room = ConcurrencyLimit()
    await _rounds(room, 3, seconds=1.0)
    grown = room.places
    await _rounds(room, 1, seconds=2.0)
    assert room.places == grown
    await _rounds(room, 30, seconds=4.0)
    assert room.places < grown


async def test_it_does_not_grow_while_nobody_waits() -> None:
    room = ConcurrencyLimit()
    for _ in range(200):
        room.answered(1.0)
    assert room.places == DEFAULT_CONCURRENCY


def test_a_burst_of_faults_counts_once_and_a_single_one_not_at_all() -> None:
    room = ConcurrencyLimit()
    room.overloaded(1.0, 0.0)
    assert room.places == 16
    for _ in range(10):
        room.overloaded(1.0, 0.0)
    assert room.places == 8
    for now in range(2, 20):
        room.overloaded(now, now - 0.5)
    assert room.places == 1


def test_a_fixed_room_stays() -> None:
    room = ConcurrencyLimit(5)
    for now in range(20):
        room.answered(1.0)
        room.overloaded(now, now)
    assert room.places == 5


async def test_a_caller_that_gives_up_leaves_its_place_to_the_next() -> None:
    room = ConcurrencyLimit(1)
    await room.enter()

    async def enter() -> str:
        await room.enter()
        room.leave()
        return "in"

    first, second = asyncio.ensure_future(enter()), asyncio.ensure_future(enter())
    await asyncio.sleep(0)
    room.leave()
    first.cancel()  # it has just been given the place
    assert (await asyncio.wait_for(second, 1), room.taken) == ("in", 0)
