from __future__ import annotations

import asyncio
import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.agents import PositionVerdict, Preference, PreferenceValue, judge_preference
from askance.agents.judge import POSITIONS, Position
from askance.chat import ChatRequest
from askance.errors import UsageError
from askance.models import ScriptedModel
from askance.replay import MemoryStore
from tests.scripted import ENFORCED, model_of

A, B = "The fish has no water.", "The tree has no leaves."
QUESTION = "What is odd?"


def better(place: str, reason: str = "so it is") -> str:
    return json.dumps({"reason": reason, "better": place})


def judge(*replies: Any, **engine: Any) -> tuple[Any, ScriptedModel]:
    script = ScriptedModel(replies, identity="judge", capabilities=ENFORCED)
    return judge_preference(model_of(script, **engine)), script


BOTH: dict[str, tuple[str, str, PreferenceValue, bool]] = {
    "a both times": ("first", "second", "a", False),
    "b both times": ("second", "first", "b", False),
    "always the first": ("first", "first", "tie", True),
    "always the second": ("second", "second", "tie", True),
    "same both times": ("same", "same", "tie", False),
    "a once": ("first", "same", "tie", False),
    "b once": ("same", "first", "tie", False),
}


@pytest.mark.parametrize(("a_first", "b_first", "value", "flipped"), BOTH.values(), ids=BOTH)
async def test_a_win_takes_both_orders(a_first: str, b_first: str, value: PreferenceValue, flipped: bool) -> None:
    node, script = judge(better(a_first), better(b_first))

    said = await node.judge(A, B, question=QUESTION)

    assert (said.value, said.flipped, said.outcome, len(said.calls)) == (value, flipped, "answered", 2)
    first, second = (request.messages[-1].text for request in script.requests)
    assert first.index(A) < first.index(B)
    assert second.index(B) < second.index(A)


UNREADABLE = {
    "prose": "The first, I think.",
    "another word": better("A"),
    "within prose": f"It says {better('first')}",
    "nothing": "?",
}


@pytest.mark.parametrize("reply", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("when", ["first", "second"])
async def test_one_order_that_cannot_be_read_leaves_it_unscored(reply: str, when: str) -> None:
    read = [better("first")]
    node, _ = judge(*([reply, reply, *read] if when == "first" else [*read, reply, reply]))

    said = await node.judge(A, B, question=QUESTION)

    assert (said.value, said.flipped, said.outcome, str(said)) == (None, False, "invalid", "unscored")


TEXT: dict[str, tuple[str, Position | None]] = {
    "as asked": ("Reason: it says why\nBetter: first", "first"),
    "bold": ("**Reason:** it says why\n**Better:** Same.", "same"),
    "not last": ("Better: first\nReason: it says why", None),
    "twice": ("Better: second\nBetter: first", None),
    "in a line": ("Reason: Better: first", None),
}


@pytest.mark.parametrize(("reply", "place"), TEXT.values(), ids=TEXT)
async def test_the_text_form_is_read_from_its_last_line(reply: str, place: Position | None) -> None:
    node, _ = judge(*[reply] * 4, protocol="paper")

    said = await node.judge(A, B, question=QUESTION)

    assert said.a_first.value == place


@pytest.mark.parametrize(
    ("a", "b", "value", "outcome"), [(A, A, "tie", "answered"), (" ", B, None, "skipped"), (A, "", None, "skipped")]
)
async def test_nothing_is_asked_where_nothing_can_differ(a: str, b: str, value: Any, outcome: str) -> None:
    node, script = judge()

    said = await node.judge(a, b, question=QUESTION)

    assert (said.value, said.outcome, said.flipped, script.requests) == (value, outcome, False, [])


places = st.sampled_from([*POSITIONS, "nonsense"])


@given(st.tuples(places, places))
def test_swapping_a_and_b_swaps_the_preference(said: tuple[str, str]) -> None:
    """Whatever a judge says of the two orders, and without another call."""

    def reply(request: ChatRequest) -> str:
        text = request.messages[1].text
        return better(said[0] if text.index(A) < text.index(B) else said[1])

    script = ScriptedModel(reply, identity="judge", capabilities=ENFORCED)
    node = judge_preference(model_of(script, MemoryStore()))
    ab, asked = asyncio.run(node.judge(A, B, question=QUESTION)), len(script.requests)
    ba = asyncio.run(node.judge(B, A, question=QUESTION))

    turned: dict[Any, Any] = {"a": "b", "b": "a", "tie": "tie", None: None}
    assert ba == ab.swapped
    assert (ba.value, ba.flipped) == (turned[ab.value], ab.flipped)
    assert len(script.requests) == asked


def test_what_is_said_is_a_place_or_an_outcome() -> None:
    with pytest.raises(UsageError, match="is no judgement"):
        PositionVerdict(value="first", outcome="invalid")
    with pytest.raises(UsageError, match="is no judgement"):
        PositionVerdict()


def test_reasons_of_both_orders_are_kept() -> None:
    said = Preference(
        a_first=PositionVerdict(value="first", reason="x"), b_first=PositionVerdict(value="second", reason="y")
    )

    assert said.reason == "x / y"
    assert Preference(a_first=said.a_first, b_first=PositionVerdict(value="second")).reason == "x"
    assert set(get_args(PreferenceValue)) == {"a", "b", "tie"}
