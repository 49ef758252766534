"""Requests to a chat model and its responses: plain values, their canonical form, and the key of a request.

Two requests have the same key exactly when nothing that can change the answer differs between them. Time-outs, retries,
API keys, headers and file names are not part of a request, so they cannot change its key. The canonical form leaves out
fields at their default, so a field that is added later, with a default, does not invalidate recorded answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from typing_extensions import override

from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.images import Shown

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
JsonObject: TypeAlias = dict[str, Any]

Outcome = Literal["answered", "invalid", "refused", "filtered", "truncated", "failed", "skipped"]
OUTCOMES: tuple[Outcome, ...] = ("answered", "invalid", "refused", "filtered", "truncated", "failed", "skipped")
"""All outcomes: every call, link and sample ends in one of them."""

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "content_filter", "refusal", "tool_calls"]
FINISHES: tuple[FinishReason, ...] = get_args(FinishReason)
Detail = Literal["auto", "low", "high", "original"]


class RequestPart:  # no abstract class, since `isinstance` with one is slow
    """A request, or a part of one that cannot change; the JSON text of its canonical form is made once."""

    __slots__ = ("_text",)
    _text: str

    def members(self) -> JsonObject:
        """The canonical form, with parts of the request as they are; each kind of part gives its own."""
        return {}

    def canonical(self) -> JsonObject:
        """It as JSON values, with fields at their default left out."""
        return {name: _form_of(value) for name, value in self.members().items()}

    @property
    def canonical_text(self) -> str:
        """`canonical_json` of the canonical form."""
        try:
            return self._text
        except AttributeError:
            members = [f'"{name}":{_text_of(value)}' for name, value in sorted(self.members().items())]
            object.__setattr__(self, "_text", f"{{{','.join(members)}}}")
            return self._text


@dataclass(frozen=True, slots=True)
class TextPart(RequestPart):
    """A piece of text in a message."""

    text: str

    @override
    def members(self) -> JsonObject:
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class ImagePart(RequestPart):
    """A picture in a message, or a view of one.

    Raises:
        UsageError: the view is two pictures.
    """

    shown: Shown
    detail: Detail = "auto"
    """Resolution hint of the provider."""

    def __post_init__(self) -> None:
        self.shown.check_single()

    @override
    def members(self) -> JsonObject:
        form: JsonObject = {"type": "image", **self.shown.canonical()}
        if self.detail != "auto":
            form["detail"] = self.detail
        return form


Part: TypeAlias = TextPart | ImagePart


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model asks for; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str

    def canonical(self) -> JsonObject:
        return {"id": self.id, "name": self.name, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class Message(RequestPart):
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """For role `tool`: the call that this message answers."""

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @override
    def members(self) -> JsonObject:
        form: JsonObject = {"role": self.role, "parts": self.parts}
        if self.tool_calls:
            form["tool_calls"] = [call.canonical() for call in self.tool_calls]
        if self.tool_call_id is not None:
            form["tool_call_id"] = self.tool_call_id
        return form


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model may call; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def canonical(self) -> JsonObject:
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


@dataclass(frozen=True, slots=True)
class ResponseFormat(RequestPart):
    """The form that the endpoint is to enforce on the answer; the schema is copied from the one given."""

    kind: Literal["json_object", "json_schema"]
    name: str | None = None
    schema: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.schema is not None:
            object.__setattr__(self, "schema", _copied(self.schema))

    @override
    def members(self) -> JsonObject:
        form: JsonObject = {"kind": self.kind}
        if self.name is not None:
            form["name"] = self.name
        if self.schema is not None:
            form["schema"] = self.schema
        return form


@dataclass(frozen=True, slots=True)
class ModelId(RequestPart):
    """The identity of a model: its name, not its address."""

    provider: str
    model: str
    endpoint: str | None = None
    """Address that the caller gave; None is the provider's own."""
    name: str | None = None
    """A name from the settings; it replaces provider, model and endpoint, so that answers stay valid when a server
    moves."""
    api: Literal["chat", "responses"] = "chat"

    @override
    def members(self) -> JsonObject:
        form: JsonObject = (
            {"provider": self.provider, "model": self.model} if self.name is None else {"name": self.name}
        )
        if self.name is None and self.endpoint is not None:
            form["endpoint"] = self.endpoint
        if self.api != "chat":
            form["api"] = self.api
        return form

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        return f"{self.provider}:{self.model}" + (f"@{self.endpoint}" if self.endpoint else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling(RequestPart):
    """Sampling parameters; None leaves one to the endpoint."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    """Most tokens of the answer, thinking included where the endpoint counts it so."""
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    """Number of alternatives for each token; 0 for the chosen token alone."""

    @override
    def members(self) -> JsonObject:
        form: JsonObject = {}
        for name in ("temperature", "top_p", "seed", "max_tokens", "logprobs"):
            value = getattr(self, name)
            if value is not None:
                form[name] = value
        if self.stop:
            form["stop"] = list(self.stop)
        return form


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest(RequestPart):
    """A request: exactly what can change the answer."""

    model: ModelId
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    response: ResponseFormat | None = None
    sampling: Sampling = field(default_factory=Sampling)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Provider extras that are put into the body as they are (`reasoning_effort`, `extra_body` fields)."""
    draw: int = 0
    """Number of the draw, which tells repeated draws of one request apart; never sent."""
    given: str | None = None
    """A text that is weighed as the answer: the model writes none, and says how likely each token of it is."""
    default_limit: bool = field(default=False, compare=False)
    """Whether `max_tokens` is the package's default; a recorded answer to the request without it is then used too."""
    _key: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def turns(self) -> tuple[Message, ...]:
        """The messages as they are sent: with pictures in user turns alone, which every API accepts.

        Pictures in tool turns follow the tool turns in a user turn of their own.

        Raises:
            UsageError: a picture is in a turn of the system or of the assistant.
        """
        if all(message.role == "user" or not _pictures_in(message) for message in self.messages):
            return self.messages
        turns, waiting = list[Message](), list[ImagePart]()
        for message in self.messages:
            if waiting and message.role != "tool":
                turns.append(Message("user", tuple(waiting)))
                waiting.clear()
            if message.role != "user" and (pictures := _pictures_in(message)):
                if message.role != "tool":
                    raise UsageError(
                        f"A picture stands in a turn of the {message.role}.", hint="Put it into a turn of the user."
                    )
                waiting += pictures
                message = replace(message, parts=(TextPart(message.text),))  # noqa: PLW2901  # without its pictures
            turns.append(message)
        return (*turns, *([Message("user", tuple(waiting))] if waiting else []))

    @override
    def members(self) -> JsonObject:
        form: JsonObject = {"model": self.model, "messages": self.messages}
        if self.tools:
            form["tools"] = [tool.canonical() for tool in self.tools]
        if self.response is not None:
            form["response"] = self.response
        if self.sampling.canonical_text != "{}":
            form["sampling"] = self.sampling
        if self.extra:
            form["extra"] = dict(self.extra)
        if self.draw:
            form["draw"] = self.draw
        if self.given is not None:
            form["given"] = self.given
        return form

    def weighing(self, text: str) -> ChatRequest:
        """The request that asks how likely `text` is as the answer to this one.

        What says how an answer is written (its form, sampling, the draw) is left out, since it changes nothing.
        """
        return replace(self, given=text, response=None, sampling=Sampling(), draw=0, default_limit=False)

    def without_default_limit(self) -> ChatRequest | None:
        """The same request without `max_tokens`, where that is the package's default; else None."""
        if not self.default_limit:
            return None
        return replace(self, sampling=replace(self.sampling, max_tokens=None), default_limit=False)

    @property
    def key(self) -> str:
        """sha256 of the kind and the canonical JSON, 64 hex digits; computed once."""
        if self._key is None:
            object.__setattr__(self, "_key", _key_of(self.kind, self.canonical_text))
        return self._key or ""

    @property
    def kind(self) -> Literal["chat", "score"]:
        """Kind of its record: `score` where a text is given to be weighed."""
        return "chat" if self.given is None else "score"

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """The pictures of all messages, in order."""
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, ImagePart))


