from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.amounts import money
from askance.chat import ChatRequest, ChatResponse, Message, ModelId, Sampling, TextPart, Usage
from askance.errors import (
    AuthError,
    BadImage,
    CallTimeout,
    MalformedReply,
    OverBudget,
    RateLimited,
    ServerFault,
    Unreachable,
    UsageError,
)
from askance.models import Engine, ModelSettings, Price, RetryPolicy
from askance.models.backend import Backend
from askance.models.budget import BudgetGuard, cost_of
from askance.models.call import CallPath
from askance.replay import Balance, Budget, Cost, SqliteLedger


@pytest.mark.parametrize(
    ("text", "budget", "words"),
    [
        ("5", Budget(dollars=5), "$5.00"),
        ("5.00", Budget(dollars=5), "$5.00"),
        ("$0.5", Budget(dollars=0.5), "$0.5000"),
        ("1,200 dollars", Budget(dollars=1200), "$1,200.00"),
        ("20000tokens", Budget(tokens=20_000), "20,000 tokens"),
        ("2M tokens", Budget(tokens=2_000_000), "2,000,000 tokens"),
        ("20ktokens", Budget(tokens=20_000), "20,000 tokens"),
        ("100calls", Budget(calls=100), "100 calls"),
        ("1 call", Budget(calls=1), "1 call"),
    ],
)
def test_a_budget_as_written(text: str, budget: Budget, words: str) -> None:
    assert (Budget.parse(text), str(budget)) == (budget, words)


@pytest.mark.parametrize("text", ["", "much", "-1", "5 euros", "1e3", "nan", "tokens"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError) as error:
        Budget.parse(text)

    assert str(error.value) == f"{text!r} is not a budget. Write 5.00 for US dollars, 20000tokens, or 100calls."


def test_a_budget_limits_something() -> None:
    with pytest.raises(UsageError, match=r"^A budget limits dollars, tokens or calls, each to 0 or more\."):
        Budget()


def test_every_limit_holds() -> None:
    budget = Budget(dollars=1, tokens=10, calls=2)

    assert budget.allows(Cost(nanodollars=10**9, tokens=10, calls=2))
    assert not budget.allows(Cost(nanodollars=10**9 + 1, tokens=10, calls=2))
    assert not budget.allows(Cost(tokens=11))
    assert not budget.allows(Cost(calls=3))
    assert str(budget) == "$1.00 and 10 tokens and 2 calls"


def test_an_amount_is_rounded_up_and_needs_a_count() -> None:
    price = Price(input=1, output=1e-4)

    assert cost_of(Usage(input=1, output=1), price) == Cost(nanodollars=1001, tokens=2, calls=1)
    assert cost_of(Usage(input=1, output=1), None) == Cost(nanodollars=0, tokens=2, calls=1)
    assert cost_of(Usage(input=1), price) is None


@pytest.mark.parametrize(
    ("dollars", "shown"), [(0, "$0.00"), (1234.5, "$1,234.50"), (0.0123, "$0.0123"), (1e-6, "less than $0.0001")]
)
def test_dollars_as_shown(dollars: float, shown: str) -> None:
    assert money(dollars) == shown


MODEL = ModelId("openai", "mine", "http://localhost:1/v1")
SETTINGS = ModelSettings(id=MODEL, price=Price(input=1, output=2))
REQUEST = ChatRequest(
    model=MODEL, messages=(Message("user", (TextPart("a" * 68),)),), sampling=Sampling(max_tokens=100)
)
WORST = Cost(nanodollars=300_000, tokens=200, calls=1)
ANSWER = ChatResponse(text="yes", usage=Usage(input=20, output=10))
COST = Cost(nanodollars=40_000, tokens=30, calls=1)
NOTHING = Cost()
HANGS = "hangs"


class Scripted:
    """Ends each call as told: an answer, an error, or never."""

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends)
        self.calls = 0
        self.called = asyncio.Event()

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self.calls += 1
        self.called.set()
        end = self.ends.pop(0)
        while end == HANGS:  # noqa: ASYNC110
            await asyncio.sleep(3600)
        if isinstance(end, BaseException):
            raise end
        assert isinstance(end, ChatResponse)
        return end


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[BudgetGuard]:
    opened = BudgetGuard(SqliteLedger(tmp_path / "run.db", Budget(dollars=0.001)))
    yield opened
    opened.close()


def calls(
    endpoint: Scripted, guard: BudgetGuard, settings: ModelSettings = SETTINGS, *, concurrency: int = 40
) -> CallPath:
    """Calls of one try each."""
    engine = Engine(budget=guard, policy=RetryPolicy(tries=1), concurrency=concurrency)
    return CallPath(settings, Backend(lambda: endpoint), engine)


def refused() -> Unreachable:
    error = Unreachable("no connection")
    error.__cause__ = ConnectionRefusedError()
    return error


