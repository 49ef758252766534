"""The chain `investigate`: each goal is asked by its node's question and answered in its form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from askance.chains import Reading
from askance.chains.named_chain import find_chain
from askance.errors import UsageError
from askance.investigator.goals import GOALS, goal_named
from askance.models import Capabilities, Engine, ScriptedModel, get_model
from askance.replay import MemoryStore
from tests.investigator.test_toolbox import answering
from tests.scripted import OPTIONS, PICTURE

JSON_ALONE = Capabilities(schema="enforced", tools=False)


def step(tool: str, **arguments: Any) -> str:
    return json.dumps({"thought": "…", "tool": tool, "arguments": arguments})


def answer(**value: Any) -> str:
    return step("answer", value=value, confidence=70, evidence=[1], enough=True)


async def investigated(last: str, given: Mapping[str, Any], **options: Any) -> tuple[Reading, ScriptedModel]:
    """What the chain reads where the agent asks about the cup and then answers so."""
    agent = ScriptedModel(
        [step("ask", question="What is the cup made of?"), last], capabilities=JSON_ALONE, identity="agent"
    )
    engine = Engine(records=MemoryStore())
    named = find_chain("investigate")
    assert named is not None
    chain = named.with_options({"tools": ["ask, unusual"], **options}).make(
        get_model(answering(), engine=engine), get_model(agent, engine=engine)
    )
    return await chain.ainvoke({"image": PICTURE, **given}), agent


@pytest.mark.parametrize(
    ("goal", "options", "given", "last", "said"),
    [
        ("explain", {}, {}, answer(explanation="It is of bricks."), "It is of bricks."),
        ("identify", {}, {}, answer(answer="weird"), "weird"),
        ("answer", {"question": "What is it?"}, {}, answer(answer="a cup"), "a cup"),
        ("answer", {"question": "What is it?"}, {"question": "What is odd?"}, answer(answer="bricks"), "bricks"),
        ("choose", {"count": 2}, {"options": OPTIONS}, answer(answers=[2, 1]), (2, 1)),
        ("choose", {"mode": "single"}, {"options": OPTIONS}, answer(answers=[3]), (3,)),
        ("statement", {}, {"options": OPTIONS}, answer(statement=4), (4,)),
    ],
)
async def test_a_goal_is_answered_in_the_form_of_its_node(
    goal: str, options: dict[str, Any], given: dict[str, Any], last: str, said: Any
) -> None:
    reading, agent = await investigated(last, given, goal=goal, **options)
    (result,) = reading.links.values()

    assert (reading.outcome, result.outcome) == ("answered", "answered")
    assert getattr(result.value, "numbers" if given.get("options") else "text") == said
    asked = given.get("question") or options.get("question") or ""
    assert f"{asked}" in agent.requests[0].messages[1].text
    assert len(result.calls) == 3


async def test_a_goal_that_asks_a_question_is_skipped_without_one() -> None:
    reading, agent = await investigated(answer(answer="a cup"), {}, goal="answer")

    assert (reading.outcome, reading.reason, agent.requests) == ("skipped", "no question is asked", [])


def test_a_goal_goes_by_its_name() -> None:
    assert [*GOALS] == ["explain", "identify", "choose", "statement", "answer"]
    with pytest.raises(UsageError, match=r"There is no goal 'describe'\. Choose one of explain, identify, choose, "):
        goal_named("describe")


async def test_calls_and_tokens_limit_one_picture_together() -> None:
    reading, _ = await investigated(answer(explanation="…"), {}, calls=5, budget_each="90000 tokens")
    (result,) = reading.links.values()

    assert result.trace["budget"] == "90,000 tokens and 5 calls"
