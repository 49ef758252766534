from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from PIL import Image as Pillow

from askance.chat import CallMeta, ChatResponse, ImagePart, Message, TextPart, ToolCall, Usage
from askance.errors import MalformedReply, UnknownFinish, UsageError
from askance.images import Image, PreparedImage, Shown
from askance.models.image_data import encode
from askance.models.langchain.messages import from_langchain, from_response, to_langchain, to_response

PICTURE = Image.from_bytes(Shown(Image.from_pil(Pillow.new("RGB", (2, 2)))).prepare().data)
"""Bytes that are sent as they are."""
CALL: dict[str, Any] = {"name": "look", "args": {"x": 1}, "id": "c1", "type": "tool_call"}


def part_of(image: Image) -> ImagePart:
    return ImagePart(Shown(image))


def fake(part: ImagePart) -> PreparedImage:
    return PreparedImage(b"ABC", "image/png", 1, 1, "0" * 64)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(Message("system", (TextPart("Be brief."),)), SystemMessage("Be brief."), id="system"),
        pytest.param(Message("user", (TextPart("Hi"),)), HumanMessage("Hi"), id="user"),
        pytest.param(
            Message("user", (ImagePart(Shown(PICTURE)), TextPart("Hi"))),
            HumanMessage(
                [{"type": "image", "base64": "QUJD", "mime_type": "image/png"}, {"type": "text", "text": "Hi"}]
            ),
            id="picture",
        ),
        pytest.param(
            Message("user", (ImagePart(Shown(PICTURE), detail="low"),)),
            HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low"}}]),
            id="detail",
        ),
        pytest.param(
            Message("assistant", (), (ToolCall("c1", "look", '{"x": 1}'),)),
            AIMessage("", tool_calls=[CALL]),
            id="tool call",
        ),
        pytest.param(
            Message("tool", (TextPart("a cup"),), tool_call_id="c1"),
            ToolMessage("a cup", tool_call_id="c1"),
            id="tool result",
        ),
    ],
)
def test_messages_to_langchain(message: Message, expected: BaseMessage) -> None:
    assert to_langchain(message, fake) == expected


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Message("system", (TextPart("Be brief."),)), id="system"),
        pytest.param(Message("user", (ImagePart(Shown(PICTURE)), TextPart("Hi"))), id="picture"),
        pytest.param(Message("assistant", (TextPart("Hm"),), (ToolCall("c1", "look", '{"x": 1}'),)), id="tool call"),
        pytest.param(Message("assistant", (TextPart("Hm"),), (ToolCall("c1", "look", '{"x"'),)), id="broken tool call"),
        pytest.param(Message("tool", (TextPart("a cup"),), tool_call_id="c1"), id="tool result"),
    ],
)
def test_messages_there_and_back(message: Message) -> None:
    assert from_langchain(to_langchain(message, encode), part_of) == message


def address() -> str:
    return encode(ImagePart(Shown(PICTURE))).data_uri


@pytest.mark.parametrize(
    "block",
    [
        pytest.param({"type": "image", "url": address()}, id="standard block with an address"),
        pytest.param({"type": "image_url", "image_url": address()}, id="OpenAI's block, short"),
        pytest.param({"type": "image_url", "image_url": {"url": address(), "detail": "low"}}, id="OpenAI's block"),
        pytest.param(
            {"type": "image", "source_type": "base64", "data": address().partition(",")[2], "mime_type": "image/png"},
            id="older block",
        ),
    ],
)
def test_other_forms_of_a_picture(block: dict[str, Any]) -> None:
    assert from_langchain(HumanMessage([block]), part_of) == Message("user", (ImagePart(Shown(PICTURE)),))


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param(
            HumanMessage([{"type": "image", "url": "https://example.com/a.png"}]),
            "An image block holds no data. Give its bytes as `base64`; addresses are not followed.",
            id="address elsewhere",
        ),
        pytest.param(
            HumanMessage([{"type": "audio", "base64": "QUJD"}]),
            "A content block of type 'audio' cannot be sent. Send text and images.",
            id="sound",
        ),
        pytest.param(
            ChatMessage(content="Hi", role="critic"),
            "A LangChain message of type 'chat' cannot be sent. "
            "Send messages of the system, of a human, of an AI and of a tool.",
            id="other role",
        ),
    ],
)
def test_what_has_no_counterpart(message: BaseMessage, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_langchain(message, part_of)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("about", "finish"),
    [
        ({}, "stop"),
        ({"finish_reason": "stop"}, "stop"),
        ({"stop_reason": "end_turn"}, "stop"),
        ({"stop_reason": "max_tokens"}, "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": "model_length"}, "length"),
        ({"finish_reason": "stop", "stop_reason": "END"}, "stop"),
        ({"done_reason": "length"}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete"}, "length"),
        ({"finish_reason": "content_filter"}, "content_filter"),
        ({"finish_reason": "SAFETY"}, "content_filter"),
        ({"stopReason": "guardrail_intervened"}, "content_filter"),
        ({"stop_reason": "refusal"}, "refusal"),
        ({"stop_reason": "tool_use"}, "tool_calls"),
    ],
)
def test_finish_reasons_of_all_providers(about: dict[str, Any], finish: str) -> None:
    assert to_response(AIMessage("Hm", response_metadata=about)).finish == finish


