"""Chat completions: a request as the vendor's body, the vendor's reply as a response. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from askance.chat import ChatResponse, ImagePart, TextPart, ToolCall, Usage
from askance.errors import ConfigError, MalformedReply
from askance.models.replies import clean_text, finish_of, first, items, mapping, part_of, split_thinking

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject, Message, Part, ResponseFormat, ToolSpec
    from askance.models.image_data import EncodeImage
    from askance.models.settings import TokenField

OWN_FIELDS = frozenset({"model", "messages", "input", "stream", "n", "tools", "response_format"})
"""Fields that the request fills in itself; an extra of such a name would silently change what is asked."""

LEAST_LOGPROB = -9999.0
"""In place of minus infinity, which JSON cannot hold."""


# Request → body -------------------------------------------------------------------------------------------------------


def to_chat(
    request: ChatRequest,
    encode: EncodeImage,
    *,
    model: str,
    token_field: TokenField = "max_tokens",
    without: Collection[str] = (),
) -> JsonObject:
    """The body for `/chat/completions`.

    Args:
        request: what is asked.
        encode: gives each picture's base64 text.
        model: the model's name at the endpoint.
        token_field: name under which the endpoint takes the token limit.
        without: sampling fields that the model rejects.

    Raises:
        ConfigError: an extra stands where the request's own field goes.
        UsageError: a picture stands in a turn of the system or of the assistant.
        BadImage: a picture cannot be used.
    """
    body: JsonObject = {
        "model": model,
        "messages": [_message(message, encode) for message in request.turns],
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.response is not None:
        body["response_format"] = response_format(request.response)
    more = {name: value for name, value in extras(request).items() if name not in without}
    return {**body, **_sampling(request, token_field, without), **more}


def extras(request: ChatRequest) -> JsonObject:
    """The request's extras as fields of a body, with those inside `extra_body` lifted out.

    Raises:
        ConfigError: an extra stands where the request's own field goes.
    """
    fields = {name: value for name, value in request.extra.items() if name != "extra_body"}
    fields |= request.extra.get("extra_body") or {}
    if taken := sorted(OWN_FIELDS & fields.keys()):
        raise ConfigError(
            f"{', '.join(map(repr, taken))} cannot be set as an extra field.", hint="The request fills it in itself."
        )
    return fields


def format_name(form: ResponseFormat) -> str:
    """The schema's name within what endpoints allow: 64 letters, digits, `_` and `-`."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", form.name or "answer")[:64]


def is_strict(schema: Any) -> bool:
    """Whether the strict mode takes `schema`: every object is closed and requires all its properties."""
    if isinstance(schema, list):
        return all(is_strict(item) for item in cast("list[Any]", schema))
    if not isinstance(schema, Mapping):
        return True
    form = cast("Mapping[str, Any]", schema)
    if form.get("type") == "object" or "properties" in form:
        closed = form.get("additionalProperties") is False
        if not closed or set(form.get("required", ())) != set(form.get("properties", ())):
            return False
    return all(is_strict(value) for value in form.values())


def _sampling(request: ChatRequest, token_field: TokenField, without: Collection[str]) -> JsonObject:
    sampling = request.sampling
    fields: JsonObject = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        token_field: sampling.max_tokens,
        "stop": list(sampling.stop) or None,
    }
    if sampling.logprobs is not None:
        fields["logprobs"] = True
        fields["top_logprobs"] = sampling.logprobs or None
    return {name: value for name, value in fields.items() if value is not None and name not in without}


