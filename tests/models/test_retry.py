from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

import pytest
from tenacity import Future, RetryCallState

from askance.chat import ChatRequest, ChatResponse, ModelId, Try
from askance.errors import (
    AskanceError,
    AuthError,
    BadImage,
    BadRequest,
    CallError,
    CallTimeout,
    ContextExceeded,
    MalformedReply,
    ModelError,
    ModelNotFound,
    RateLimited,
    ServerFault,
    Unreachable,
)
from askance.models import CallEvent, Engine, RetryPolicy, ScriptedModel, get_model
from askance.models.live_call import LiveCall

Ask = Callable[..., ChatRequest]
Engines = Callable[..., Engine]

PASSING: list[type[ModelError]] = [Unreachable, CallTimeout, ServerFault, MalformedReply]
LASTING: list[type[AskanceError]] = [AuthError, ModelNotFound, BadRequest, ContextExceeded, BadImage]


def names(tries: tuple[object, ...]) -> list[str | None]:
    """What ended each attempt."""
    return [note.error.split(":")[0] if note.error else None for note in tries if isinstance(note, Try)]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.__name__)
async def test_faults_that_may_pass_are_asked_again(engine: Engines, ask: Ask, fault: type[ModelError]) -> None:
    script = ScriptedModel([fault("Alas."), fault("Alas."), "a cup"])
    response = await get_model(script, engine=engine()).generate(ask())
    assert (response.text, names(response.meta.tries)) == ("a cup", [fault.__name__, fault.__name__, None])


@pytest.mark.parametrize("fault", LASTING, ids=lambda fault: fault.__name__)
async def test_faults_that_last_are_not(engine: Engines, ask: Ask, fault: type[AskanceError]) -> None:
    script = ScriptedModel([fault("Alas."), "never"])
    with pytest.raises(fault, match=r"^Alas\.$"):
        await get_model(script, engine=engine()).generate(ask())
    assert len(script.requests) == 1


async def test_the_last_error_knows_its_tries(engine: Engines, ask: Ask, events: list[CallEvent]) -> None:
    faults = [ServerFault("One."), Unreachable("Two."), ServerFault("Three.")]
    model = get_model(ScriptedModel(faults), engine=engine(policy=RetryPolicy(tries=3, first_wait=0)))
    with pytest.raises(ServerFault, match=r"^Three\.$") as error:
        await model.generate(ask())
    assert names(error.value.tries) == ["ServerFault", "Unreachable", "ServerFault"]
    assert [(event.phase, event.error) for event in events] == [
        ("started", None),
        *(("tried", fault) for fault in faults),
        ("failed", faults[-1]),
    ]


def state(
    policy: RetryPolicy, attempt: int, error: Exception | None = None
) -> tuple[Callable[..., float], RetryCallState]:
    """The policy's waits, and the state of a call after `attempt` tries."""
    retrying = policy.retrying(LiveCall(ChatRequest(model=ModelId("scripted", "scripted"), messages=())))
    after = RetryCallState(retrying, None, (), {})
    after.attempt_number = attempt
    after.outcome = Future(attempt)
    after.outcome.set_exception(error or ServerFault("Busy."))
    return cast("Callable[..., float]", retrying.wait), after


@pytest.mark.parametrize(("asked", "waited"), [(2.0, 2.0), (60.0, 5.0)], ids=["short", "beyond the bound"])
def test_a_server_that_says_how_long_is_given_that_long(asked: float, waited: float) -> None:
    wait, after = state(RetryPolicy(first_wait=0, max_wait=5), 1, ServerFault("Busy.", retry_after=asked))
    assert wait(after) == waited


@pytest.mark.parametrize(("attempt", "bound"), [(1, 1), (2, 2), (3, 4), (9, 4)], ids=["1", "2", "3", "9"])
def test_waits_are_drawn_from_a_bound_that_doubles(attempt: int, bound: float) -> None:
    wait, after = state(RetryPolicy(first_wait=1, max_wait=4), attempt)
    drawn = [wait(after) for _ in range(200)]
    assert 0 <= min(drawn) < bound / 4 < bound * 3 / 4 < max(drawn) <= bound