def test_a_finish_reason_that_nobody_knows() -> None:
    with pytest.raises(UnknownFinish) as caught:
        to_response(AIMessage("Hm", response_metadata={"finish_reason": "tired"}))
    assert caught.value.message == "It ended for a reason that is not known: 'tired'."


def test_usage_with_its_details() -> None:
    usage: Any = {
        "input_tokens": 900,
        "output_tokens": 50,
        "total_tokens": 950,
        "input_token_details": {"cache_read": 512, "image": 765},
        "output_token_details": {"reasoning": 40},
    }
    response = to_response(AIMessage("Hm", usage_metadata=usage))
    assert response.usage == Usage(input=900, output=50, cached=512, image=765, thinking=40)


TEXT: dict[str, Any] = {"type": "text", "text": "A cup."}
ANTHROPIC: dict[str, Any] = {"model_provider": "anthropic"}


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(
            AIMessage([{"type": "thinking", "thinking": "Hm."}, TEXT], response_metadata=ANTHROPIC),
            id="Anthropic's block",
        ),
        pytest.param(AIMessage([{"type": "reasoning", "reasoning": "Hm."}, TEXT]), id="standard block"),
        pytest.param(AIMessage("A cup.", additional_kwargs={"reasoning_content": "Hm."}), id="beside the text"),
        pytest.param(AIMessage("<think>Hm.</think>A cup."), id="in the text"),
    ],
)
def test_thinking_is_kept_apart(message: AIMessage) -> None:
    response = to_response(message)
    assert (response.thinking, response.text) == ("Hm.", "A cup.")


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(AIMessage("", additional_kwargs={"refusal": "I will not."}), id="beside the text"),
        pytest.param(AIMessage([{"type": "refusal", "refusal": "I will not."}]), id="block"),
    ],
)
def test_a_refusal(message: AIMessage) -> None:
    response = to_response(message)
    assert (response.refusal, response.outcome) == ("I will not.", "refused")


def test_a_model_that_answers_with_something_else() -> None:
    with pytest.raises(MalformedReply) as caught:
        to_response("A cup.")
    assert str(caught.value) == "The model answered with a str, not with an AIMessage."


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(ChatResponse(text="A cup.", model="m", usage=Usage(input=1, output=2)), id="plain"),
        pytest.param(ChatResponse(text="A", thinking="Hm.", finish="length"), id="thinking, cut off"),
        pytest.param(ChatResponse(refusal="I will not.", finish="refusal"), id="refusal"),
        pytest.param(
            ChatResponse(tool_calls=(ToolCall("c", "look", '{"x": 1}'),), finish="tool_calls"), id="tool call"
        ),
        pytest.param(
            ChatResponse(text="A", usage=Usage(input=3, output=2, cached=1, thinking=1)), id="details of the usage"
        ),
    ],
)
def test_responses_there_and_back(response: ChatResponse) -> None:
    assert to_response(from_response(response)) == response


def test_what_was_replayed_is_said() -> None:
    message = from_response(ChatResponse(text="A", meta=CallMeta(replayed=True)))
    assert message.response_metadata["replayed"] is True
