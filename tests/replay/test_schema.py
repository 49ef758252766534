"""The schema that ships with the package accepts everything that the package records."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from jsonschema import Draft202012Validator

from askance.atypicality import RELATIONS
from askance.chat import (
    ChatRequest,
    ChatResponse,
    Message,
    ModelId,
    ResponseFormat,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
)
from askance.errors import StoreError
from askance.replay import KINDS, Record
from askance.replay.lines import SCHEMA, check_form
from tests.replay.samples import picture_request

CALL = ToolCall("1", "look", '{"at": "it"}')
FULL_REQUEST = ChatRequest(
    model=ModelId("openai", "gpt-4o", endpoint="http://127.0.0.1:8000/v1", api="responses"),
    messages=(
        Message("system", (TextPart("Look."),)),
        Message("assistant", (), tool_calls=(CALL,)),
        Message("tool", (TextPart("a cup"),), tool_call_id="1"),
    ),
    tools=(ToolSpec("look", "Looks.", {"type": "object"}),),
    response=ResponseFormat("json_schema", "Answer", {"enum": list(RELATIONS)}),
    sampling=Sampling(temperature=0.5, top_p=0.9, seed=1, max_tokens=10, stop=("\n",), logprobs=3),
    extra={"reasoning_effort": "low"},
    draw=2,
)
FULL_RESPONSE = ChatResponse(
    text="TR1",
    thinking="Hm.",
    tool_calls=(CALL,),
    finish="tool_calls",
    refusal="No.",
    usage=Usage(input=1, output=2, cached=3, image=4, thinking=5),
    model="gpt-4o-2024",
    logprobs=({"token": "TR", "logprob": -0.5, "top": {"TR": -0.5}},),
)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_all_that_a_chat_can_say_fits() -> None:
    digest = "0" * 64
    images = {digest: {"sent": digest, "media_type": "image/png", "width": 1, "height": 2}}
    check_form(Record.make("chat", FULL_REQUEST.canonical(), FULL_RESPONSE.canonical(), images=images).canonical())
    check_form(Record.make("chat", picture_request(), ChatResponse().canonical(), at="").canonical())


def test_nothing_that_a_chat_can_say_is_left_out() -> None:
    asked = {field.name for field in fields(ChatRequest) if field.init and field.compare}
    answered = {field.name for field in fields(ChatResponse) if field.compare}
    assert (FULL_REQUEST.canonical().keys(), FULL_RESPONSE.canonical().keys()) == (asked, answered)


@pytest.mark.parametrize("kind", sorted(KINDS - {"chat"}))
def test_other_kinds_are_free_in_what_they_hold(kind: str) -> None:
    check_form({"kind": kind, "key": "0" * 64, "request": {"any": 1}, "response": {"thing": [None]}})


def test_a_long_instance_is_cut_in_the_message() -> None:
    with pytest.raises(StoreError) as caught:
        check_form({"kind": "chat", "key": "x" * 10_000, "request": {}, "response": {}})
    assert len(str(caught.value)) < 250