MOST_TOKENS = 100_000_000
"""Tokens that one call can take at most: more than any model reads and writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Numbers of tokens as the endpoint reports them; None where it does not, or reports what no call can take."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    """Of `input`: read from the provider's prompt cache."""
    image: int | None = None
    """Of `input`: spent on pictures."""
    thinking: int | None = None
    """Of `output`: spent on thinking."""
    impossible: str = field(default="", init=False, repr=False, compare=False)
    """The reported counts that are no whole numbers from 0 to `MOST_TOKENS`, in words: `input -5, output 1.5`."""

    def __post_init__(self) -> None:
        reported = {name: getattr(self, name) for name in _COUNTS}
        wrong = {name: count for name, count in reported.items() if count is not None and not _is_count(count)}
        for name in wrong:
            object.__setattr__(self, name, None)
        if wrong:
            words = ", ".join(f"{name} {ascii(count)[:24]}" for name, count in wrong.items())
            object.__setattr__(self, "impossible", words)

    def canonical(self) -> JsonObject:
        form: JsonObject = {}
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None:
                form[name] = value
        return form


_COUNTS = ("input", "output", "cached", "image", "thinking")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_TOKENS


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt at a call."""

    at: float
    """Start, seconds since the epoch."""
    seconds: float
    error: str | None = None
    """Name of the error class and its message; None where it answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMeta:
    """What differs from call to call: never compared, never recorded."""

    replayed: bool = False
    key: str | None = None
    """Key of the record that answered, where that is the request without the default `max_tokens`."""
    stored: bool = False
    """Whether the answer is on record."""
    shared: bool = False
    """Whether the answer is that of an equal request in flight, which was paid for instead."""
    tries: tuple[Try, ...] = ()
    seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The rate-limit headers of the reply, and its `date`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatResponse:
    """The response of a model."""

    text: str = ""
    thinking: str = ""
    """Thinking text, where the endpoint gives it; never part of `text`."""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: FinishReason = "stop"
    refusal: str | None = None
    """The model's own words where it declined."""
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    """Model name as served."""
    logprobs: tuple[Mapping[str, Any], ...] = ()
    """One mapping a token: `token`, `logprob`, and `top` (token → logprob) where asked for."""
    meta: CallMeta = field(default_factory=CallMeta, compare=False)

    @property
    def thought(self) -> bool:
        """Whether there is evidence that the model thought before it answered."""
        return bool(self.thinking) or bool(self.usage.thinking)

    @property
    def outcome(self) -> Outcome:
        """The call's outcome before anyone reads the text: `answered`, `refused`, `filtered` or `truncated`."""
        if self.refusal is not None or self.finish == "refusal":
            return "refused"
        if self.finish == "content_filter":
            return "filtered"
        if self.finish == "length":
            return "truncated"
        return "answered"

    def canonical(self) -> JsonObject:
        """The response as JSON values, without `meta` and without fields at their default."""
        form: JsonObject = {"text": self.text, "finish": self.finish}
        if self.thinking:
            form["thinking"] = self.thinking
        if self.tool_calls:
            form["tool_calls"] = [call.canonical() for call in self.tool_calls]
        if self.refusal is not None:
            form["refusal"] = self.refusal
        usage = self.usage.canonical()
        if usage:
            form["usage"] = usage
        if self.model is not None:
            form["model"] = self.model
        if self.logprobs:
            form["logprobs"] = [dict(token) for token in self.logprobs]
        return form

    @classmethod
    def from_canonical(cls, form: Mapping[str, Any], *, meta: CallMeta | None = None) -> ChatResponse:
        """The response of the canonical form `form`; `meta` comes from the caller.

        Raises:
            ValueError: `form` is no response.
        """
        try:
            response = ChatResponse(
                text=form.get("text", ""),
                thinking=form.get("thinking", ""),
                tool_calls=tuple([ToolCall(**call) for call in form["tool_calls"]]) if "tool_calls" in form else (),
                finish=form.get("finish", "stop"),
                refusal=form.get("refusal"),
                usage=_recorded_usage(form["usage"]) if "usage" in form else _NO_USAGE,
                model=form.get("model"),
                logprobs=tuple(form["logprobs"]) if "logprobs" in form else (),
                meta=meta or CallMeta(),
            )
        except TypeError as error:
            raise ValueError(str(error)) from error
        response._check()
        return response

    def _check(self) -> None:
        """Refuses values that no response can have: a record may come from anybody."""
        texts = (self.text, self.thinking, self.refusal or "", self.model or "")
        for call in self.tool_calls:
            texts += call.id, call.name, call.arguments
        if not (_TEXT.issuperset(map(type, texts)) and self.finish in FINISHES):
            msg = "these values are no response"
            raise ValueError(msg)


