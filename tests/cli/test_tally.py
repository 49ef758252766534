from __future__ import annotations

import pytest

from askance.chat import ModelId, Usage
from askance.cli.tally import Tally
from askance.errors import (
    AskanceError,
    BadRequest,
    CallTimeout,
    MalformedReply,
    OverBudget,
    RateLimited,
    ServerFault,
    Unreachable,
)
from askance.models import CallEvent
from askance.models.events import Phase

BUSY, SLOWER = ServerFault("It is busy.", status=503), RateLimited("Slow down.", status=429)
NO_JSON = MalformedReply("It is no JSON.")


def event(phase: Phase, *, key: str = "k", error: AskanceError | None = None) -> CallEvent:
    usage = Usage(input=3, output=4)
    return CallEvent(phase=phase, key=key, model=ModelId("openai", "m"), usage=usage, cost=0.25, error=error)


def test_a_shared_call_is_counted_by_itself_and_paid_for_once() -> None:
    tally = Tally()
    for phase in ("started", "answered", "shared", "shared", "shared", "replayed"):
        tally(event(phase))
    assert str(tally) == "1 call made · 1 replayed · 3 shared · 7 tokens · $0.2500"
    assert tally.short == "1 made · 1 replayed · 3 shared · 7 tokens · $0.2500"


def of_tries(*faults: AskanceError, end: AskanceError | None = None) -> str:
    """The counts of a call whose tries failed so, and that then ended so."""
    tally = Tally()
    for fault in faults:
        tally(event("tried", error=fault))
    tally(event("answered") if end is None else event("failed", error=end))
    return str(tally)


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([BUSY], "1 more try failed (1 × 503)"),
        ([SLOWER, BUSY, SLOWER, NO_JSON], "4 more tries failed (2 × 429, 1 × 503, 1 × unreadable)"),
        ([Unreachable("Gone.")] * 2, "2 more tries failed (2 × no connection)"),
        ([CallTimeout("Late.")], "1 more try failed (1 × no answer in time)"),
        ([CallTimeout("Late.", status=408)], "1 more try failed (1 × 408)"),
        ([RateLimited("Slow down.")], "1 more try failed (1 × asked to slow down)"),
        ([ServerFault("It broke.")], "1 more try failed (1 × server fault)"),
    ],
    ids=["one", "several", "connection", "time", "408", "rate without a status", "fault without a status"],
)
def test_tries_that_failed_are_counted_by_what_was_wrong(faults: list[AskanceError], said: str) -> None:
    assert of_tries(*faults) == f"1 call made · 0 replayed · {said} · 7 tokens · $0.2500"


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([BUSY, NO_JSON, BUSY], " · 2 more tries failed (1 × 503, 1 × unreadable) · 1 failed"),
        ([BUSY], " · 1 failed"),
        ([BadRequest("No.", status=400)], " · 1 failed"),
        ([BUSY, BadRequest("No.", status=400)], " · 1 more try failed (1 × 503) · 1 failed"),
        ([BUSY, OverBudget("Too dear.")], " · 1 more try failed (1 × 503)"),
    ],
    ids=["the last one", "the only one", "rejected", "rejected in the end", "the budget ended it"],
)
def test_the_try_that_ended_a_call_is_counted_as_the_call(faults: list[AskanceError], said: str) -> None:
    tried = [fault for fault in faults if not isinstance(fault, OverBudget)]
    assert of_tries(*tried, end=faults[-1]) == f"0 calls made · 0 replayed{said}"
