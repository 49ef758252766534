from __future__ import annotations

from typing import Any

import pytest
from PIL import Image as Pillow

from askance.chat import (
    ChatRequest,
    ChatResponse,
    ImagePart,
    Message,
    ModelId,
    ResponseFormat,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
)
from askance.errors import ConfigError, MalformedReply
from askance.images import Image, PreparedImage, Shown
from askance.models.openai.responses import from_responses, to_responses
from tests.servers import responses_body

MODEL = ModelId("openai", "some-model", api="responses")


def body(*messages: Message, **fields: Any) -> dict[str, Any]:
    request = ChatRequest(model=MODEL, messages=messages, **fields)
    return to_responses(request, lambda part: PreparedImage(b"ABC", "image/png", 1, 1, "0" * 64), model="some-model")


def user(text: str) -> Message:
    return Message("user", (TextPart(text),))


def test_a_conversation_as_items() -> None:
    picture = ImagePart(Shown(Image.from_pil(Pillow.new("RGB", (2, 2)))), detail="high")
    sent = body(
        Message("system", (TextPart("Be brief."),)),
        Message("user", (picture, TextPart("What?"))),
        Message("assistant", (TextPart("I look."),), (ToolCall("c1", "look", "{}"),)),
        Message("tool", (TextPart("a cup"),), tool_call_id="c1"),
    )
    assert sent == {
        "model": "some-model",
        "store": False,
        "input": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "high"},
                    {"type": "input_text", "text": "What?"},
                ],
            },
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a cup"},
        ],
    }


def test_a_picture_of_a_tool_follows_as_a_turn_of_the_user() -> None:
    picture = ImagePart(Shown(Image.from_pil(Pillow.new("RGB", (2, 2)))))
    called = Message("assistant", (), (ToolCall("c1", "look", "{}"),))

    assert body(user("Hi"), called, Message("tool", (picture,), tool_call_id="c1"))["input"][2:] == [
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"}],
        },
    ]


def test_sampling_tools_format_and_extras() -> None:
    sent = body(
        user("Hi"),
        sampling=Sampling(temperature=0.5, max_tokens=100, logprobs=2),
        tools=(ToolSpec("look", "Looks.", {"type": "object"}),),
        response=ResponseFormat("json_schema", "a", {"type": "object"}),
        extra={"reasoning_effort": "low", "text": {"verbosity": "low"}},
    )
    del sent["model"], sent["input"], sent["store"]
    form = {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": False}
    tool = {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    assert sent == {
        "temperature": 0.5,
        "max_output_tokens": 100,
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
        "tools": [{**tool, "strict": False}],
        "text": {"verbosity": "low", "format": form},
        "reasoning": {"effort": "low"},
    }


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("required", "required"),
        ({"type": "function", "function": {"name": "look"}}, {"type": "function", "name": "look"}),
    ],
)
def test_a_choice_of_tools_has_the_form_of_the_api(choice: Any, sent: Any) -> None:
    tools = (ToolSpec("look", "Looks.", {"type": "object"}),)
    assert body(user("Hi"), tools=tools, extra={"tool_choice": choice})["tool_choice"] == sent


def test_a_tool_with_a_closed_schema_is_strict() -> None:
    closed: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}

    assert body(user("Hi"), tools=(ToolSpec("look", "Looks.", closed),))["tools"][0]["strict"] is True


def test_what_the_api_does_not_take_is_said_before_it_is_sent() -> None:
    with pytest.raises(ConfigError) as caught:
        body(user("Hi"), sampling=Sampling(seed=1, stop=("END",)))
    message = "The responses API takes no seed and no stop. Leave it out, or use the chat API."
    assert str(caught.value) == message


# Replies --------------------------------------------------------------------------------------------------------------


def test_a_plain_answer() -> None:
    usage = Usage(input=11, output=7)
    assert from_responses(responses_body("A cup.")) == ChatResponse(text="A cup.", usage=usage, model="fake-model")


def test_thinking_calls_and_usage() -> None:
    reply = responses_body(
        output=[
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        ],
        usage={
            "input_tokens": 900,
            "output_tokens": 50,
            "input_tokens_details": {"cached_tokens": 512},
            "output_tokens_details": {"reasoning_tokens": 40},
        },
    )
    assert from_responses(reply) == ChatResponse(
        thinking="Hm.",
        tool_calls=(ToolCall("c1", "look", "{}"),),
        finish="tool_calls",
        usage=Usage(input=900, output=50, cached=512, thinking=40),
        model="fake-model",
    )


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("max_output_tokens", "truncated"), ("content_filter", "filtered"), ("something new", "truncated")],
)
def test_incomplete_answers(reason: str, outcome: str) -> None:
    reply = responses_body("A", status="incomplete", incomplete_details={"reason": reason})
    assert from_responses(reply).outcome == outcome


def test_a_refusal() -> None:
    message = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
    response = from_responses(responses_body(output=[message]))
    assert (response.refusal, response.outcome, response.text) == ("I will not.", "refused", "")


def test_log_probabilities() -> None:
    token = {"token": "cup", "logprob": -0.1, "top_logprobs": [{"token": "cup", "logprob": -0.1}]}
    part = {"type": "output_text", "text": "cup", "logprobs": [token]}
    response = from_responses(responses_body(output=[{"type": "message", "content": [part]}]))
    assert response.logprobs == ({"token": "cup", "logprob": -0.1, "top": {"cup": -0.1}},)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"output": []}, "The reply has no output.", id="no output"),
        pytest.param(
            {"status": "failed", "error": {"message": "Out of memory."}},
            "The server gave the answer up (status 'failed'): Out of memory.",
            id="failed",
        ),
        pytest.param({"output": "A cup."}, "The reply's output is str.", id="text for output"),
    ],
)
def test_replies_of_the_wrong_shape(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedReply) as caught:
        from_responses(responses_body(**fields))
    assert caught.value.message == message
