from __future__ import annotations

import json
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
    Role,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
    Usage,
)
from askance.errors import ConfigError, MalformedReply, UsageError
from askance.images import Image, PreparedImage, Shown
from askance.models.openai.chat_completions import from_chat, is_strict, to_chat
from tests.servers import chat_body, tool_call

MODEL = ModelId("openai", "some-model")
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def encode(part: ImagePart) -> PreparedImage:
    return PreparedImage(b"ABC", "image/png", 1, 1, "0" * 64)


def body(*messages: Message, **fields: Any) -> dict[str, Any]:
    without = fields.pop("without", ())
    token_field = fields.pop("token_field", "max_tokens")
    request = ChatRequest(model=MODEL, messages=messages, **fields)
    return to_chat(request, encode, model="some-model", token_field=token_field, without=without)


def picture() -> Image:
    return Image.from_pil(Pillow.new("RGB", (2, 2)))


def user(text: str) -> Message:
    return Message("user", (TextPart(text),))


def test_text_alone_is_sent_as_a_string() -> None:
    assert body(Message("system", (TextPart("Be brief."),)), user("Hi")) == {
        "model": "some-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    }


def test_parts_with_a_picture_keep_their_order_and_detail() -> None:
    message = Message("user", (ImagePart(Shown(picture()), detail="low"), TextPart("What?")))
    assert body(message)["messages"][0]["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low"}},
        {"type": "text", "text": "What?"},
    ]


def test_the_default_detail_is_left_to_the_endpoint() -> None:
    sent = body(Message("user", (ImagePart(Shown(picture())),)))["messages"][0]["content"]
    assert sent == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]


def test_tools_their_calls_and_their_results() -> None:
    called = Message("assistant", (), (ToolCall("c1", "look", '{"x": 1}'),))
    answered = Message("tool", (TextPart("a cup"),), tool_call_id="c1")
    sent = body(user("Hi"), called, answered, tools=(ToolSpec("look", "Looks.", {"type": "object"}),))
    function = {"name": "look", "arguments": '{"x": 1}'}
    assert sent["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "content": "a cup", "tool_call_id": "c1"},
    ]
    described = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    assert sent["tools"] == [{"type": "function", "function": described}]


def test_a_tool_with_a_closed_schema_is_strict() -> None:
    sent = body(user("Hi"), tools=(ToolSpec("look", "Looks.", CLOSED), ToolSpec("wait", "Waits.", {"type": "object"})))

    assert [tool["function"].get("strict") for tool in sent["tools"]] == [True, None]


def test_pictures_of_tools_follow_behind_all_of_them_as_a_turn_of_the_user() -> None:
    called = Message("assistant", (), (ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")))
    shown = [
        Message("tool", (TextPart("a cup"), ImagePart(Shown(picture()))), tool_call_id="c1"),
        Message("tool", (ImagePart(Shown(picture())),), tool_call_id="c2"),
    ]
    seen = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}

    assert body(user("Hi"), called, *shown, user("So?"))["messages"][2:] == [
        {"role": "tool", "content": "a cup", "tool_call_id": "c1"},
        {"role": "tool", "content": "", "tool_call_id": "c2"},
        {"role": "user", "content": [seen, seen]},
        {"role": "user", "content": "So?"},
    ]
    assert body(user("Hi"), called, *shown)["messages"][-1] == {"role": "user", "content": [seen, seen]}


@pytest.mark.parametrize("role", ["system", "assistant"])
def test_a_picture_in_another_turn_is_refused(role: Role) -> None:
    with pytest.raises(UsageError, match=rf"^A picture stands in a turn of the {role}\."):
        body(user("Hi"), Message(role, (ImagePart(Shown(picture())),)))


@pytest.mark.parametrize(
    ("form", "sent"),
    [
        pytest.param(ResponseFormat("json_object"), {"type": "json_object"}, id="object"),
        pytest.param(
            ResponseFormat("json_schema", "my list!", CLOSED),
            {"type": "json_schema", "json_schema": {"name": "my_list_", "schema": CLOSED, "strict": True}},
            id="schema",
        ),
        pytest.param(
            ResponseFormat("json_schema", None, {"type": "object"}),
            {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": False}},
            id="open schema",
        ),
    ],
)
def test_response_formats(form: ResponseFormat, sent: dict[str, Any]) -> None:
    assert body(user("Hi"), response=form)["response_format"] == sent


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        pytest.param(CLOSED, True, id="closed"),
        pytest.param({**CLOSED, "required": []}, False, id="optional property"),
        pytest.param({**CLOSED, "properties": {"a": {"type": "object"}}}, False, id="open object inside"),
        pytest.param({"anyOf": [CLOSED, EMPTY]}, False, id="open object in a union"),
        pytest.param({"type": "array", "items": CLOSED}, True, id="array of closed ones"),
    ],
)
def test_the_strict_mode_is_asked_for_where_the_schema_allows_it(schema: dict[str, Any], strict: bool) -> None:
    assert is_strict(schema) is strict


