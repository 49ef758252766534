from __future__ import annotations

from askance.chat import ModelId, Usage
from askance.cli.tally import Tally
from askance.models import CallEvent
from askance.models.events import Phase


def event(phase: Phase) -> CallEvent:
    return CallEvent(phase=phase, key="k", model=ModelId("openai", "m"), usage=Usage(input=3, output=4), cost=0.25)


def test_a_shared_call_is_counted_by_itself_and_paid_for_once() -> None:
    tally = Tally()
    for phase in ("started", "answered", "shared", "shared", "shared", "replayed"):
        tally(event(phase))
    assert str(tally) == "1 call made · 1 replayed · 3 shared · 7 tokens · $0.2500"
    assert tally.short == "1 made · 1 replayed · 3 shared · 7 tokens · $0.2500"
