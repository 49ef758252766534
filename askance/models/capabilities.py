"""What an endpoint can do, and the probe that finds it out; the output mode of requests follows from it.

The output mode is part of each request. So it is found out once, stays the same for a run, and is kept as an `endpoint`
record that is exported with the answers: a replay knows it without the server.

The probe is a few tiny requests. First contact asks only for what decides the output mode. `check` asks for the rest as
well, and sends pictures, which a model that reads none should not be sent unasked. Whether it calls tools, and in which
unit it gives boxes, is also asked when it is first needed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from askance.chat import (
    ChatRequest,
    ImagePart,
    JsonObject,
    Message,
    ModelId,
    ResponseFormat,
    TextPart,
    ToolSpec,
    Usage,
    key_of,
)
from askance.errors import BadRequest, MalformedReply, ReplayMiss, ServerFault
from askance.images import Image, Shown
from askance.models.box_unit import BOX_UNITS, TARGETS, TARGETS_PICTURE, BoxUnit, UnitVotes, family_unit, read_box
from askance.models.settings import TOKEN_FIELDS

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from askance.chat import ChatResponse
    from askance.models.settings import ModelSettings, OutputMode, TokenField

SchemaSupport = Literal["enforced", "ignored", "refused", "unknown"]

PROBE_VERSION = 1
"""Raised when the probe changes, so that endpoints are probed anew."""

NOTED = "noted"
"""Field of an `endpoint` record: what answers have shown since the probe, for the next run that makes calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an endpoint can do; None is not known."""

    schema: SchemaSupport = "unknown"
    """What the endpoint does with a JSON schema: it holds answers to it, ignores it, or refuses the request."""
    json_object: bool | None = None
    """Whether it can be told to answer with a JSON object."""
    images: bool | None = None
    seed: bool | None = None
    logprobs: bool | None = None
    served_model: str | None = None
    """Name by which the endpoint calls the model."""
    token_field: TokenField | None = None
    """Name under which it takes the token limit."""
    without: tuple[str, ...] = ()
    """Sampling fields that it rejects."""
    thinks: bool | None = None
    """Whether it thinks before it answers."""
    tools: bool | None = None
    """Whether it calls a tool where it has to, and reads what comes back."""
    boxes: BoxUnit | None = None
    """The unit in which it gives boxes."""

    @property
    def output_mode(self) -> OutputMode:
        """The strictest output mode that it can do."""
        if self.schema == "enforced":
            return "json_schema"
        return "json_object" if self.json_object else "prompted"

    def canonical(self) -> JsonObject:
        """The fields that are known, as JSON values."""
        form: JsonObject = {"schema": self.schema}
        for each in fields(self)[1:]:
            value = getattr(self, each.name)
            if value is not None and value != ():
                form[each.name] = list(self.without) if each.name == "without" else value
        return form

    @classmethod
    def from_canonical(cls, form: Mapping[str, Any]) -> Capabilities:
        """The capabilities that `form` was made from; what is not known here, as from a later version, is left out."""
        is_valid = {each.name: _FITS.get(each.name, _is_flag) for each in fields(cls)}
        values: JsonObject = {name: value for name, value in form.items() if name in is_valid and is_valid[name](value)}
        values["without"] = tuple(values.get("without", ()))
        return cls(**values)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "schema": lambda value: value in get_args(SchemaSupport),
    "served_model": lambda value: isinstance(value, str),
    "token_field": lambda value: value in TOKEN_FIELDS,
    "boxes": lambda value: value in BOX_UNITS,
    "without": lambda value: (
        isinstance(value, list) and all(isinstance(name, str) for name in cast("list[Any]", value))
    ),
}
"""By name: whether a value, which anyone may have written into a record, is one that the field can have."""


def endpoint_form(model: ModelId) -> JsonObject:
    """The request of the `endpoint` record of `model`."""
    return {"model": model.canonical(), "probe": PROBE_VERSION}


def endpoint_key(model: ModelId) -> str:
    """The key of the `endpoint` record of `model`."""
    return key_of("endpoint", endpoint_form(model))


_UNKNOWN = {
    "": "What {} can do",
    "tools": "Whether {} calls tools",
    "boxes": "In which unit {} gives boxes",
}
"""By field of `Capabilities`, or for all of them: what a replay misses."""


def not_recorded(model: ModelId, ability: Literal["", "tools", "boxes"] = "") -> ReplayMiss:
    """The error of a replay without the record of an endpoint, or where the record lacks the field `ability`."""
    check = f"Run `askance models check {model}{' --refresh' if ability else ''}` with the endpoint up"
    cassette = "import the cassette that it belongs to"
    return ReplayMiss(
        f"{_UNKNOWN[ability].format(repr(str(model)))} is not on record, and replay does not ask.",
        key=endpoint_key(model),
        hint=f"{check} or {cassette}." if ability else f"{check}, {cassette}, or name the form of asking (`protocol`).",
    )


ODD_WORD = "quokka-17"
"""A word that only the schema names: a model that answers with it was held to the schema."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [ODD_WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}

