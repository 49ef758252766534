"""Investigators over models that answer from a script, and the turns that those scripts are written in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from askance.chat import ChatRequest, ChatResponse, ToolCall, Usage
from askance.images import Image
from askance.investigator import Investigator, investigator
from askance.models import Capabilities, Engine, ScriptedModel, get_model
from askance.replay import MemoryStore, Records
from tests.scripted import PICTURE

IMAGE = Image.load(PICTURE)
CALLS_TOOLS = Capabilities(schema="enforced", tools=True, boxes="thousandths")
NO_TOOLS = Capabilities(schema="enforced", tools=False, boxes="thousandths")
ODD = "The cup is made of bricks."
USAGE = Usage(input=300, output=30)

Turns = Callable[[ChatRequest], Any] | Iterable[Any]
"""What the agent says: tool calls, as `call` and `answer` give them; several in a list; or any reply of a model."""


def call(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall("any id", tool, json.dumps(arguments))


def answer(explanation: str = ODD, **changes: Any) -> ToolCall:
    given = {"value": {"explanation": explanation}, "confidence": 80, "evidence": [1], "enough": True}
    return call("answer", **{**given, **changes})


def said(turn: Any, *, in_json: bool = False) -> Any:
    """A turn of a script as a model gives it: by tool calls, or the first call as JSON."""
    calls: tuple[Any, ...] = tuple(cast("list[Any]", turn)) if isinstance(turn, list) else (turn,)
    if not all(isinstance(each, ToolCall) for each in calls):
        return cast("Any", turn)
    if not in_json:
        return ChatResponse(text="I look.", tool_calls=calls, finish="tool_calls", usage=USAGE)
    form = {"thought": "I look.", "tool": calls[0].name, "arguments": json.loads(calls[0].arguments)}
    return ChatResponse(text=json.dumps(form), usage=USAGE)


def agent_script(turns: Turns, *, in_json: bool = False) -> ScriptedModel:
    """A model that says these turns."""
    capabilities = NO_TOOLS if in_json else CALLS_TOOLS
    if callable(turns):
        return ScriptedModel(
            lambda request: said(turns(request), in_json=in_json), identity="agent", capabilities=capabilities
        )
    return ScriptedModel([said(turn, in_json=in_json) for turn in turns], identity="agent", capabilities=capabilities)


def eye_script(reply: Callable[[ChatRequest], Any] | Any = "bricks") -> ScriptedModel:
    """A model that sees, and answers every question."""

    def answered(request: ChatRequest) -> Any:
        found = reply(request) if callable(reply) else reply
        return ChatResponse(text=json.dumps({"answer": found}), usage=USAGE) if isinstance(found, str) else found

    return ScriptedModel(answered, identity="eye", capabilities=CALLS_TOOLS)


def looking(
    agent: ScriptedModel, eye: ScriptedModel | None = None, *, records: Records | None = None, **options: Any
) -> Investigator:
    """An investigator by these models, over records of its own."""
    names = {"mode", "concurrency", "budget_guard", "retry"}
    engine = Engine(
        records=MemoryStore() if records is None else records,
        **{name: value for name, value in options.items() if name in names},
    )
    options = {name: value for name, value in options.items() if name not in names}
    options.setdefault("tools", ("ask", "zoom"))
    sees = eye_script() if eye is None else eye
    return investigator(get_model(agent, engine=engine), get_model(sees, engine=engine), **options)


def tools_of(request: ChatRequest) -> tuple[str, ...]:
    return tuple(tool.name for tool in request.tools)


def told_last(request: ChatRequest) -> str:
    """What the agent was told last."""
    return request.messages[-1].text


def steps_of(trace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Tool and outcome of each step."""
    return [(step["tool"], step["outcome"]) for step in trace["steps"]]
