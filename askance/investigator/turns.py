"""How an investigation is put to a model: by tool calls, or by one JSON object a turn.

Both ways keep one history, in which the model calls tools and is told what they found; they differ in how it is sent
and in how a reply is read. What a model wrote stands in the history without marks of chat templates.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from typing_extensions import override

from askance.documents import UnreadableDocument, parse_json
from askance.prompts import neutralize

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse, JsonObject, Message, ToolSpec
    from askance.models import Model
    from askance.prompts import Form

NAME_LENGTH = 40
"""Characters of the name of a tool that are kept: longer than that of any."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")

MOST_TOKENS = 2048
"""Tokens of a turn at most, where the settings of the model say nothing."""


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A tool call that a turn asks for: a model's words."""

    name: str
    arguments: JsonObject | None
    """None where they are no JSON object."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model said in a turn."""

    thought: str
    wanted: tuple[WantedCall, ...] = ()
    problem: str = ""
    """What the model is told where it called no tool."""


class TurnForm(ABC):
    """A way to put an investigation to a model."""

    name: Literal["tools", "json"]
    prompt_form: Form
    """Form of the prompts that go with it."""

    schema_sent = False
    """Whether the endpoint is to hold turns to a schema."""

    @abstractmethod
    def request(self, model: Model, history: Sequence[Message], tools: Sequence[ToolSpec]) -> ChatRequest:
        """The request for the next turn, in which one of `tools` must be called."""

    @abstractmethod
    def read(self, response: ChatResponse) -> Said:
        """What a reply that is an answer says."""


class ToolTurns(TurnForm):
    """By tool calls of the endpoint's own; a turn may call several tools."""

    name = "tools"
    prompt_form = "text"

    @override
    def request(self, model: Model, history: Sequence[Message], tools: Sequence[ToolSpec]) -> ChatRequest:
        request = model.request(history, tools=tools, max_tokens=MOST_TOKENS)
        return replace(request, extra={**request.extra, "tool_choice": "required"})

    @override
    def read(self, response: ChatResponse) -> Said:
        wanted = tuple(WantedCall(tool_name(call.name), read_arguments(call.arguments)) for call in response.tool_calls)
        thought = neutralize(response.text or response.thinking).strip()
        return Said(thought, wanted, "" if wanted else "You called no tool. Call one.")


def tool_name(name: str) -> str:
    """A name of a tool as a model wrote it, in characters that every endpoint takes back in a history."""
    return _NO_NAME.sub("_", name)[:NAME_LENGTH] or "_"


def read_arguments(text: str) -> JsonObject | None:
    """The arguments of a call; None where they are no JSON object, or none that a run's folder can hold."""
    try:
        value = parse_json(text or "{}")
    except UnreadableDocument:
        return None
    return cast("JsonObject", _neutral_values(value)) if isinstance(value, dict) else None


def _neutral_values(value: Any) -> Any:
    """JSON whose texts hold no marks of chat templates."""
    if isinstance(value, str):
        return neutralize(value)
    if isinstance(value, Mapping):
        form = cast("Mapping[str, Any]", value)
        return {neutralize(name): _neutral_values(each) for name, each in form.items()}
    return [_neutral_values(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value