ENOUGH_TOKENS = 64
"""Token limit of a probe; small, because a server may reject a limit beyond its context."""

RED_SQUARE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsIty/dMYyQi+hcEKLNO+FgEBAQEBAQEBAQEBAQEBAQ"
    "EBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQGBywI6LQEAwyG+sAAAAABJRU5ErkJggg=="
)
"""A PNG of 64 × 64 red pixels: some models take nothing smaller than 28 × 28."""

_ASK_JSON = "Reply with a JSON object that has one field, `word`, and put the name of a colour into it."
_ASK_PICTURE = "Which colour is this picture? Reply with one word."
_ASK_BOX = (
    "Where in this picture is the {colour} rectangle? Reply with the four numbers of its box and nothing else: "
    "[left, top, right, bottom]."
)

NEXT_WORD = "wombat-23"
"""A word that only the result of the tool names."""

SAY = ToolSpec(
    "say",
    f"Says a word. The first word to say is {ODD_WORD}.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"], "additionalProperties": False},
)
"""The tool of the probe. Its schema lets any word pass, so the right one shows that the model has read of the tool."""

FORCED = {"tool_choice": "required"}
"""The extra of a request that has the model call a tool."""

_ASK_TOOL = "Call the tool `say` with the word that it is to say first."
_TOOL_RESULT = f"Said. Now call the tool again; the next word to say is {NEXT_WORD}."


