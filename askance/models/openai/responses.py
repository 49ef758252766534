"""The responses API: a request as the vendor's body, the vendor's reply as a response. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from askance.chat import ChatResponse, TextPart, ToolCall, Usage
from askance.errors import ConfigError, MalformedReply
from askance.models.openai.chat_completions import extras, format_name, is_strict, logprobs
from askance.models.replies import clean_text, finish_of, incomplete, items, mapping, part_of, split_thinking

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject, Message, Part, ResponseFormat
    from askance.models.image_data import EncodeImage


# Request → body -------------------------------------------------------------------------------------------------------


def to_responses(request: ChatRequest, encode: EncodeImage, *, model: str, without: Collection[str] = ()) -> JsonObject:
    """The body for `/responses`; the provider is asked not to store the exchange.

    Args:
        request: what is asked.
        encode: gives each picture's base64 text.
        model: the model's name at the endpoint.
        without: sampling fields that the model rejects.

    Raises:
        ConfigError: the API has no such parameter, or an extra stands where the request's own field goes.
        UsageError: a picture stands in a turn of the system or of the assistant.
        BadImage: a picture cannot be used.
    """
    body: JsonObject = {
        "model": model,
        "input": [item for message in request.turns for item in _items(message, encode)],
        "store": False,
    }
    if request.tools:
        body["tools"] = [
            {"type": "function", **tool.canonical(), "strict": is_strict(tool.parameters)} for tool in request.tools
        ]
    fields = _extras(request)
    if request.response is not None:
        fields["text"] = {**fields.get("text", {}), "format": _format(request.response)}
    return {**body, **_sampling(request, without), **fields}


def _sampling(request: ChatRequest, without: Collection[str]) -> JsonObject:
    sampling = request.sampling
    missing = [name for name in ("seed", "stop") if getattr(sampling, name) not in {None, ()}]
    if missing:
        raise ConfigError(
            f"The responses API takes no {' and no '.join(missing)}.", hint="Leave it out, or use the chat API."
        )
    fields: JsonObject = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_output_tokens": sampling.max_tokens,
    }
    if sampling.logprobs is not None:
        fields["include"] = ["message.output_text.logprobs"]
        fields["top_logprobs"] = sampling.logprobs or None
    return {name: value for name, value in fields.items() if value is not None and name not in without}


def _extras(request: ChatRequest) -> JsonObject:
    """The extras, with `reasoning_effort` and the choice of a tool in the form that they have here."""
    fields = extras(request)
    choice = fields.get("tool_choice")
    if isinstance(choice, dict) and "function" in choice:
        fields["tool_choice"] = {"type": "function", **choice["function"]}
    effort = fields.pop("reasoning_effort", None)
    if effort is not None:
        fields["reasoning"] = {"effort": effort, **fields.get("reasoning", {})}
    return fields


def _items(message: Message, encode: EncodeImage) -> Iterator[JsonObject]:
    """The items that a turn is: its text and pictures, then its tool calls or the result of one."""
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id or "", "output": message.text}
        return
    if message.role != "user":
        if message.text:
            yield {"role": message.role, "content": message.text}
    else:
        yield {"role": "user", "content": [_content_part(part, encode) for part in message.parts]}
    for call in message.tool_calls:
        yield {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _content_part(part: Part, encode: EncodeImage) -> JsonObject:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "image_url": encode(part).data_uri, "detail": part.detail}


def _format(form: ResponseFormat) -> JsonObject:
    if form.kind == "json_object":
        return {"type": "json_object"}
    schema = form.schema or {}
    return {"type": "json_schema", "name": format_name(form), "schema": schema, "strict": is_strict(schema)}


# Reply → response -----------------------------------------------------------------------------------------------------


def from_responses(reply: object) -> ChatResponse:
    """The response in a reply of the responses API.

    Raises:
        MalformedReply: the reply has another shape, or the server gave the answer up.
    """
    form = mapping(reply, "reply")
    status = form.get("status", "completed")
    if status not in {"completed", "incomplete"}:
        reason = clean_text(part_of(form.get("error"), "message"))
        raise MalformedReply(f"The server gave the answer up (status {status!r})" + (f": {reason}" if reason else "."))
    output = [mapping(item, "output item") for item in items(form.get("output"), "output")]
    if not output and status == "completed":
        raise MalformedReply("The reply has no output.")
    contents = [
        mapping(part, "content part")
        for item in _of(output, "message")
        for part in items(item.get("content"), "content")
    ]
    thinking, text = split_thinking("".join(clean_text(part.get("text")) for part in _of(contents, "output_text")))
    refusal = "".join(clean_text(part.get("refusal")) for part in _of(contents, "refusal")) or None
    calls = tuple(_tool_call(item) for item in _of(output, "function_call"))
    ended = incomplete(str(part_of(form.get("incomplete_details"), "reason"))) if status == "incomplete" else "stop"
    return ChatResponse(
        text=text,
        thinking=_thinking(output) or thinking,
        tool_calls=calls,
        finish=finish_of([ended], refused=refusal is not None, called=bool(calls)),
        refusal=refusal,
        usage=_usage(form.get("usage")),
        model=clean_text(form.get("model")) or None,
        logprobs=tuple(token for part in _of(contents, "output_text") for token in logprobs(part.get("logprobs"))),
    )


def _of(forms: list[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [form for form in forms if form.get("type") == kind]


def _thinking(output: list[Mapping[str, Any]]) -> str:
    """The model's thinking where it is shown, else the summaries of it."""
    pieces = [
        clean_text(part_of(piece, "text"))
        for item in _of(output, "reasoning")
        for piece in items(item.get("content"), "reasoning") or items(item.get("summary"), "reasoning")
    ]
    return "\n\n".join(piece for piece in pieces if piece)


def _tool_call(item: Mapping[str, Any]) -> ToolCall:
    return ToolCall(clean_text(item.get("call_id")), clean_text(item.get("name")), clean_text(item.get("arguments")))


def _usage(usage: object) -> Usage:
    input_details, output_details = part_of(usage, "input_tokens_details"), part_of(usage, "output_tokens_details")
    return Usage(
        input=part_of(usage, "input_tokens"),
        output=part_of(usage, "output_tokens"),
        cached=part_of(input_details, "cached_tokens"),
        image=part_of(input_details, "image_tokens"),
        thinking=part_of(output_details, "reasoning_tokens"),
    )