def _recorded_usage(form: Any) -> Usage:
    usage = Usage(**form)
    if not _COUNT.issuperset(map(type, form.values())):
        msg = "these counts are no numbers"
        raise TypeError(msg)
    return usage


_NO_USAGE = Usage()
_TEXT: frozenset[type] = frozenset({str})
_COUNT: frozenset[type] = frozenset({int, type(None)})


# One encoder for all: to make one takes longer than to encode most requests.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical_json(form: Any) -> str:
    """JSON text that is equal for equal values: sorted keys, no blanks, whole floats as integers.

    Raises:
        ValueError: a number that JSON cannot hold (NaN, infinity).
        TypeError: a value that is not JSON.
    """
    return _encode(_plain(form))


def key_of(kind: str, form: Any) -> str:
    """sha256, 64 hex digits, of the kind of record and the canonical JSON of what was asked."""
    return _key_of(kind, canonical_json(form))


def _key_of(kind: str, text: str) -> str:
    return sha256(f"{kind}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _form_of(value: Any) -> Any:
    """A member of a part of a request as JSON values."""
    if isinstance(value, RequestPart):
        return value.canonical()
    return [_form_of(each) for each in cast("Sequence[Any]", value)] if isinstance(value, (list, tuple)) else value


def _text_of(value: Any) -> str:
    """A member of a part of a request as canonical JSON text."""
    if isinstance(value, str):
        return _encode(value)
    if isinstance(value, RequestPart):
        return value.canonical_text
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_text_of, cast('Sequence[Any]', value)))}]"
    return canonical_json(value)