def _message(message: Message, encode: EncodeImage) -> JsonObject:
    form: JsonObject = {"role": message.role, "content": _content(message, encode)}
    if message.tool_calls:
        form["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
        form["content"] = form["content"] or None
    if message.tool_call_id is not None:
        form["tool_call_id"] = message.tool_call_id
    return form


def _content(message: Message, encode: EncodeImage) -> str | list[JsonObject]:
    """Text alone as a string, which every server takes; with pictures, a list of parts in their order."""
    if not any(isinstance(part, ImagePart) for part in message.parts):
        return message.text
    return [_content_part(part, encode) for part in message.parts]


def _content_part(part: Part, encode: EncodeImage) -> JsonObject:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    picture = {"url": encode(part).data_uri}
    if part.detail != "auto":
        picture["detail"] = part.detail
    return {"type": "image_url", "image_url": picture}


def _tool(tool: ToolSpec) -> JsonObject:
    function: JsonObject = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if is_strict(tool.parameters):  # else vLLM holds a call to the tool's name alone
        function["strict"] = True
    return {"type": "function", "function": function}


def response_format(form: ResponseFormat) -> JsonObject:
    """The form of the answer as chat completions take it."""
    if form.kind == "json_object":
        return {"type": "json_object"}
    schema = form.schema or {}
    return {
        "type": "json_schema",
        "json_schema": {"name": format_name(form), "schema": schema, "strict": is_strict(schema)},
    }


# Reply → response -----------------------------------------------------------------------------------------------------


def from_chat(reply: object) -> ChatResponse:
    """The response in a chat completion.

    Raises:
        MalformedReply: the reply has another shape, or the server gave the answer up.
        UnknownFinish: the answer ended for a reason that is not known.
    """
    form = mapping(reply, "reply")
    choice = mapping(first(form.get("choices"), "choices"), "choice")
    message = mapping(choice.get("message"), "message")
    thinking, text = split_thinking(content_text(message.get("content")))
    calls = tuple(_tool_call(call) for call in items(message.get("tool_calls"), "tool_calls"))
    refusal = clean_text(message.get("refusal")) or None
    return ChatResponse(
        text=text,
        thinking=clean_text(message.get("reasoning_content") or message.get("reasoning")) or thinking,
        tool_calls=calls,
        finish=finish_of([clean_text(choice.get("finish_reason"))], refused=refusal is not None, called=bool(calls)),
        refusal=refusal,
        usage=_usage(form.get("usage")),
        model=clean_text(form.get("model")) or None,
        logprobs=logprobs(choice.get("logprobs")),
    )


def logprobs(value: object) -> tuple[JsonObject, ...]:
    """Log-probabilities a token, from the list that both APIs give or the mapping around it."""
    if isinstance(value, Mapping):
        value = cast("Mapping[str, Any]", value).get("content")
    return tuple(_token(mapping(token, "log-probability")) for token in items(value, "log-probabilities"))


def prompt_logprobs(value: object) -> list[tuple[str, float] | None] | None:
    """Each token of the prompt with its log-probability, as vLLM's server gives them; None where there are none.

    Each is a mapping from the token's number to its `logprob` and `decoded_token`. Where likelier tokens stand beside
    the token itself, it is the first.

    Raises:
        MalformedReply: they have another shape.
    """
    if not isinstance(value, list):
        return None
    return [None if token is None else _prompt_token(token) for token in cast("list[object]", value)]


def content_text(content: object) -> str:
    """The text of a message, whether it is a string, a list of parts, or none."""
    if not isinstance(content, list):
        return clean_text(content)
    parts = [mapping(part, "content part") for part in cast("list[object]", content)]
    return "".join(clean_text(part.get("text")) for part in parts)


def _tool_call(call: object) -> ToolCall:
    form = mapping(call, "tool call")
    function = mapping(form.get("function"), "function")
    arguments = function.get("arguments")
    # Some servers give the arguments as an object where the protocol has its JSON text.
    written = json.dumps(arguments) if isinstance(arguments, dict) else clean_text(arguments)
    return ToolCall(clean_text(form.get("id")), clean_text(function.get("name")), written)


def _usage(usage: object) -> Usage:
    prompt, completion = part_of(usage, "prompt_tokens_details"), part_of(usage, "completion_tokens_details")
    return Usage(
        input=part_of(usage, "prompt_tokens"),
        output=part_of(usage, "completion_tokens"),
        cached=part_of(prompt, "cached_tokens"),
        image=part_of(prompt, "image_tokens"),
        thinking=part_of(completion, "reasoning_tokens"),
    )


def _token(token: Mapping[str, Any]) -> JsonObject:
    form: JsonObject = {"token": clean_text(token.get("token")), "logprob": _logprob(token.get("logprob"))}
    top = [mapping(other, "log-probability") for other in items(token.get("top_logprobs"), "log-probabilities")]
    if top:
        form["top"] = {clean_text(other.get("token")): _logprob(other.get("logprob")) for other in top}
    return form


def _prompt_token(value: object) -> tuple[str, float]:
    token = next(iter(mapping(value, "log-probability").values()), None)
    text, logprob = part_of(token, "decoded_token"), part_of(token, "logprob")
    if not isinstance(text, str) or not isinstance(logprob, (int, float)):
        raise MalformedReply("The reply has a token of the prompt without its text or its log-probability.")
    return clean_text(text), _logprob(logprob)


def _logprob(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and LEAST_LOGPROB < value < 1 else LEAST_LOGPROB