async def test_the_worst_case_is_reserved_before_and_settled_after(guard: BudgetGuard) -> None:
    seen: list[Balance] = []

    class Looking(Scripted):
        async def generate(self, request: ChatRequest) -> ChatResponse:
            seen.append(guard.ledger.balance())
            return await super().generate(request)

    await calls(Looking(ANSWER), guard).unrecorded(REQUEST)

    assert seen == [Balance(spent=NOTHING, lost=NOTHING, reserved=WORST)]
    assert await guard.balance() == Balance(spent=COST, lost=NOTHING, reserved=NOTHING)


async def test_the_balance_waits_for_what_is_being_settled(guard: BudgetGuard, monkeypatch: pytest.MonkeyPatch) -> None:
    settle = guard.ledger.settle

    def slowly(reservation: int, actual: Cost) -> None:
        time.sleep(0.05)
        settle(reservation, actual)

    monkeypatch.setattr(guard.ledger, "settle", slowly)

    await calls(Scripted(ANSWER), guard).unrecorded(REQUEST)

    assert guard.ledger.balance().reserved == WORST
    assert await guard.balance() == Balance(spent=COST, lost=NOTHING, reserved=NOTHING)


@pytest.mark.parametrize(
    ("end", "billed"),
    [
        (ChatResponse(text="yes"), WORST),
        (ChatResponse(finish="length", usage=Usage(input=20, output=10)), COST),
        (ChatResponse(usage=Usage(input=900, output=900)), Cost(nanodollars=2_700_000, tokens=1800, calls=1)),
        (CallTimeout("hung"), WORST),
        (MalformedReply("broken"), WORST),
        (ServerFault("failed"), WORST),
        (Unreachable("broke"), WORST),
        (ValueError("a bug"), WORST),
        (refused(), NOTHING),
        (RateLimited("slow down", retry_after=1e9), NOTHING),
        (AuthError("no key"), NOTHING),
        (BadImage("no picture"), NOTHING),
    ],
    ids=[
        "not counted",
        "cut off",
        "beyond the worst case",
        "hung",
        "broken",
        "server fault",
        "broke",
        "bug",
        "never connected",
        "rate limit",
        "no key",
        "no picture",
    ],
)
async def test_what_a_try_counts_for(guard: BudgetGuard, end: Any, billed: Cost) -> None:
    if isinstance(end, BaseException):
        with pytest.raises(type(end)):
            await calls(Scripted(end), guard).unrecorded(REQUEST)
    else:
        await calls(Scripted(end), guard).unrecorded(REQUEST)

    assert (await guard.balance()).spent == billed


@pytest.mark.parametrize(("sent", "billed"), [(True, WORST), (False, NOTHING)], ids=["on its way", "in line"])
async def test_a_call_that_is_cancelled_counts_where_it_was_sent(guard: BudgetGuard, sent: bool, billed: Cost) -> None:
    endpoint = Scripted(HANGS, HANGS)
    made = calls(endpoint, guard, concurrency=1)
    first = asyncio.create_task(made.unrecorded(REQUEST))
    await endpoint.called.wait()
    second = asyncio.create_task(made.unrecorded(REQUEST))
    while guard.ledger.balance().reserved != WORST + WORST:  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    cancelled, other = (first, second) if sent else (second, first)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    while guard.ledger.balance().reserved != WORST:  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    assert guard.ledger.balance() == Balance(spent=billed, lost=NOTHING, reserved=WORST)
    other.cancel()


async def test_calls_wait_for_those_under_way_before_the_budget_is_used_up(guard: BudgetGuard) -> None:
    endpoint = Scripted(*[ANSWER] * 99)
    made = calls(endpoint, guard)

    ended = await asyncio.gather(*[made.unrecorded(REQUEST) for _ in range(40)], return_exceptions=True)

    # 0.001 dollars: 18 answers leave 0.00028, less than the 0.0003 that the next may cost.
    assert [type(end) for end in ended] == [ChatResponse] * 18 + [OverBudget] * 22
    assert endpoint.calls == 18
    assert (await guard.balance()).spent.nanodollars == 18 * COST.nanodollars
    assert str(ended[-1]) == (
        "The budget of $0.0010 is used up: $0.0007 spent, and the next call of openai:mine@http://localhost:1/v1 may "
        "take $0.0003. The same command with a larger budget goes on; a smaller `max_tokens` lowers what a call may "
        "take."
    )


def test_dollars_cannot_hold_a_model_without_a_price(guard: BudgetGuard) -> None:
    with pytest.raises(
        UsageError, match=r"^What 'openai:mine@http://localhost:1/v1' costs is not known, so a budget in "
    ):
        calls(Scripted(), guard, replace(SETTINGS, price=None))


async def test_a_request_beyond_the_length_that_the_price_holds_for_is_not_made(guard: BudgetGuard) -> None:
    short = replace(SETTINGS, price=Price(input=1, output=2, up_to=99))

    with pytest.raises(OverBudget, match=r"^What a call of .* with up to 100 tokens of input costs is not known"):
        await calls(Scripted(), guard, short).unrecorded(REQUEST)
