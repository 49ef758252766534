"""The scope of calls: observers hear of every request before it is looked up, and may refuse it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askance.chat import ChatRequest, ChatResponse, Message, TextPart, Usage
from askance.errors import AuthError, CallError, OverBudget, OverLimit, ServerFault, UsageError
from askance.models import (
    BudgetLimit,
    Engine,
    Model,
    ModelSettings,
    Price,
    RetryPolicy,
    ScriptedEmbedder,
    ScriptedModel,
    collect_keys,
    get_embedder,
    get_model,
    limit_budget,
)
from askance.models.call_scope import RequestObserver, observe, withhold_keys
from askance.models.scripted_model import Reply
from askance.nodes.result import no_answer
from askance.replay import Budget, Cost, MemoryStore, Mode, Record
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
    with collect_keys() as outer, limit_budget("0 calls") as limit:
        with collect_keys() as inner:
            await embedder.embed(["a", "bb", "a"])
        with withhold_keys(), collect_keys() as apart:
            await embedder.embed(["ccc"])

    assert tuple(inner) == tuple(outer) == embedder.keys(["a", "bb"])
    assert tuple(apart) == embedder.keys(["ccc"])
    assert limit.spent.calls == 0


async def test_withheld_keys_are_counted_calls(records: Watched) -> None:
    model = model_of(records)
    with collect_keys() as keys, limit_budget("1 call") as limit, withhold_keys():
        await ask(model, "a")
        with pytest.raises(OverLimit):
            await ask(model, "b")
    assert (keys, limit.left.calls) == ([], 0)


@pytest.mark.parametrize("mode", ["auto", "replay"])
async def test_a_call_beyond_the_limit_is_refused_before_it_is_looked_up(records: Watched, mode: Mode) -> None:
    await ask(model_of(records), "a", "b", "c")
    records.looked_up.clear()

    model = model_of(records, mode=mode)
    with collect_keys() as outer, limit_budget("2 calls") as limit, collect_keys() as keys:
        assert await ask(model, "a", "b") == ["A", "B"]
        with pytest.raises(OverLimit) as caught:
            await ask(model, "c")
        with pytest.raises(OverLimit):
            await ask(model, "c")

    assert str(caught.value) == (
        "The limit of 2 calls leaves 0 calls, and this call may take 1 call, so it was not made. Raise the limit."
    )
    assert (limit.spent.calls, limit.left.calls) == (2, 0)
    assert keys == outer == [asking(model, text).key for text in "ab"]
    assert asking(model, "c").key not in records.looked_up
    assert await ask(model, "c") == ["C"], "the limit ends with its block"


async def test_calls_at_once_make_no_more_than_the_limit(records: Watched) -> None:
    with FakeEndpoint(lambda seen: seen.json["messages"][0]["content"]) as endpoint:
        model = get_model(f"openai:fake-model@{endpoint.url}", engine=Engine(records=records))
        with limit_budget("5 calls") as limit:
            found = await asyncio.gather(*(ask(model, str(n)) for n in range(20)), return_exceptions=True)
        await model.aclose()
        arrived = len(endpoint.requests)

    assert sum(isinstance(each, OverLimit) for each in found) == 15
    assert (arrived, limit.spent.calls) == (5, 5)


async def test_of_two_limits_the_nearer_one_hears_first(records: Watched) -> None:
    model = model_of(records)
    with limit_budget("3 calls") as outer:
        with limit_budget("1 call") as inner:
            await ask(model, "a")
            with pytest.raises(OverLimit, match="of 1 call leaves"):
                await ask(model, "b")
        await ask(model, "b", "c")
        with limit_budget("9 calls"), pytest.raises(OverLimit, match="of 3 calls leaves"):
            await ask(model, "d")
    assert (outer.spent.calls, inner.spent.calls) == (3, 1)


async def test_what_is_asked_in_a_thread_counts(records: Watched) -> None:
    model = model_of(records)
    with limit_budget("1 call"), collect_keys() as keys:
        await asyncio.to_thread(lambda: asyncio.run(ask(model, "a")))
        with pytest.raises(OverLimit):
            await asyncio.to_thread(lambda: asyncio.run(ask(model, "b")))
    assert keys == [asking(model, "a").key]


def test_a_limit_is_no_debt() -> None:
    with pytest.raises(UsageError, match=r"^'-1 calls' is not a budget\."), limit_budget("-1 calls"):
        pass


Replies = Callable[[ChatRequest], Reply] | Iterable[Reply]
ANSWER = ChatResponse(text="yes", usage=Usage(input=20, output=10))


def counting(replies: Replies, records: MemoryStore, *, mode: Mode = "auto", priced: bool = True) -> Model:
    """A model whose requests of 68 letters may take 200 tokens and $0.0003."""
    price: dict[str, Any] = {"price": Price(input=1, output=2)} if priced else {}
    script = ScriptedModel(replies, identity="counting")
    return get_model(script, engine=Engine(records=records, mode=mode, policy=RetryPolicy(tries=1)), **price)


def longest(model: Model, letter: str = "a") -> ChatRequest:
    return asking(model, letter * 68, max_tokens=100)


@pytest.mark.parametrize("mode", ["auto", "replay"])
@pytest.mark.parametrize(
    ("budget", "told", "message"),
    [
        ("250 tokens", "190 tokens", "The limit of 250 tokens leaves 190 tokens, and this call may take 200 tokens"),
        ("0.00035", "$0.0003", r"The limit of \$0.0003 leaves \$0.0003, and this call may take \$0.0003"),
    ],
)
async def test_an_answer_takes_what_it_counts_and_the_next_is_refused_at_its_worst(
    records: Watched, mode: Mode, budget: str, told: str, message: str
) -> None:
    if mode == "replay":
        first = counting(lambda _: ANSWER, records)
        for letter in "abc":
            await first.generate(longest(first, letter))
    model = counting(lambda _: ANSWER, records, mode=mode)

    with limit_budget(budget) as limit:
        worst = limit.worst_case(longest(model), model.settings)
        assert limit.budget.words(worst) == ("200 tokens" if "tokens" in budget else "$0.0003")
        await model.generate(longest(model, "a"))
        await model.generate(longest(model, "b"))
        with pytest.raises(OverLimit, match=f"^{message}"):
            await model.generate(longest(model, "c"))

    nano = 0 if "tokens" in budget else 80_000
    assert (limit.spent, limit.told()) == (Cost(nanodollars=nano, tokens=60, calls=2), told)


@pytest.mark.parametrize(
    ("reply", "tokens"),
    [
        (ChatResponse(text="yes"), 200),
        (ServerFault("failed"), 200),
        (AuthError("no key"), 0),
        (OverBudget("The run has none left."), 0),
    ],
    ids=["not counted", "may be billed", "rejected", "not made"],
)
async def test_what_a_request_counts_for(records: Watched, reply: ChatResponse | Exception, tokens: int) -> None:
    model = counting([reply], records)
    with limit_budget(Budget(tokens=1000, calls=3)) as limit, suppress(CallError):
        await model.generate(longest(model))
    calls = not isinstance(reply, OverBudget)
    assert (limit.spent.tokens, limit.spent.calls) == (tokens, calls)
    assert limit.left == Cost(tokens=1000 - tokens, calls=3 - calls)


async def test_what_an_outer_limit_refuses_takes_nothing_of_an_inner_one(records: Watched) -> None:
    model = model_of(records)
    with limit_budget("0 calls"), limit_budget("5 calls") as inner, pytest.raises(OverLimit):
        await ask(model, "a")
    assert inner.left.calls == 5


async def test_what_is_held_back_is_for_later(records: Watched) -> None:
    model = model_of(records)
    with limit_budget("2 calls") as limit:
        with limit.hold_back(Cost(calls=1)):
            await ask(model, "a")
            assert (limit.told(), limit.fits(Cost(calls=1))) == ("1 call", False)
            with pytest.raises(OverLimit, match="leaves 0 calls"):
                await ask(model, "b")
        assert await ask(model, "b") == ["B"]


async def test_a_limit_in_dollars_needs_a_price(records: Watched) -> None:
    model = counting([], records, priced=False)
    with limit_budget("1.00"), pytest.raises(UsageError, match=r"^What 'counting' costs is not known"):
        await model.generate(longest(model))


ENDS = (
    ANSWER,
    ChatResponse(text="yes", usage=Usage(input=100, output=100)),
    ServerFault("failed"),
    AuthError("no key"),
)
_asked = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(ENDS)), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(_asked, st.integers(0, 900), st.randoms(use_true_random=False))
def test_no_order_of_requests_at_once_passes_the_limit(
    planned: list[tuple[int, ChatResponse | Exception]], most: int, order: Random
) -> None:
    model = counting([], MemoryStore())
    limit = BudgetLimit(Budget(tokens=most, dollars=most * 1.5e-6, calls=8))
    under_way = list[tuple[ChatRequest, ChatResponse | Exception]]()

    def end() -> None:
        request, ended = under_way.pop(order.randrange(len(under_way)))
        if isinstance(ended, Exception):
            limit.failed(request, model.settings, ended)
        else:
            limit.received(request, model.settings, ended)

    def check() -> None:
        assert limit.budget.allows(limit.spent)
        assert limit.budget.allows(limit.budget.most - limit.left)

    for ending, reply in planned:
        request = longest(model, chr(97 + len(under_way)))
        with suppress(OverLimit):
            limit.asked(request, model.settings)
            under_way.append((request, reply))
        check()
        for _ in range(min(ending, len(under_way))):
            end()
            check()
    while under_way:
        end()
    assert limit.left == limit.budget.most - limit.spent


def test_a_refused_call_is_skipped() -> None:
    found = no_answer(OverLimit("The limit is reached."))
    assert (found.outcome, found.error) == ("skipped", "OverLimit")


class Refuses(RequestObserver):
    """An observer of a caller's own, which refuses what holds a word."""

    def asked(self, request: ChatRequest, settings: ModelSettings) -> None:
        if "secret" in request.messages[0].text:
            raise OverLimit("That is not asked.")


async def test_any_observer_may_refuse(records: Watched) -> None:
    model = model_of(records)
    with observe(Refuses()):
        assert await ask(model, "a") == ["A"]
        with pytest.raises(OverLimit, match="That is not asked"):
            await ask(model, "a secret")
