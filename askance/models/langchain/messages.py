"""Messages between askance and LangChain, both ways. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages import ToolCall as LangChainCall
from langchain_core.messages.ai import UsageMetadata

from askance.chat import ChatResponse, ImagePart, Message, TextPart, ToolCall, Usage
from askance.errors import MalformedReply, UsageError
from askance.images import Image
from askance.models.openai.chat_completions import logprobs
from askance.models.replies import clean_text, finish_of, incomplete, part_of, split_thinking

if TYPE_CHECKING:
    from collections.abc import Callable

    from askance.chat import JsonObject, Part, Role
    from askance.models.image_data import EncodeImage

_FINISH_FIELDS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
_ROLES: dict[str, Role] = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


# askance → LangChain --------------------------------------------------------------------------------------------------


def to_langchain(message: Message, encode: EncodeImage) -> BaseMessage:
    """`message` with its pictures as standard content blocks."""
    if message.role == "system":
        return SystemMessage(message.text)
    if message.role == "tool":
        return ToolMessage(message.text, tool_call_id=message.tool_call_id or "")
    if message.role == "assistant":
        calls, invalid = _calls(message.tool_calls)
        return AIMessage(message.text, tool_calls=calls, invalid_tool_calls=invalid)
    if all(isinstance(part, TextPart) for part in message.parts):
        return HumanMessage(message.text)
    return HumanMessage([_block(part, encode) for part in message.parts])


def from_response(response: ChatResponse) -> AIMessage:
    """The answer as LangChain has it; thinking and a refusal stand beside its text."""
    calls, invalid = _calls(response.tool_calls)
    beside = {"reasoning_content": response.thinking, "refusal": response.refusal}
    about = {
        "finish_reason": "refusal" if response.outcome == "refused" else response.finish,
        "model_name": response.model,
        "logprobs": {"content": [dict(token) for token in response.logprobs]} if response.logprobs else None,
        "replayed": response.meta.replayed,
    }
    return AIMessage(
        response.text,
        tool_calls=calls,
        invalid_tool_calls=invalid,
        usage_metadata=_usage_metadata(response.usage),
        additional_kwargs={name: value for name, value in beside.items() if value},
        response_metadata={name: value for name, value in about.items() if value is not None},
    )


def _block(part: Part, encode: EncodeImage) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    encoded = encode(part)
    if part.detail != "auto":
        # The standard block has no place for it.
        return {"type": "image_url", "image_url": {"url": encoded.data_uri, "detail": part.detail}}
    return {"type": "image", "base64": encoded.base64, "mime_type": encoded.media_type}


def _calls(calls: Sequence[ToolCall]) -> tuple[list[LangChainCall], list[Any]]:
    """Tool calls with readable arguments, and those without."""
    valid: list[LangChainCall] = []
    invalid: list[JsonObject] = []
    for call in calls:
        arguments = _object(call.arguments)
        if arguments is None:
            error = "The arguments are no JSON object."
            about = {"id": call.id, "name": call.name, "args": call.arguments, "error": error}
            invalid.append({"type": "invalid_tool_call", **about})
        else:
            valid.append(LangChainCall(name=call.name, args=arguments, id=call.id, type="tool_call"))
    return valid, invalid


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _usage_metadata(usage: Usage) -> UsageMetadata | None:
    if usage.input is None or usage.output is None:
        return None
    metadata = UsageMetadata(
        input_tokens=usage.input, output_tokens=usage.output, total_tokens=usage.input + usage.output
    )
    if usage.cached is not None:
        metadata["input_token_details"] = {"cache_read": usage.cached}
    if usage.thinking is not None:
        metadata["output_token_details"] = {"reasoning": usage.thinking}
    return metadata


# LangChain → askance --------------------------------------------------------------------------------------------------


def from_langchain(message: BaseMessage, image: Callable[[Image], ImagePart]) -> Message:
    """`message` with its pictures as `image` makes them.

    Raises:
        UsageError: a role or a block that has no counterpart.
        BadImage: a picture cannot be used.
    """
    role = _ROLES.get(message.type)
    if role is None:
        raise UsageError(
            f"A LangChain message of type {message.type!r} cannot be sent.",
            hint="Send messages of the system, of a human, of an AI and of a tool.",
        )
    content: Any = message.content
    blocks: list[Any] = [content] if isinstance(content, str) else content
    parts = [part for block in blocks if (part := _message_part(block, image)) is not None]
    calls: tuple[ToolCall, ...] = _tool_calls(message) if isinstance(message, AIMessage) else ()
    answered = message.tool_call_id if isinstance(message, ToolMessage) else None
    return Message(role, tuple(parts), calls, answered)


def with_digests(message: BaseMessage, image: Callable[[Image], ImagePart]) -> tuple[BaseMessage, Message]:
    """`message` with the digest of each picture in its place, and what `from_langchain` makes of `message`.

    Raises:
        UsageError: a role or a block that has no counterpart.
        BadImage: a picture cannot be used.
    """
    turn = from_langchain(message, image)
    digests = [part.shown.image.sha256 for part in turn.parts if isinstance(part, ImagePart)]
    if not digests:
        return message, turn
    left = iter(digests)
    content: Any = [
        {"type": "text", "text": f"[image sha256:{next(left)}]"} if _is_picture(block) else block
        for block in message.content
    ]
    return message.model_copy(update={"content": content}), turn


def to_response(message: object) -> ChatResponse:
    """The response in a message of a LangChain chat model.

    Raises:
        MalformedReply: it is no message of a model, or the server gave the answer up.
        UnknownFinish: the answer ended for a reason that is not known.
    """
    if not isinstance(message, AIMessage):
        raise MalformedReply(f"The model answered with a {type(message).__name__}, not with an AIMessage.")
    about = cast("Mapping[str, Any]", message.response_metadata)
    tagged, text = split_thinking(clean_text(str(message.text)))
    calls = _tool_calls(message)
    refusal = _refusal(message)
    return ChatResponse(
        text=text,
        thinking=_thinking(message) or tagged,
        tool_calls=calls,
        finish=finish_of(_finish_words(about), refused=refusal is not None, called=bool(calls)),
        refusal=refusal,
        usage=_usage(message.usage_metadata),
        model=_word(about.get("model_name")) or _word(about.get("model")) or None,
        logprobs=logprobs(about.get("logprobs")),
    )


def _message_part(block: Any, image: Callable[[Image], ImagePart]) -> Part | None:
    """A block of a message as a part; thinking and tool calls, which stand elsewhere too, are none."""
    if isinstance(block, str):
        return TextPart(block)
    kind = block.get("type")
    if kind in {"text", "input_text", "output_text"}:
        return TextPart(block["text"])
    if kind == "image":
        return image(_image(block))
    if kind == "image_url":
        address = block["image_url"]
        return image(_load(address if isinstance(address, str) else address["url"]))
    if kind in {"reasoning", "thinking", "tool_call", "tool_use", "function_call", "invalid_tool_call", "refusal"}:
        return None
    raise UsageError(f"A content block of type {kind!r} cannot be sent.", hint="Send text and images.")


def _is_picture(block: Any) -> bool:
    return isinstance(block, dict) and cast("JsonObject", block).get("type") in {"image", "image_url"}


def _image(block: Mapping[str, Any]) -> Image:
    data: str | None = block.get("base64") or (block.get("data") if block.get("source_type") == "base64" else None)
    if data is not None:
        return Image.from_data_uri(f"data:{block.get('mime_type') or 'image/png'};base64,{data}")
    return _load(block.get("url"))


def _load(address: object) -> Image:
    if isinstance(address, str) and address.startswith("data:"):
        return Image.from_data_uri(address)
    raise UsageError("An image block holds no data.", hint="Give its bytes as `base64`; addresses are not followed.")


def _tool_calls(message: AIMessage) -> tuple[ToolCall, ...]:
    valid = [
        ToolCall(call["id"] or "", call["name"], json.dumps(call["args"], ensure_ascii=False))
        for call in message.tool_calls
    ]
    invalid = [
        ToolCall(call["id"] or "", call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls
    ]
    return (*valid, *invalid)


def _finish_words(about: Mapping[str, Any]) -> list[str]:
    """The finish reasons in a reply; each provider has a field of its own for it."""
    words = [_word(about.get(field)) for field in _FINISH_FIELDS]
    if about.get("status") == "incomplete":
        words.append(incomplete(_word(part_of(about.get("incomplete_details"), "reason"))))
    return words


def _thinking(message: AIMessage) -> str:
    blocks = cast("list[dict[str, Any]]", message.content_blocks)
    return "\n\n".join(
        text for block in blocks if block["type"] == "reasoning" and (text := _word(block.get("reasoning")))
    )


def _refusal(message: AIMessage) -> str | None:
    refusal = _word(message.additional_kwargs.get("refusal"))
    content: Any = message.content
    if not isinstance(content, str):
        refusal += "".join(_word(part_of(block, "refusal")) for block in content)
    return clean_text(refusal) or None


def _usage(usage: object) -> Usage:
    input_details, output_details = part_of(usage, "input_token_details"), part_of(usage, "output_token_details")
    return Usage(
        input=part_of(usage, "input_tokens"),
        output=part_of(usage, "output_tokens"),
        cached=part_of(input_details, "cache_read"),
        image=part_of(input_details, "image"),
        thinking=part_of(output_details, "reasoning"),
    )


def _word(value: object) -> str:
    """Text, or the name of an enumeration's member; empty for anything else."""
    return value if isinstance(value, str) else str(getattr(value, "name", ""))
