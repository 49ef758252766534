"""An investigation of an endpoint that calls no tools: one JSON object a turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from askance.chat import ChatRequest, ToolSpec
from askance.investigator import investigator
from askance.investigator.json_turns import turn_schema
from askance.models import Capabilities, Engine, get_model
from askance.replay import MemoryStore
from tests.investigator.agents import IMAGE, ODD, agent_script, answer, call, eye_script, looking, steps_of, told_last

ASK = call("ask", question="What is it made of?")
ZOOM = call("zoom", region="top left", question="What?")


def sent(request: ChatRequest) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages]


async def test_it_looks_and_answers_without_tool_calls() -> None:
    agent, eye = agent_script([ASK, answer()], in_json=True), eye_script()
    result = await looking(agent, eye).ask(IMAGE)

    assert (str(result.value), result.trace["form"], len(eye.requests)) == (ODD, "json", 1)
    assert steps_of(result.trace) == [("ask", "answered"), ("answer", "answered")]
    first, second = map(sent, agent.requests)
    assert [role for role, _ in second] == ["system", "user", "assistant", "user"]
    assert first[1][1].startswith("The tools, each with the JSON Schema of its arguments:\nask: ")
    assert second[2][1] == '{"thought": "I look.", "tool": "ask", "arguments": {"question": "What is it made of?"}}'
    assert second[3][1].startswith("Step 1.\n<<ask says ")
    assert [request.tools for request in agent.requests] == [(), ()]


async def test_both_forms_come_to_the_same() -> None:
    by_tools = await looking(agent_script([ASK, ZOOM, answer()])).ask(IMAGE)
    by_json = await looking(agent_script([ASK, ZOOM, answer()], in_json=True)).ask(IMAGE)

    def without_keys(trace: Any) -> Any:
        steps = [{**step, "calls": len(step["calls"])} for step in trace["steps"]]
        return {**trace, "steps": steps, "form": ""}

    assert without_keys(by_tools.trace) == without_keys(by_json.trace)


async def test_the_last_call_is_held_to_the_answer() -> None:
    agent = agent_script([ZOOM, answer()], in_json=True)
    await looking(agent, calls=3).ask(IMAGE)

    schemas = [request.response.schema or {} for request in agent.requests if request.response is not None]
    turns = [schema.get("anyOf", [schema]) for schema in schemas]
    assert [[each["properties"]["tool"]["enum"] for each in forms] for forms in turns] == [
        [["ask"], ["zoom"], ["answer"]],
        [["answer"]],
    ]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("I would ask about the cup.", "Your turn could not be read: "),
        ('{"thought": "Well.", "arguments": {}}', "Your turn names no `tool`."),
        ('{"thought": "", "tool": "ask", "arguments": "all"}', "The arguments are no JSON object."),
        (
            '{"thought": "", "tool": "ask", "arguments": {"n": 1234567890123456789}}',
            "The arguments are no JSON object.",
        ),
        ('{"thought": "", "tool": "ask", "arguments": {"n": 1e400}}', "The arguments are no JSON object."),
        (f'{{"thought": "", "tool": "ask", "arguments": {{"n": {"[" * 700}{"]" * 700}}}}}', "no JSON object."),
    ],
)
async def test_a_turn_that_cannot_be_read_is_asked_for_again(
    reply: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = agent_script([reply, answer()], in_json=True)
    result = await looking(agent).ask(IMAGE)

    assert (result.outcome, result.trace["malformed"]) == ("answered", 1)
    assert told in told_last(agent.requests[1])
    assert ("it took a JSON schema and did not hold the answer to it" in caplog.text) == ("Your turn" in told)


@pytest.mark.parametrize(
    ("capabilities", "kind"),
    [
        (Capabilities(schema="ignored", json_object=True, tools=False), "json_object"),
        (Capabilities(schema="ignored", json_object=False, tools=False), None),
    ],
)
async def test_the_strictest_form_of_the_endpoint_is_asked_for(capabilities: Capabilities, kind: str | None) -> None:
    agent = agent_script([answer()], in_json=True)
    agent.capabilities = capabilities
    result = await looking(agent).ask(IMAGE)

    response = agent.requests[0].response
    assert (result.outcome, None if response is None else response.kind) == ("answered", kind)


def test_the_schema_of_a_turn_holds_a_tool_to_its_own_arguments() -> None:
    forms = [{"type": "object", "properties": {name: {"type": "string"}}} for name in "ab"]
    tools = [ToolSpec(name, "", form) for name, form in zip("ab", forms, strict=True)]

    turns = turn_schema(tools)["anyOf"]
    assert [(each["properties"]["tool"]["enum"], each["properties"]["arguments"]) for each in turns] == [
        (["a"], forms[0]),
        (["b"], forms[1]),
    ]
    assert json.loads(json.dumps(turn_schema(tools[:1])))["properties"]["arguments"] == forms[0]


async def test_a_chat_model_of_langchain_investigates_too() -> None:
    turns = [
        '{"thought": "", "tool": "ask", "arguments": {"question": "What is it made of?"}}',
        '{"thought": "", "tool": "answer", "arguments": {"value": {"explanation": "Bricks."}}}',
    ]
    # The first reply is to the probe of what it can do.
    agent = get_model(
        FakeListChatModel(responses=["Yes.", *turns]), engine=Engine(records=MemoryStore()), identity="listed"
    )
    eye = get_model(eye_script(), engine=agent.engine)
    result = await investigator(agent, eye, tools=("ask",), form="json").ask(IMAGE)

    assert (str(result.value), steps_of(result.trace)) == ("Bricks.", [("ask", "answered"), ("answer", "answered")])
