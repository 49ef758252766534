from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.errors import ServerFault
from askance.models import CallEvent, Engine, Model, RetryPolicy, get_model, run_sync
from askance.models.loop import live
from askance.replay import MemoryStore

Ask = Callable[..., ChatRequest]
Engines = Callable[..., Engine]


class Gate:
    """A model whose answers wait until the gate opens."""

    id = "gate"

    def __init__(self, reply: ChatResponse | Exception | None = None) -> None:
        self.reply = reply or ChatResponse(text="a cup")
        self.asked = 0
        self.cancelled = 0
        self.reached = threading.Event()
        self.open = asyncio.Event()

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self.asked += 1
        self.reached.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


async def _on_loop(step: Callable[[], object]) -> None:
    async def call() -> None:
        step()

    await live(call)


async def _reached(gate: Gate) -> None:
    await asyncio.to_thread(gate.reached.wait, 5)


async def test_equal_requests_share_a_call(engine: Engines, ask: Ask, events: list[CallEvent]) -> None:
    gate, run = Gate(), engine()
    models = [get_model(gate, engine=run) for _ in range(2)]
    tasks = [asyncio.create_task(models[number % 2].generate(ask())) for number in range(20)]
    await _reached(gate)
    await asyncio.sleep(0.02)
    await _on_loop(gate.open.set)
    answers = await asyncio.gather(*tasks)
    assert (gate.asked, {answer.text for answer in answers}) == (1, {"a cup"})
    assert sorted(answer.meta.shared for answer in answers) == [False] + [True] * 19
    assert sorted(event.phase for event in events) == ["answered"] + ["shared"] * 19 + ["started"]


async def test_different_requests_share_nothing(engine: Engines, ask: Ask) -> None:
    gate = Gate()
    model = get_model(gate, engine=engine())
    await _on_loop(gate.open.set)
    await asyncio.gather(*(model.generate(ask(draw=number)) for number in range(5)))
    assert gate.asked == 5


async def test_a_shared_failure_reaches_all(engine: Engines, ask: Ask) -> None:
    gate = Gate(ServerFault("It broke."))
    model = get_model(gate, engine=engine(policy=RetryPolicy(tries=1)))
    tasks = [asyncio.create_task(model.generate(ask())) for _ in range(3)]
    await _reached(gate)
    await asyncio.sleep(0.02)
    await _on_loop(gate.open.set)
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [(type(error), str(error)) for error in errors] == [(ServerFault, "It broke.")] * 3
    assert sorted(len(error.tries) for error in errors if isinstance(error, ServerFault)) == [0, 0, 1]
    assert gate.asked == 1


async def test_a_call_goes_on_while_anyone_waits_for_it(engine: Engines, ask: Ask) -> None:
    gate = Gate()
    model = get_model(gate, engine=engine())
    first, second = (asyncio.create_task(model.generate(ask())) for _ in range(2))
    await _reached(gate)
    await asyncio.sleep(0.02)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await _on_loop(gate.open.set)
    assert ((await second).text, gate.asked, gate.cancelled) == ("a cup", 1, 0)


async def test_a_call_ends_with_the_last_who_waits_for_it(engine: Engines, ask: Ask) -> None:
    gate = Gate()
    model = get_model(gate, engine=engine())
    tasks = [asyncio.create_task(model.generate(ask())) for _ in range(2)]
    await _reached(gate)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await _until(lambda: gate.cancelled == 1)
    await _on_loop(gate.open.set)
    assert ((await model.generate(ask())).text, gate.asked) == ("a cup", 2)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  # the loop that cancels is another one
            await asyncio.sleep(0.001)


def test_callers_on_many_loops_share_a_call(ask: Ask) -> None:
    gate, records = Gate(), MemoryStore()
    model = get_model(gate, engine=Engine(records=records))

    def ask_from_a_thread(_: int) -> str:
        return run_sync(model.generate(ask())).text

    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(ask_from_a_thread, range(8))
        gate.reached.wait(5)
        run_sync(_on_loop(gate.open.set))
        assert list(answers) == ["a cup"] * 8
    assert (gate.asked, len(records)) == (1, 1)


async def test_models_without_identity_share_nothing_with_each_other(engine: Engines, ask: Ask) -> None:
    class Nameless:
        def __init__(self, text: str) -> None:
            self.text = text

        async def generate(self, request: ChatRequest) -> ChatResponse:
            await asyncio.sleep(0.01)
            return ChatResponse(text=self.text)

    run = engine()
    models: list[Model] = [get_model(Nameless(text), engine=run) for text in ("one", "two")]
    answers = await asyncio.gather(*(model.generate(ask()) for model in models))
    assert [answer.text for answer in answers] == ["one", "two"]