def test_sampling_goes_out_under_the_names_that_the_endpoint_takes() -> None:
    sampling = Sampling(temperature=0, top_p=0.5, seed=7, max_tokens=100, stop=("END",), logprobs=3)
    sent = body(user("Hi"), sampling=sampling, token_field="max_completion_tokens", without={"temperature"})
    del sent["messages"], sent["model"]
    assert sent == {
        "top_p": 0.5,
        "seed": 7,
        "max_completion_tokens": 100,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 3,
    }


def test_the_chosen_tokens_alone_need_no_number_of_alternatives() -> None:
    sent = body(user("Hi"), sampling=Sampling(logprobs=0))
    assert (sent["logprobs"], "top_logprobs" in sent) == (True, False)


def test_extras_enter_the_body_as_they_are() -> None:
    sent = body(user("Hi"), extra={"reasoning_effort": "low", "extra_body": {"min_p": 0.1}})
    assert (sent["reasoning_effort"], sent["min_p"], "extra_body" in sent) == ("low", 0.1, False)


def test_an_extra_cannot_stand_for_the_request_itself() -> None:
    with pytest.raises(ConfigError) as caught:
        body(user("Hi"), extra={"stream": True})
    assert str(caught.value) == "'stream' cannot be set as an extra field. The request fills it in itself."


def test_the_draw_is_never_sent() -> None:
    assert body(user("Hi"), draw=3) == body(user("Hi"))


# Replies --------------------------------------------------------------------------------------------------------------


def test_a_plain_answer() -> None:
    usage = Usage(input=11, output=7)
    assert from_chat(chat_body("A cup.")) == ChatResponse(text="A cup.", usage=usage, model="fake-model")


def test_usage_with_its_details() -> None:
    reply = chat_body("A cup.") | {
        "usage": {
            "prompt_tokens": 900,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 512, "image_tokens": 765},
            "completion_tokens_details": {"reasoning_tokens": 40},
        }
    }
    assert from_chat(reply).usage == Usage(input=900, output=50, cached=512, image=765, thinking=40)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "prompt_tokens_details": None}, "much"])
def test_an_endpoint_that_counts_nothing(usage: Any) -> None:
    assert from_chat(chat_body() | {"usage": usage}).usage == Usage()


@pytest.mark.parametrize(
    ("fields", "finish", "outcome"),
    [
        pytest.param({"finish": "stop"}, "stop", "answered", id="stop"),
        pytest.param({"finish": "length"}, "length", "truncated", id="length"),
        pytest.param({"finish": "content_filter", "text": None}, "content_filter", "filtered", id="filter"),
        pytest.param({"refusal": "I will not."}, "refusal", "refused", id="refusal"),
        pytest.param({"finish": "eos_token"}, "stop", "answered", id="another word for stop"),
        pytest.param({"finish": None}, "stop", "answered", id="no word"),
        pytest.param({"finish": "model_length"}, "length", "truncated", id="another word for length"),
        pytest.param({"tool_calls": [tool_call("look", {})]}, "tool_calls", "answered", id="tool call called stop"),
        pytest.param({"tool_calls": None, "finish": "stop"}, "stop", "answered", id="no list of calls"),
    ],
)
def test_finish_reasons(fields: dict[str, Any], finish: str, outcome: str) -> None:
    response = from_chat(chat_body(**fields))
    assert (response.finish, response.outcome) == (finish, outcome)


