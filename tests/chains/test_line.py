from __future__ import annotations

from askance.chains import Reading
from askance.chains.line import meta_of
from askance.chat import CallMeta, Usage
from askance.nodes import Call, Result
from askance.tools import Narration


def call(*, shared: bool = False, replayed: bool = False) -> Call:
    meta = CallMeta(seconds=2.0, shared=shared, replayed=replayed)
    return Call(key="k", model="m", usage=Usage(input=3, output=4), cost=0.25, meta=meta)


def test_a_shared_call_is_counted_by_itself_and_paid_for_where_it_was_made() -> None:
    calls = (call(), call(shared=True), call(shared=True), call(replayed=True), call(replayed=True, shared=True))
    told = Result(outcome="answered", value=Narration(text="A cup."), calls=calls)

    assert meta_of(Reading(name="cup.jpg", narration=told)) == {
        "calls": 1,
        "replayed": 2,
        "shared": 2,
        "seconds": 2.0,
        "tokens": {"input": 15, "output": 20},
        "cost": 0.25,
        "tries": {},
    }