@dataclass
class Probe:
    """Asks an endpoint what it can do.

    Args:
        ask: makes a call whose answer is not recorded.
        settings: the model's; sampling and extras are sent as they will be later, apart from the token limit.
    """

    ask: Callable[[ChatRequest], Awaitable[ChatResponse]]
    settings: ModelSettings
    usage: Usage = field(default_factory=Usage)
    """Tokens that the probe took."""
    served_model: str | None = None
    thinks: bool | None = None
    """Whether an answer showed it thinking; None where none did."""

    async def first_contact(self) -> Capabilities:
        """What fixes the form of asking: the schema and, where it is not enforced, the JSON object."""
        schema = await self._schema()
        json_object = None if schema == "enforced" else await self._json_object()
        return Capabilities(schema=schema, json_object=json_object, served_model=self.served_model, thinks=self.thinks)

    async def everything(self) -> Capabilities:
        """Everything that `Capabilities` holds, by a handful of calls."""
        basics = await self.first_contact()
        images = await self._accepts(self._text_request(_ASK_PICTURE, picture=RED_SQUARE))
        return replace(
            basics,
            images=images,
            seed=await self._accepts(self._text_request(_ASK_JSON, seed=17)),
            logprobs=await self._logprobs(),
            tools=await self.tools(),
            boxes=await self.boxes() if images else "none",
            served_model=self.served_model,
            thinks=self.thinks,
        )

    async def tools(self) -> bool:
        """Whether it calls a tool where it has to, and reads what comes back: by two words that stand nowhere else.

        A call alone shows little: a server can force one from a model whose chat template leaves all tools out.
        """
        asked = self._text_request(_ASK_TOOL, tools=(SAY,))
        try:
            response = await self._ask(asked)
            if _said(response) != ODD_WORD:
                return False
            call = response.tool_calls[0]
            called = Message("assistant", tool_calls=(call,))
            result = Message("tool", (TextPart(_TOOL_RESULT),), tool_call_id=call.id)
            return _said(await self._ask(replace(asked, messages=(*asked.messages, called, result)))) == NEXT_WORD
        except (BadRequest, MalformedReply, ServerFault):
            return False

    async def boxes(self) -> BoxUnit:
        """The unit in which it gives boxes: by its family, else by what it says of rectangles in a picture."""
        if (known := family_unit(self.settings.family, self.settings.id.model)) is not None:
            return known
        votes, colours = UnitVotes(), iter(TARGETS)
        while (unit := votes.unit) is None:
            colour = next(colours)
            try:
                response = await self._ask(self._text_request(_ASK_BOX.format(colour=colour), picture=TARGETS_PICTURE))
            except (BadRequest, MalformedReply):
                return "none"
            votes.add(colour, read_box(response.text))
        return unit

    async def _schema(self) -> SchemaSupport:
        request = self._text_request(_ASK_JSON, response=ResponseFormat("json_schema", "probe", SCHEMA))
        try:
            response = await self._ask(request)
        except (BadRequest, MalformedReply):
            # Some servers refuse every request. Only where a plain one is answered was the schema refused.
            await self._ask(self._text_request(_ASK_JSON))
            return "refused"
        return "enforced" if _is_or_begins(response, json.dumps({"word": ODD_WORD})) else "ignored"

    async def _json_object(self) -> bool:
        try:
            response = await self._ask(self._text_request(_ASK_JSON, response=ResponseFormat("json_object")))
        except (BadRequest, MalformedReply):
            return False
        if response.outcome == "truncated":
            return response.text.lstrip().startswith("{")
        try:
            return isinstance(json.loads(response.text), dict)
        except ValueError:
            return False

    async def _logprobs(self) -> bool:
        try:
            return bool((await self._ask(self._text_request(_ASK_JSON, logprobs=0))).logprobs)
        except (BadRequest, MalformedReply, ServerFault):
            return False

    async def _accepts(self, request: ChatRequest) -> bool:
        try:
            await self._ask(request)
        except (BadRequest, MalformedReply, ServerFault):
            return False
        return True

    async def _ask(self, request: ChatRequest) -> ChatResponse:
        response = await self._send(request)
        written = response.text.strip() or response.tool_calls
        if response.outcome == "truncated" and not written and response.thought:
            # All tokens went into thinking.
            response = await self._send(replace(request, sampling=replace(request.sampling, max_tokens=None)))
        return response

    async def _send(self, request: ChatRequest) -> ChatResponse:
        response = await self.ask(request)
        self.usage = _sum(self.usage, response.usage)
        self.served_model = response.model or self.served_model
        self.thinks = response.thought or self.thinks
        return response

    def _text_request(
        self,
        text: str,
        *,
        picture: bytes | None = None,
        response: ResponseFormat | None = None,
        tools: tuple[ToolSpec, ...] = (),
        **sampling: int,
    ) -> ChatRequest:
        shown = () if picture is None else (ImagePart(Shown(Image.from_bytes(picture, name="probe.png"))),)
        room = replace(self.settings.sampling, max_tokens=ENOUGH_TOKENS, stop=())
        return ChatRequest(
            model=self.settings.id,
            messages=(Message("user", (*shown, TextPart(text))),),
            tools=tools,
            response=response,
            sampling=replace(room, **sampling),
            extra={**self.settings.extra, **(FORCED if tools else {})},
        )


def _said(response: ChatResponse) -> str | None:
    """The word that the tool of the probe was called with; None where it was not called."""
    call = response.tool_calls[0] if response.tool_calls else None
    if call is None or call.name != SAY.name:
        return None
    try:
        arguments: object = json.loads(call.arguments)
    except ValueError:
        return None
    return cast("JsonObject", arguments).get("word") if isinstance(arguments, dict) else None


def _is_or_begins(response: ChatResponse, wanted: str) -> bool:
    """Whether the answer is `wanted`, blanks aside, or was cut off on the way there."""
    text, wanted = "".join(response.text.split()), "".join(wanted.split())
    return text == wanted or (response.outcome == "truncated" and bool(text) and wanted.startswith(text))


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(input=(one.input or 0) + (other.input or 0), output=(one.output or 0) + (other.output or 0))
