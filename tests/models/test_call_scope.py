"""The scope of calls: observers hear of every request before it is looked up, and may refuse it."""

from __future__ import annotations

import asyncio

import pytest

from askance.chat import ChatRequest, Message, TextPart
from askance.errors import OverLimit, UsageError
from askance.models import (
    Engine,
    Model,
    ScriptedEmbedder,
    ScriptedModel,
    collect_keys,
    get_embedder,
    get_model,
    limit_calls,
)
from askance.models.call_scope import RequestObserver, observe, withhold_keys
from askance.nodes.result import no_answer
from askance.replay import MemoryStore, Mode, Record
from tests.servers import FakeEndpoint


class Watched(MemoryStore):
    """Records that note which keys are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_up: list[str] = []

    def get(self, key: str, /) -> Record | None:
        self.looked_up.append(key)
        return super().get(key)


@pytest.fixture
def records() -> Watched:
    return Watched()


def model_of(records: MemoryStore, *, mode: Mode = "auto") -> Model:
    script = ScriptedModel(lambda request: request.messages[0].text.upper(), identity="script")
    return get_model(script, engine=Engine(records=records, mode=mode))


def asking(model: Model, text: str, *, max_tokens: int | None = None) -> ChatRequest:
    return model.request([Message("user", (TextPart(text),))], max_tokens=max_tokens)


async def ask(model: Model, *texts: str) -> list[str]:
    return [(await model.generate(asking(model, text))).text for text in texts]


async def test_keys_are_collected_by_every_block_around_a_request(records: Watched) -> None:
    model = model_of(records)
    a, b, c, d = (asking(model, text).key for text in "abcd")

    with collect_keys() as outer:
        await ask(model, "a")
        with collect_keys() as middle:
            await ask(model, "b")
            with collect_keys() as inner:
                await ask(model, "c", "a")
        await ask(model, "d")

    assert inner == [c, a]
    assert middle == [b, c, a]
    assert outer == [a, b, c, a, d]


async def test_a_key_is_that_of_the_record_that_answers(records: Watched) -> None:
    old = asking(model_of(records), "a")
    await model_of(records).generate(old)
    replay = model_of(records, mode="replay")
    limited = asking(replay, "a", max_tokens=9)
    assert limited.key != old.key

    with collect_keys() as outer, collect_keys() as inner:
        await replay.generate(limited)
        await replay.generate(old)
        await replay.generate(limited)
    assert inner == outer == [old.key] * 3


async def test_an_embedder_s_keys_are_heard_of_by_every_block_around_it(records: Watched) -> None:
    embedder = get_embedder(
        ScriptedEmbedder(lambda text: [float(len(text))], identity="e"), engine=Engine(records=records)
    )
    with collect_keys() as outer, limit_calls(0) as calls:
        with collect_keys() as inner:
            await embedder.embed(["a", "bb", "a"])
        with withhold_keys(), collect_keys() as apart:
            await embedder.embed(["ccc"])

    assert tuple(inner) == tuple(outer) == embedder.keys(["a", "bb"])
    assert tuple(apart) == embedder.keys(["ccc"])
    assert calls.made == 0


async def test_withheld_keys_are_counted_calls(records: Watched) -> None:
    model = model_of(records)
    with collect_keys() as keys, limit_calls(1) as calls, withhold_keys():
        await ask(model, "a")
        with pytest.raises(OverLimit):
            await ask(model, "b")
    assert (keys, calls.left) == ([], 0)


@pytest.mark.parametrize("mode", ["auto", "replay"])
async def test_a_call_beyond_the_limit_is_refused_before_it_is_looked_up(records: Watched, mode: Mode) -> None:
    await ask(model_of(records), "a", "b", "c")
    records.looked_up.clear()

    model = model_of(records, mode=mode)
    with collect_keys() as outer, limit_calls(2) as calls, collect_keys() as keys:
        assert await ask(model, "a", "b") == ["A", "B"]
        with pytest.raises(OverLimit) as caught:
            await ask(model, "c")
        with pytest.raises(OverLimit):
            await ask(model, "c")

    assert str(caught.value) == "The limit of 2 calls is reached, so this one was not made. Raise the limit."
    assert (calls.made, calls.left) == (2, 0)
    assert keys == outer == [asking(model, text).key for text in "ab"]
    assert asking(model, "c").key not in records.looked_up
    assert await ask(model, "c") == ["C"], "the limit ends with its block"


async def test_calls_at_once_make_no_more_than_the_limit(records: Watched) -> None:
    with FakeEndpoint(lambda seen: seen.json["messages"][0]["content"]) as endpoint:
        model = get_model(f"openai:fake-model@{endpoint.url}", engine=Engine(records=records))
        with limit_calls(5) as calls:
            found = await asyncio.gather(*(ask(model, str(n)) for n in range(20)), return_exceptions=True)
        await model.aclose()
        arrived = len(endpoint.requests)

    assert sum(isinstance(each, OverLimit) for each in found) == 15
    assert (arrived, calls.made) == (5, 5)


async def test_of_two_limits_the_nearer_one_hears_first(records: Watched) -> None:
    model = model_of(records)
    with limit_calls(3) as outer:
        with limit_calls(1) as inner:
            await ask(model, "a")
            with pytest.raises(OverLimit, match="of 1 call is"):
                await ask(model, "b")
        await ask(model, "b", "c")
        with limit_calls(9), pytest.raises(OverLimit, match="of 3 calls is"):
            await ask(model, "d")
    assert (outer.made, inner.made) == (3, 1)


async def test_what_is_asked_in_a_thread_counts(records: Watched) -> None:
    model = model_of(records)
    with limit_calls(1), collect_keys() as keys:
        await asyncio.to_thread(lambda: asyncio.run(ask(model, "a")))
        with pytest.raises(OverLimit):
            await asyncio.to_thread(lambda: asyncio.run(ask(model, "b")))
    assert keys == [asking(model, "a").key]


def test_a_limit_is_no_debt() -> None:
    with pytest.raises(UsageError, match=r"^A limit of calls cannot be -1\. Give 0 or more\."), limit_calls(-1):
        pass


def test_a_refused_call_is_skipped() -> None:
    found = no_answer(OverLimit("The limit is reached."))
    assert (found.outcome, found.error) == ("skipped", "OverLimit")


class Refuses(RequestObserver):
    """An observer of a caller's own, which refuses what holds a word."""

    def asked(self, request: ChatRequest) -> None:
        if "secret" in request.messages[0].text:
            raise OverLimit("That is not asked.")


async def test_any_observer_may_refuse(records: Watched) -> None:
    model = model_of(records)
    with observe(Refuses()):
        assert await ask(model, "a") == ["A"]
        with pytest.raises(OverLimit, match="That is not asked"):
            await ask(model, "a secret")
