from __future__ import annotations

from askance.chains import Reading
from askance.chains.output_line import calls_meta
from askance.chat import CallMeta, Try, Usage
from askance.errors import BadImage, ServerFault, Unreachable
from askance.nodes import Call, Result, no_answer
from askance.tools import Narration


def call(*, shared: bool = False, replayed: bool = False) -> Call:
    meta = CallMeta(seconds=2.0, shared=shared, replayed=replayed)
    return Call(key="k", model="m", usage=Usage(input=3, output=4), cost=0.25, meta=meta)


def test_a_shared_call_is_counted_by_itself_and_paid_for_where_it_was_made() -> None:
    calls = (call(), call(shared=True), call(shared=True), call(replayed=True), call(replayed=True, shared=True))
    told = Result(outcome="answered", value=Narration(text="A cup."), calls=calls)

    assert calls_meta(Reading(name="cup.jpg", links={"narration": told}).calls, {}) == {
        "calls": 1,
        "replayed": 2,
        "shared": 2,
        "failed": {},
        "seconds": 2.0,
        "tokens": {"input": 15, "output": 20},
        "cost": 0.25,
        "tries": {},
    }


def test_the_tries_of_a_call_that_failed_are_told_under_its_link() -> None:
    late, broken, said = Unreachable("Gone."), ServerFault("It broke."), "ServerFault: It broke."
    broken.key, broken.tries = "b", (Try(10.0, 0.5, said), Try(12.0, 1.25, said))
    reading = Reading(
        name="cup.jpg",
        links={
            "objects": no_answer(late),
            "scene_text": no_answer(BadImage("No picture.")),
            "narration": no_answer(broken, calls=(call(),)),
        },
    )

    meta = calls_meta(reading.calls, reading.failures)

    assert (meta["calls"], meta["failed"], meta["seconds"]) == (1, {"narration": "b"}, 3.75)
    assert meta["tries"] == {
        "b": [
            {"at": 10.0, "seconds": 0.5, "error": said},
            {"at": 12.0, "seconds": 1.25, "error": said},
        ]
    }
