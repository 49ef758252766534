"""The model `demo`, which gives the hand-written answers of the demo, and no others.

`--vlm demo` uses it like any model, so that every command and chain can be tried without a key, a server or weights.
A person wrote its answers; its name says so wherever an answer is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from askance.chat import ChatResponse
from askance.demo.table import ENTRIES, NAME, DemoAnswers
from askance.errors import ModelError
from askance.models import Capabilities

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.models import ModelSettings

TURN = "investigate"
"""Name of the schema by which the investigator asks for its next step."""

CAPABILITIES = Capabilities(schema="enforced", json_object=True, images=True, tools=False, boxes="none")


class DemoModel:
    """Answers the questions of the demo's chains about the demo's pictures, in JSON."""

    capabilities = CAPABILITIES

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The hand-written answer.

        Raises:
            ModelError: the table has none.
        """
        node = request.response.name if request.response is not None else None
        answers = _about(request)
        if node == TURN:
            reply = _turn(answers, request)
        else:
            reply = REPLIES[node](answers, request) if node in REPLIES and answers is not None else None
        if reply is None:
            raise ModelError(
                f"The model {NAME!r} has no answer to {node or 'a question in plain text'!r} about this.",
                hint="It knows what `verbalize`, `atypicality`, `action-reason` and `end-to-end` ask about the demo's "
                "pictures (`askance demo --copy FOLDER`), and `investigate` with the tools `unusual` and `zoom`. "
                "Anything else takes a real model, such as openai:gpt-4o.",
            )
        return ChatResponse(text=json.dumps(reply, ensure_ascii=False))


def from_settings(_: ModelSettings) -> DemoModel:
    """The model; it has no settings."""
    return DemoModel()


@cache
def _table() -> list[DemoAnswers]:
    """The answers of each picture, with its digest."""
    return json.loads(ENTRIES.read_text(encoding="utf-8"))


def _about(request: ChatRequest) -> Mapping[str, Any] | None:
    """The answers about the picture in the request, or the one whose description is in it."""
    digests = {part.shown.image.sha256 for part in request.images}
    words = "\n".join(message.text for message in request.messages)
    for row in _table():
        answers = row["answers"]
        if row["sha256"] in digests or (
            not digests and any(answers[link] in words for link in ("narration", "unusual", "combine"))
        ):
            return answers
    return None


def _turn(answers: Mapping[str, Any] | None, request: ChatRequest) -> Mapping[str, Any] | None:
    """The next step of an investigation, always in this order: what is unusual, one look at it, the explanation.

    None where the investigation is after something else, or lacks a tool of these.
    """
    words = "\n".join(message.text for message in request.messages)
    form = (request.response.schema if request.response is not None else None) or {}
    turns: Sequence[Mapping[str, Any]] = form.get("anyOf", [form] if form else [])
    offered = [tool for turn in turns for tool in turn["properties"]["tool"]["enum"]]
    if answers is None:
        tool, arguments = "unusual", {}
    elif answers["investigate"]["found"] in words or "zoom" not in offered:
        value = {"explanation": answers["investigate"]["explanation"]}
        tool, arguments = "answer", {"value": value, "confidence": 90, "evidence": [1, 2], "enough": True}
    else:
        look = answers["investigate"]
        tool, arguments = "zoom", {"region": look["region"], "question": look["question"]}
    if tool not in offered or '{"explanation":' not in words:
        return None
    return {"thought": f"Written by hand: {_THOUGHTS[tool]}.", "tool": tool, "arguments": arguments}


_THOUGHTS = {"unusual": "first what is unusual", "zoom": "then a closer look at it", "answer": "that is enough"}


def _found(answers: Mapping[str, Any], request: ChatRequest) -> Mapping[str, Any] | None:
    """What is found in a region, where that is asked for which the table has an answer."""
    look = answers["investigate"]
    return {"answer": look["found"]} if look["question"] in request.messages[-1].text else None


def _chosen_from_words(answers: Mapping[str, Any], request: ChatRequest) -> Mapping[str, Any] | None:
    """The options chosen from a description, or from the unusual things where the request holds no description."""
    words = "\n".join(message.text for message in request.messages)
    told = any(answers[link] in words for link in ("narration", "combine"))
    node = "choose_action_reasons" if told else "choose_from_unusual"
    return _chosen(answers[node], request, "answers", several=True)


def _chosen(texts: Iterable[str], request: ChatRequest, field: str, *, several: bool) -> Mapping[str, Any] | None:
    """The numbers of `texts` in the list of options, in the form of the schema; None where none is in the list."""
    words = "\n".join(message.text for message in request.messages)
    numbers = [
        int(match[1]) for text in texts if (match := re.search(rf"^(\d+)\. {re.escape(text)}$", words, re.MULTILINE))
    ]
    if not numbers:
        return None
    schema: Mapping[str, Any] = request.response.schema if request.response and request.response.schema else {}
    properties: Mapping[str, Any] = schema.get("properties", {})
    steps = {"reasoning": "Written by hand, without steps."} if "reasoning" in properties else {}
    return {**steps, field: numbers[: properties.get(field, {}).get("maxItems")] if several else numbers[0]}


REPLIES: Mapping[str | None, Callable[[Mapping[str, Any], ChatRequest], Mapping[str, Any] | None]] = {
    "objects": lambda said, _: {"objects": said["objects"]},
    "scene_text": lambda said, _: {"lines": said["scene_text"]},
    "narration": lambda said, _: {"description": said["narration"]},
    "unusual": lambda said, _: {"unusual": said["unusual"]},
    "caption": lambda said, _: {"description": said["caption"]},
    "ask_about_picture_regions": _found,
    "combine": lambda said, _: {"description": said["combine"]},
    "detect_statement": lambda said, request: _chosen([said["detect_statement"]], request, "statement", several=False),
    "choose_action_reasons": _chosen_from_words,
    "end_to_end": lambda said, request: _chosen(said["end_to_end_multi"], request, "answers", several=True),
}
"""The JSON that each node asks for, by the name of the schema that it sends along."""
