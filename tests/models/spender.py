"""A process that asks a server within a budget until nothing fits, several calls at once; and may die at any step.

The server stands in this process, and keeps its own invoice: a line for each call that it bills, on the disk before
anybody hears of the answer, with what it bills and what the ledger has to count for it, in nanodollars.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from askance.chat import ChatRequest, ChatResponse, Message, ModelId, Sampling, TextPart, Usage
from askance.errors import CallError, CallTimeout, MalformedReply, OverBudget, RateLimited
from askance.models import Engine, ModelSettings, Price, RetryPolicy
from askance.models.backend import Backend
from askance.models.budget import BudgetGuard, cost_of
from askance.models.call import CallPath
from askance.models.token_estimate import worst_case
from askance.replay import Budget, SqliteLedger

MODEL = ModelId("openai", "mine", "http://localhost:1/v1")
LONGEST = 60
"""Bytes of text of a question, and tokens of an answer, at most."""


def request(size: int, answer: int) -> ChatRequest:
    """A question of `size` bytes, for at most `answer` tokens."""
    text = Message("user", (TextPart("a" * size),))
    return ChatRequest(model=MODEL, messages=(text,), sampling=Sampling(max_tokens=answer))


def most(asked: ChatRequest, price: Price) -> int:
    """What a call can cost at most, in nanodollars."""
    worst = cost_of(worst_case(asked), price)
    assert worst is not None
    return worst.nanodollars


def bill(usage: Usage, written: int, price: Price) -> int:
    """What a provider asks for, in whole nanodollars: `written` tokens of the input went into its cache."""
    cached, total = usage.cached or 0, usage.input or 0
    fresh = price.input
    parts = [
        (total - cached - written, fresh),
        (cached, fresh if price.cached is None else price.cached),
        (written, fresh if price.written is None else price.written),
        (usage.output or 0, price.output),
    ]
    return math.ceil(sum(count * Decimal(str(dollars)) * 1000 for count, dollars in parts))


class Server:
    """Answers, hangs up or fails as it is drawn, and bills for all but what it sends away."""

    def __init__(self, price: Price, invoice: Path, draw: random.Random, step: Callable[[], None]) -> None:
        self._price, self._draw, self._step = price, draw, step
        self._invoice = os.open(invoice, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self._step()
        await asyncio.sleep(self._draw.choice([0, 0, 0.001, 0.01]))
        end = self._draw.choice(["answer", "answer", "answer", "uncounted", "hung", "broken", "slow down"])
        if end == "slow down":
            raise RateLimited(end, retry_after=1e9)  # longer than any call waits
        usage = self._billed(request, counted=end == "answer")
        self._step()
        if end == "hung":
            raise CallTimeout(end)
        if end == "broken":
            raise MalformedReply(end)
        return ChatResponse(usage=usage if end == "answer" else Usage())

    def _billed(self, request: ChatRequest, *, counted: bool) -> Usage:
        worst, draw = worst_case(request), self._draw
        total = draw.randint(0, worst.input or 0)
        cached = draw.choice([0, draw.randint(0, total)])
        usage = Usage(input=total, output=draw.randint(0, worst.output or 0), cached=cached)
        billed = bill(usage, draw.randint(0, total - cached), self._price)
        kept = cost_of(usage, self._price) if counted else None
        os.write(self._invoice, f"{billed} {kept.nanodollars if kept else most(request, self._price)}\n".encode())
        return usage


async def spend(folder: Path, price: Price, *, limit: int, tasks: int, seed: int, deaths: float) -> None:
    """Spends `limit` nanodollars with `tasks` calls at once, or dies, at each step with the probability `deaths`."""
    draw = random.Random(seed)

    def step() -> None:
        if draw.random() < deaths:
            os._exit(9)

    guard = BudgetGuard(SqliteLedger(folder / "run.db", Budget(dollars=limit / 1e9)))
    server = Server(price, folder / "invoice", draw, step)
    engine = Engine(budget=guard, policy=RetryPolicy(tries=1), concurrency=tasks)
    calls = CallPath(ModelSettings(id=MODEL, price=price), Backend(lambda: server), engine)

    async def work() -> None:
        while True:
            try:
                await calls.unrecorded(request(draw.randint(1, LONGEST), draw.randint(1, LONGEST)))
            except OverBudget:
                return
            except CallError:
                step()

    await asyncio.gather(*[work() for _ in range(tasks)])
    step()
    await asyncio.to_thread(guard.close)


def main(folder: Path, price: Price, **asked: Any) -> None:
    asyncio.run(spend(folder, price, **asked))
