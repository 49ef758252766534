from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.errors import ServerFault, UsageError
from askance.models import CallEvent, Engine, Model, RetryPolicy, ScriptedModel, get_model, run_sync
from askance.models.loop import live
from askance.replay import MemoryStore

Ask = Callable[..., ChatRequest]

colour: ContextVar[str] = ContextVar("colour", default="none")


async def where() -> str:
    return threading.current_thread().name


class Remembers:
    """A client that belongs to the loop it first ran on."""

    id = "remembers"

    def __init__(self) -> None:
        self.loops: set[int] = set()
        self.closed = 0

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self.loops.add(id(asyncio.get_running_loop()))
        return ChatResponse(text=colour.get())

    async def aclose(self) -> None:
        self.loops.add(id(asyncio.get_running_loop()))
        self.closed += 1


async def test_live_runs_on_one_other_thread() -> None:
    assert {await live(where), await live(lambda: live(where))} == {"askance-live"}
    assert await where() != "askance-live"


async def test_errors_keep_their_type_and_cancelling_travels() -> None:
    ended = threading.Event()

    async def fails() -> None:
        raise UsageError("Alas.")

    async def hangs() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with pytest.raises(UsageError, match=r"^Alas\.$"):
        await live(fails)
    task = asyncio.create_task(live(hangs))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 5)


def test_a_client_sees_one_loop_whoever_calls(ask: Ask) -> None:
    client = Remembers()
    model = get_model(client, engine=Engine(mode="live", records=MemoryStore()))

    def call(draw: int) -> str:
        return run_sync(model.generate(ask(draw=draw))).text

    async def from_a_running_loop() -> str:
        return call(100)

    colour.set("red")
    assert [call(0), call(1), asyncio.run(from_a_running_loop())] == ["red"] * 3
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(call, range(2, 10))) == ["none"] * 8
    run_sync(model.aclose())
    assert (len(client.loops), client.closed) == (1, 1)
    assert call(0) == "red"


async def test_run_sync_works_under_a_running_loop_any_number_of_times() -> None:
    async def answer(number: int) -> int:
        await asyncio.sleep(0)
        return number

    assert [run_sync(answer(number)) for number in range(5)] == list(range(5))
    assert run_sync(_nested(3)) == 3


async def _nested(depth: int) -> int:
    return run_sync(_nested(depth - 1)) + 1 if depth else 0


async def test_run_sync_passes_errors_on() -> None:
    async def fails() -> None:
        raise UsageError("Alas.")

    with pytest.raises(UsageError, match=r"^Alas\.$"):
        run_sync(fails())


async def test_a_tool_in_a_worker_thread_may_call_back(ask: Ask) -> None:
    model = get_model(
        ScriptedModel(lambda _: "a cup", identity="scripted"), engine=Engine(mode="live", records=MemoryStore())
    )

    def tool() -> str:
        return run_sync(model.generate(ask())).text

    async def agent() -> str:
        return await asyncio.to_thread(tool)

    assert await live(agent) == "a cup"
    assert await asyncio.gather(*(asyncio.to_thread(tool) for _ in range(20))) == ["a cup"] * 20


async def test_run_sync_on_the_live_loop_is_refused() -> None:
    async def waits_for_itself() -> str:
        return run_sync(where())

    with pytest.raises(UsageError) as error:
        await live(waits_for_itself)
    assert str(error.value) == (
        "A synchronous call was made on the loop that runs live calls. "
        "Await the asynchronous form (`ask`, `ainvoke`) there."
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_starts_a_loop_of_its_own() -> None:
    script = """
import os, warnings
warnings.simplefilter("ignore")
from askance.chat import ChatRequest, ModelId
from askance.models import Engine, ScriptedModel, get_model, run_sync
from askance.replay import MemoryStore
model = get_model(ScriptedModel(lambda _: "a cup", identity="s"), engine=Engine(records=MemoryStore(), mode="refresh"))
request = ChatRequest(model=ModelId("a", "b"), messages=())
print(run_sync(model.generate(request)).text, flush=True)
child = os.fork()
if child:
    os.waitpid(child, 0)
print(run_sync(model.generate(request)).meta.stored, flush=True)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("a cup\nTrue\nTrue\n", "")


def test_a_process_that_just_ends_closes_its_clients_and_says_nothing() -> None:
    script = """
import asyncio
from askance.chat import ChatRequest, ChatResponse, ModelId
from askance.models import Engine, get_model, run_sync
from askance.replay import MemoryStore
class Client:
    id = "client"
    async def generate(self, request):
        if request.draw:
            await asyncio.sleep(60)
        return ChatResponse(text="a cup")
    async def aclose(self):
        print("closed", flush=True)
model = get_model(Client(), engine=Engine(records=MemoryStore()))
run_sync(model.generate(ChatRequest(model=ModelId("a", "b"), messages=())))
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("closed\n", "", 0)


Shared = Callable[..., ChatRequest]
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


async def test_equal_requests_share_a_call(engine: Engines, ask: Shared, events: list[CallEvent]) -> None:
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


async def test_different_requests_share_nothing(engine: Engines, ask: Shared) -> None:
    gate = Gate()
    model = get_model(gate, engine=engine())
    await _on_loop(gate.open.set)
    await asyncio.gather(*(model.generate(ask(draw=number)) for number in range(5)))
    assert gate.asked == 5


async def test_a_shared_failure_reaches_all(engine: Engines, ask: Shared) -> None:
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


async def test_a_call_goes_on_while_anyone_waits_for_it(engine: Engines, ask: Shared) -> None:
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


async def test_a_call_ends_with_the_last_who_waits_for_it(engine: Engines, ask: Shared) -> None:
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


def test_callers_on_many_loops_share_a_call(ask: Shared) -> None:
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


async def test_models_without_identity_share_nothing_with_each_other(engine: Engines, ask: Shared) -> None:
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


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals reach the main thread here")
def test_a_signal_that_reaches_another_thread_wakes_the_loop() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it

    async def waits() -> None:
        threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
        await asyncio.sleep(10)

    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_sync(waits())
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 5
