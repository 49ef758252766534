"""A model that answers every node of the chains from a table, by the name of what is asked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askance.chat import ChatRequest, ChatResponse
from askance.models import Capabilities, Counters, Engine, Model, ScriptedModel, get_model
from askance.replay import MemoryStore, Records

PICTURES = Path(__file__).resolve().parent.parent / "askance" / "demo" / "pictures"
PICTURE = PICTURES / "brick-cup.jpg"
OPTIONS = ["I should drink tea", "I should buy this coffee", "I should lay bricks", "I should sleep"]
ENFORCED = Capabilities(schema="enforced")

ANSWERS: Mapping[str, Any] = {
    "objects": {"objects": ["cup", "bricks"]},
    "scene_text": {"lines": ["A solid start."]},
    "narration": {"description": "A cup on a table."},
    "unusual": {"unusual": "The cup is made of bricks."},
    "caption": {"description": "A cup of bricks."},
    "combine": {"description": "A cup made of bricks, with a slogan."},
    "detect_statement": {"statement": 1},
    "choose_action_reasons": {"answers": [2, 1, 3]},
    "end_to_end": {"answers": [2]},
}


def scripted(capabilities: Capabilities | None = ENFORCED, **answers: Any) -> ScriptedModel:
    """A model that answers from `ANSWERS`, changed by `answers`: JSON, texts, responses, exceptions or functions."""
    table = {**ANSWERS, **answers}

    def reply(request: ChatRequest) -> Any:
        found = table[name_of(request)]
        found = found(request) if callable(found) else found
        return found if isinstance(found, (str, ChatResponse, BaseException)) else json.dumps(found)

    return ScriptedModel(reply, capabilities=capabilities, identity="scripted")


def name_of(request: ChatRequest) -> str:
    """What a request in the highest form asks for."""
    assert request.response is not None
    assert request.response.name is not None
    return request.response.name


def model_of(script: ScriptedModel, records: Records | None = None, **engine: Any) -> Model:
    """`script` as a model, over records of its own."""
    return get_model(script, engine=Engine(records=records if records is not None else MemoryStore(), **engine))


def one_token(top: Mapping[str, float]) -> ChatResponse:
    """The answer of one token, the likeliest of `top`, which has the probability of each."""
    logprobs = {token: math.log(value) for token, value in top.items()}
    first = max(logprobs, key=lambda token: logprobs[token])
    return ChatResponse(
        text=first, finish="length", logprobs=({"token": first, "logprob": logprobs[first], "top": logprobs},)
    )


class CountingModel(ScriptedModel):
    """A model that counts what it answers."""

    async def counted(self) -> Counters:
        return Counters(answers=len(self.requests))


class ClosableModel(ScriptedModel):
    """A model that counts how often it is closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1