class Hangs:
    """Answers never, or from the given call on."""

    id = "hangs"

    def __init__(self, *, times: int) -> None:
        self.left = times

    async def generate(self, request: ChatRequest) -> ChatResponse:
        if self.left:
            self.left -= 1
            await asyncio.sleep(60)
        return ChatResponse(text="a cup")


async def test_a_hung_call_is_cut_off_and_asked_again(engine: Engines, ask: Ask) -> None:
    response = await get_model(Hangs(times=1), engine=engine(timeout=0.02)).generate(ask())
    assert (response.text, names(response.meta.tries)) == ("a cup", ["CallTimeout", None])


async def test_the_deadline_cuts_a_hung_call_off(engine: Engines, ask: Ask) -> None:
    policy = RetryPolicy(tries=100, first_wait=0, deadline=0.03)
    with pytest.raises(CallTimeout) as error:
        await get_model(Hangs(times=100), engine=engine(timeout=60, policy=policy)).generate(ask())
    assert str(error.value) == "scripted gave no answer before the deadline of the call."
    assert len(error.value.tries) == 1


@pytest.mark.parametrize(
    ("deadline", "timeout", "held"),
    [(600.0, 120, 600.0), (600.0, 3600, 3600), (30.0, 3600, 30.0), (None, 3600, None)],
)
def test_a_try_that_may_take_long_is_not_cut_short_by_default(
    deadline: float | None, timeout: float, held: float | None
) -> None:
    assert RetryPolicy(deadline=deadline).within(timeout).deadline == held


async def test_the_deadline_ends_the_tries(engine: Engines, ask: Ask) -> None:
    policy = RetryPolicy(tries=1_000_000, first_wait=0, deadline=0.03)
    script = ScriptedModel(lambda _: ServerFault("Busy."))
    with pytest.raises(ServerFault, match=r"^Busy\.$"):
        await asyncio.wait_for(get_model(script, engine=engine(policy=policy)).generate(ask()), 5)
    assert len(script.requests) > 1


async def test_a_rate_limit_uses_up_no_try(engine: Engines, ask: Ask) -> None:
    limited = [RateLimited("Slow down.", retry_after=0.0)] * 2
    script = ScriptedModel([*limited, "a cup"])
    response = await get_model(script, engine=engine(policy=RetryPolicy(tries=1))).generate(ask())
    assert (response.text, names(response.meta.tries)) == ("a cup", ["RateLimited"] * 2 + [None])


async def test_a_pause_beyond_the_deadline_ends_the_call_and_stops_nobody(engine: Engines, ask: Ask) -> None:
    script = ScriptedModel([RateLimited("Come back tomorrow.", retry_after=86_400), "a cup"])
    model = get_model(script, engine=engine())
    with pytest.raises(RateLimited, match=r"^Come back tomorrow\.$"):
        await model.generate(ask(draw=1))
    assert (await asyncio.wait_for(model.generate(ask(draw=2)), 1)).text == "a cup"


async def test_cancelling_ends_the_waiting_between_tries(engine: Engines, ask: Ask) -> None:
    script = ScriptedModel(lambda _: ServerFault("Busy.", retry_after=30.0))
    task = asyncio.create_task(get_model(script, engine=engine(policy=RetryPolicy())).generate(ask()))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.02)
    assert len(script.requests) == 1


def test_a_call_error_starts_without_tries() -> None:
    assert CallError("Alas.").tries == ()


async def test_the_log_says_why_a_call_is_slow(engine: Engines, ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    faults = [ServerFault("Busy."), RateLimited("Slow down.", retry_after=0.2), Unreachable("Gone.")]
    model = get_model(ScriptedModel([*faults, "a cup"]), engine=engine())
    with caplog.at_level(logging.DEBUG, "askance"):
        await model.generate(ask())
    assert caplog.messages == [
        "scripted: try 1, 0.0 s: ServerFault: Busy.",
        "scripted: try 2, 0.0 s: RateLimited: Slow down.",
        "scripted: no call starts for 0.2 s",
        "scripted: try 3, 0.0 s: Unreachable: Gone.",
    ]