def _pictures_in(message: Message) -> list[ImagePart]:
    return [part for part in message.parts if isinstance(part, ImagePart)]


def _copied(form: Any) -> Any:
    """A deep copy of `form`, with plain dicts and lists."""
    if isinstance(form, Mapping):
        return {name: _copied(value) for name, value in cast("Mapping[str, Any]", form).items()}
    if isinstance(form, (list, tuple)):
        return [_copied(item) for item in cast("Sequence[Any]", form)]
    return form


def _plain(form: Any) -> Any:
    """`form` with whole floats as integers (0.0 and 0 are one request) and any mapping or sequence as dict or list."""
    kind: object = type(form)  # pyright: ignore[reportUnknownVariableType]
    # The usual types first: `isinstance` with an abstract class is slow.
    if kind is str:
        return form
    if kind is dict:
        return {key: _plain(value) for key, value in form.items()}
    if kind is list:
        return [_plain(item) for item in form]
    if form is None or isinstance(form, (str, bool, int)):
        return form
    if isinstance(form, float):
        return int(form) if form.is_integer() else form
    if isinstance(form, Mapping):
        return {key: _plain(value) for key, value in cast("Mapping[str, Any]", form).items()}
    if isinstance(form, Sequence):
        return [_plain(item) for item in cast("Sequence[Any]", form)]
    msg = f"{type(form).__name__} is not a JSON value"
    raise TypeError(msg)