def test_the_words_of_a_refusal() -> None:
    assert from_chat(chat_body(None, refusal="I will not.")).refusal == "I will not."


def test_tool_calls_with_arguments_as_text_or_as_an_object() -> None:
    loose = {"id": None, "function": {"name": "look", "arguments": {"x": 1}}}
    response = from_chat(chat_body(None, tool_calls=[tool_call("look", {"x": 1}), loose]))
    assert response.tool_calls == (ToolCall("call-1", "look", '{"x": 1}'), ToolCall("", "look", '{"x": 1}'))


@pytest.mark.parametrize(
    ("message", "thinking", "text"),
    [
        pytest.param({"text": "A cup.", "reasoning_content": "Hm."}, "Hm.", "A cup.", id="reasoning_content"),
        pytest.param({"text": "A cup.", "reasoning": "Hm."}, "Hm.", "A cup.", id="reasoning"),
        pytest.param({"text": "<think>\nHm.\n</think>\n\nA cup."}, "Hm.", "A cup.", id="block"),
        pytest.param({"text": "Hm.\n</think>\n\nA cup."}, "Hm.", "A cup.", id="opened by the template"),
        pytest.param({"text": "<think>Hm, so"}, "Hm, so", "", id="never closed"),
        pytest.param({"text": "<thinking>Hm.</thinking>A cup."}, "Hm.", "A cup.", id="other name"),
        pytest.param({"text": "The tag <think> opens."}, "", "The tag <think> opens.", id="in mid-text"),
        pytest.param({"text": 'It says "</think>".'}, "", 'It says "</think>".', id="quoted"),
    ],
)
def test_thinking_is_kept_apart(message: dict[str, Any], thinking: str, text: str) -> None:
    response = from_chat(chat_body(**message))
    assert (response.thinking, response.text) == (thinking, text)


def test_thinking_that_used_up_the_limit_is_truncated_not_answered() -> None:
    response = from_chat(chat_body("<think>Hm, so", finish="length"))
    assert (response.text, response.outcome) == ("", "truncated")


def test_log_probabilities() -> None:
    top = [{"token": "cup", "logprob": -0.1}, {"token": "mug", "logprob": float("-inf")}]
    content = [{"token": "cup", "logprob": -0.1, "top_logprobs": top}, {"token": ".", "logprob": -0.5}]
    reply = chat_body("cup.")
    reply["choices"][0]["logprobs"] = {"content": content}
    assert from_chat(reply).logprobs == (
        {"token": "cup", "logprob": -0.1, "top": {"cup": -0.1, "mug": -9999.0}},
        {"token": ".", "logprob": -0.5},
    )


def test_text_in_parts_and_text_that_nothing_can_store() -> None:
    parts = [{"type": "text", "text": "A "}, {"type": "text", "text": "cup \ud83d."}]
    assert from_chat(chat_body() | {"choices": [{"message": {"content": parts}}]}).text == "A cup \ufffd."


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param([], "The reply's reply is list.", id="list"),
        pytest.param({}, "The reply has no choices.", id="empty"),
        pytest.param({"choices": []}, "The reply has no choices.", id="no choices"),
        pytest.param({"choices": {}}, "The reply's choices is dict.", id="choices of another type"),
        pytest.param({"choices": ["cup"]}, "The reply's choice is str.", id="text for a choice"),
        pytest.param({"choices": [{"message": {"content": 7}}]}, "The reply's text is int.", id="number for text"),
        pytest.param(
            chat_body(finish="insufficient_system_resource"),
            "The server gave the answer up (finish reason 'insufficient_system_resource').",
            id="out of resources",
        ),
        pytest.param(chat_body(finish="abort"), "The server gave the answer up (finish reason 'abort').", id="aborted"),
    ],
)
def test_replies_of_the_wrong_shape(reply: Any, message: str) -> None:
    with pytest.raises(MalformedReply) as caught:
        from_chat(json.loads(json.dumps(reply)))
    assert caught.value.message == message
