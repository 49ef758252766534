"""Turns of an investigation as one JSON object each, for endpoints that cannot call tools.

The tools stand in the prompt. The model names one of them in each turn, in the strictest output mode that its endpoint
has; what the tool found follows in a turn of the user.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from askance.chat import Message, ResponseFormat, TextPart
from askance.investigator.turns import MOST_TOKENS, Said, TurnForm, WantedCall, read_arguments, tool_name
from askance.nodes import Unreadable
from askance.nodes.answer import AnswerField, schema_of, text_schema
from askance.nodes.reply import json_object
from askance.prompts import neutralize

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse, JsonObject, Part, ToolSpec
    from askance.models import Model, OutputMode

_FIELDS = ("thought", "tool", "arguments")


class JsonTurns(TurnForm):
    """By one JSON object a turn: `{"thought": …, "tool": …, "arguments": {…}}`.

    Args:
        mode: the output mode in which the object is asked for.
    """

    name = "json"
    prompt_form = "json"

    def __init__(self, mode: OutputMode) -> None:
        self.mode = mode
        self.schema_sent = mode == "json_schema"

    @override
    def request(self, model: Model, history: Sequence[Message], tools: Sequence[ToolSpec]) -> ChatRequest:
        messages, words = [*_as_text(history)], TextPart(_tools_told(tools))
        place = next(place for place, message in enumerate(messages) if message.role == "user")
        messages[place] = replace(messages[place], parts=(words, *messages[place].parts))
        return model.request(messages, response=self._response_format(tools), max_tokens=MOST_TOKENS)

    def _response_format(self, tools: Sequence[ToolSpec]) -> ResponseFormat | None:
        if self.mode == "json_object":
            return ResponseFormat("json_object")
        return (
            ResponseFormat("json_schema", name="investigate", schema=turn_schema(tools))
            if self.mode == "json_schema"
            else None
        )

    @override
    def read(self, response: ChatResponse) -> Said:
        try:
            turn = json_object(response.text, _FIELDS)
        except Unreadable as error:
            return Said(neutralize(response.text), problem=f"Your turn could not be read: {neutralize(str(error))}.")
        thought, tool, arguments = (turn.get(name) for name in _FIELDS)
        said = neutralize(thought) if isinstance(thought, str) else ""
        if not isinstance(tool, str) or not tool:
            return Said(said, problem="Your turn names no `tool`.")
        return Said(said, (WantedCall(tool_name(tool), {} if arguments is None else _checked(arguments)),))


def _checked(arguments: object) -> JsonObject | None:
    """The arguments of a turn, by the rules for those of a tool call; None where they break one."""
    try:
        return read_arguments(json.dumps(arguments))
    except RecursionError:
        return None


def turn_schema(tools: Sequence[ToolSpec]) -> JsonObject:
    """JSON Schema of a turn that uses one of `tools`, with the arguments of that one."""
    turns = [
        schema_of(
            [
                AnswerField("thought", text_schema()),
                AnswerField("tool", text_schema(among=[tool.name])),
                AnswerField("arguments", dict(tool.parameters)),
            ]
        )
        for tool in tools
    ]
    return turns[0] if len(turns) == 1 else {"anyOf": turns}


def _tools_told(tools: Sequence[ToolSpec]) -> str:
    """Each tool in a line: its name, what it does, and the JSON Schema of its arguments."""
    forms = [json.dumps(tool.parameters, ensure_ascii=False) for tool in tools]
    lines = [f"{tool.name}: {tool.description} Arguments: {form}" for tool, form in zip(tools, forms, strict=True)]
    return "\n".join(["The tools, each with the JSON Schema of its arguments:", *lines, "", ""])


def _as_text(history: Sequence[Message]) -> Iterator[Message]:
    """The history without tool calls: turns of the model as JSON, what tools found in one turn of the user each."""
    waiting: list[Part] = []
    for message in history:
        if message.role in {"user", "tool"}:
            waiting += ([TextPart("\n\n")] if waiting else []) + [*message.parts]
            continue
        if waiting:
            yield Message("user", tuple(waiting))
            waiting = []
        yield _as_json(message) if message.tool_calls else message
    if waiting:
        yield Message("user", tuple(waiting))


def _as_json(message: Message) -> Message:
    call = message.tool_calls[0]
    turn = {"thought": message.text, "tool": call.name, "arguments": json.loads(call.arguments)}
    return replace(message, parts=(TextPart(json.dumps(turn, ensure_ascii=False)),), tool_calls=())
