"""A model of askance as a chat model of LangChain: recorded, replayed, retried and limited as everywhere.

Structured output is read only where the reply is an answer, and then strictly: LangChain's own parsers complete JSON
that was cut off, so that half an answer would pass for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from askance.chat import ChatRequest, JsonObject, Message, ResponseFormat, TextPart, ToolSpec
from askance.errors import CallError, Filtered, InvalidOutput, Refused, Truncated, UsageError
from askance.models.factory import ModelLike, get_model
from askance.models.langchain.messages import from_langchain, from_response, with_digests
from askance.models.loop import run_sync
from askance.models.model import Model  # noqa: TC001  # pydantic reads it
from askance.models.vendor_errors import one_line

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun, Callbacks
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool

_FENCED = re.compile(r"\s*```(?:json)?\s(.*)```\s*", re.DOTALL | re.IGNORECASE)


class StructuredOutput(Runnable["LanguageModelInput", Any]):
    """A chat model and the reader of its replies; handlers and tracers see the model alone.

    Args:
        asked: the model, bound to the form.
        read: the value in a reply; raises a `CallError` where there is none.
        include_raw: give `raw`, `parsed` and `parsing_error` instead of the value or an error.
    """

    def __init__(
        self,
        model: Runnable[LanguageModelInput, AIMessage],
        read: Callable[[AIMessage], Any],
        *,
        include_raw: bool,
    ) -> None:
        self._model = model
        self._read = read
        self._include_raw = include_raw

    def invoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        return self._output(self._model.invoke(input, config, **kwargs))

    async def ainvoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        return self._output(await self._model.ainvoke(input, config, **kwargs))

    def _output(self, message: AIMessage) -> Any:
        if not self._include_raw:
            return self._read(message)
        try:
            return {"raw": message, "parsed": self._read(message), "parsing_error": None}
        except CallError as error:
            return {"raw": message, "parsed": None, "parsing_error": error}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputReader:
    """Reads the value out of a reply."""

    schema: JsonObject | type
    """A pydantic model, whose instances are the values; else values are dictionaries."""
    form: JsonObject
    """The JSON Schema of `schema`."""
    tool: str | None = None
    """The tool whose arguments the value is; None reads the text."""

    def __call__(self, message: AIMessage) -> Any:
        """The value in `message`.

        Raises:
            Refused: the model declined.
            Filtered: a content filter stopped the answer.
            Truncated: the answer was cut off.
            InvalidOutput: the answer is not of the form.
        """
        refuse_unanswered(message)
        value = _json_value(message.text) if self.tool is None else _arguments(message, self.tool)
        if isinstance(self.schema, type) and issubclass(self.schema, BaseModel):
            try:
                # As JSON: only there does a strict model take a list for a tuple, and a text for a date.
                return self.schema.model_validate_json(json.dumps(value))
            except ValidationError as error:
                _invalid(_words(error), message)
        if self.form.get("type") == "object":
            if not isinstance(value, dict):
                _invalid("it is no JSON object", message)
            missing = [name for name in self.form.get("required", ()) if name not in cast("JsonObject", value)]
            if missing:
                _invalid(f"it lacks {', '.join(map(repr, missing))}", message)
        return cast("Any", value)


def refuse_unanswered(message: AIMessage) -> None:
    """Raises over a reply that is no answer.

    Raises:
        Refused: the model declined.
        Filtered: a content filter stopped the answer.
        Truncated: the answer was cut off.
    """
    finish = message.response_metadata.get("finish_reason")
    if finish == "refusal":
        words = one_line(str(message.additional_kwargs.get("refusal") or message.text))
        raise Refused(f"The model declined to answer: {words}" if words else "The model declined to answer.", raw=words)
    if finish == "content_filter":
        raise Filtered("A content filter of the endpoint stopped the answer.", raw=message.text)
    if finish == "length":
        raise Truncated("The answer was cut off at the token limit.", hint="Raise `max_tokens`.", raw=message.text)


def _json_value(text: str) -> Any:
    """The JSON value that is all of `text`, or of its one code fence."""
    fenced = _FENCED.fullmatch(text)
    try:
        return json.loads(fenced.group(1) if fenced else text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InvalidOutput("The answer is no JSON text.", raw=text) from None


def _arguments(message: AIMessage, tool: str) -> Any:
    arguments = next((call["args"] for call in message.tool_calls if call["name"] == tool), None)
    if arguments is None:
        broken = any(call["name"] == tool for call in message.invalid_tool_calls)
        _invalid(f"the arguments of {tool!r} are no JSON object" if broken else f"it does not call {tool!r}", message)
    return arguments


def _invalid(why: str, message: AIMessage) -> NoReturn:
    raise InvalidOutput(f"The answer is not of the form asked for: {why}.", raw=message.text) from None


def _words(error: ValidationError) -> str:
    """What is wrong, each place by its name."""
    errors = cast("list[JsonObject]", error.errors(include_url=False, include_input=False, include_context=False))
    return one_line("; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in errors))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


SAMPLING = ("temperature", "top_p", "seed", "max_tokens")
"""Sampling parameters that may be bound."""

_turns: ContextVar[dict[int, Message]] = ContextVar("turns")
"""The turns of the call under way, by the `id` of the message that handlers see in place of each."""


def as_langchain(model: ModelLike) -> BaseChatModel:
    """`model` as a LangChain chat model, with tools, structured output and usage; it does not stream.

    A reply that is no answer is an `AIMessage` too: its `response_metadata["finish_reason"]` is `refusal`,
    `content_filter` or `length`, and `additional_kwargs["refusal"]` holds the words in which the model declined.
    Structured output raises `Refused`, `Filtered` or `Truncated` instead.

    Callback handlers and tracers see pictures by their digests.

    Raises:
        ConfigError: no model has this name, or the spec cannot be read.
        UsageError: `model` is of no kind that is known here.
    """
    return AskanceChatModel(model=get_model(model))


class AskanceChatModel(BaseChatModel):
    """What `as_langchain` gives.

    `bind` takes `stop`, `temperature`, `top_p`, `seed`, `max_tokens`, `draw`, `tools`, `tool_choice` and
    `response_format` (the last three in OpenAI's form); anything else is an error, because nothing of a request is
    dropped in silence.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: Model = Field(exclude=True, repr=False)
    # LangChain's cache would answer before the records do.
    cache: Any = False

    @property
    def _llm_type(self) -> str:
        return "askance"

    @property
    def _identifying_params(self) -> JsonObject:
        return {"model": str(self.model.id), "sampling": self.model.settings.sampling.canonical()}

    def generate(
        self,
        messages: list[list[BaseMessage]],
        stop: list[str] | None = None,
        callbacks: Callbacks = None,
        **kwargs: Any,
    ) -> LLMResult:
        """As LangChain's, but that handlers see no picture."""
        with self._veiled(messages) as shown:
            return super().generate(shown, stop, callbacks, **kwargs)

    async def agenerate(
        self,
        messages: list[list[BaseMessage]],
        stop: list[str] | None = None,
        callbacks: Callbacks = None,
        **kwargs: Any,
    ) -> LLMResult:
        """As `generate`."""
        with self._veiled(messages) as shown:
            return await super().agenerate(shown, stop, callbacks, **kwargs)

    @contextmanager
    def _veiled(self, conversations: list[list[BaseMessage]]) -> Generator[list[list[BaseMessage]]]:
        """What handlers see in place of `conversations`; meanwhile `_turn` finds the turns that it stands for."""
        turns: dict[int, Message] = {}
        shown: list[list[BaseMessage]] = []
        for messages in conversations:
            pairs = [with_digests(message, self.model.image) for message in messages]
            turns |= {id(seen): turn for seen, turn in pairs}
            shown.append([seen for seen, _ in pairs])
        token = _turns.set(turns)
        try:
            yield shown
        finally:
            _turns.reset(token)

    def _turn(self, message: BaseMessage) -> Message:
        known = _turns.get({}).get(id(message))
        return known if known is not None else from_langchain(message, self.model.image)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        return run_sync(self._answer(list(map(self._turn, messages)), stop, kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        return await self._answer(list(map(self._turn, messages)), stop, kwargs)

    async def _answer(self, turns: list[Message], stop: Sequence[str] | None, bound: JsonObject) -> ChatResult:
        request = await bound_request(self.model, turns, {**bound, "stop": stop or bound.get("stop")})
        message = from_response(await self.model.generate(request))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(
        self,
        tools: Sequence[JsonObject | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | JsonObject | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools that it may call, in any form that LangChain knows."""
        forms = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=forms, tool_choice=_tool_choice(tool_choice, forms), **kwargs)

    def with_structured_output(
        self,
        schema: JsonObject | type,
        *,
        include_raw: bool = False,
        method: Literal["json_schema", "function_calling"] = "json_schema",
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, JsonObject | BaseModel]:
        """The model with answers of the form `schema`, held to it as far as the endpoint can.

        Args:
            schema: a pydantic model, a `TypedDict` or a JSON Schema.
            include_raw: give `raw`, `parsed` and `parsing_error` instead of the parsed answer or an error.
            method: `json_schema`, or `function_calling` to ask for a tool call.
            kwargs: `strict` changes nothing: an endpoint is held to the form as strictly as the form allows.

        Raises:
            UsageError: any other of `kwargs`. What comes of it raises, for a reply that is no answer or cannot be read,
                `Refused`, `Filtered`, `Truncated` or `InvalidOutput`.
        """
        if unknown := sorted(kwargs.keys() - {"strict"}):
            raise UsageError(
                f"{', '.join(map(repr, unknown))} cannot be asked of structured output.", hint="Leave them out."
            )
        form = convert_to_json_schema(cast("Any", schema))
        if method == "function_calling":
            tool = convert_to_openai_tool(schema)["function"]["name"]
            model = self.bind_tools([schema], tool_choice="any")
            return StructuredOutput(model, OutputReader(schema=schema, form=form, tool=tool), include_raw=include_raw)
        named = {"name": form.get("title", "answer"), "schema": form}
        model = self.bind(response_format={"type": "json_schema", "json_schema": named})
        return StructuredOutput(model, OutputReader(schema=schema, form=form), include_raw=include_raw)


async def bound_request(model: Model, turns: list[Message], bound: JsonObject) -> ChatRequest:
    """The request that asks `model` with what a caller bound to it.

    Args:
        model: is asked.
        turns: the conversation; its last turn asks for the form of the answer where the endpoint takes no schema.
        bound: `stop`, sampling parameters, `draw`, and in OpenAI's form `tools`, `tool_choice` and `response_format`;
            `ls_…`, which is for tracers, is left out, as is None.

    Raises:
        UsageError: anything else is bound, because nothing of a request is dropped in silence.
    """
    bound = {name: value for name, value in bound.items() if not name.startswith("ls_") and value is not None}
    form = bound.pop("response_format", None)
    response = None if form is None else await _response_format(model, _asked_format(form), turns)
    tools = tuple(_tool(tool) for tool in bound.pop("tools", ()))
    request = model.request(turns, response=response, tools=tools, draw=bound.pop("draw", 0))
    changes = {name: bound.pop(name) for name in SAMPLING if name in bound}
    stops = tuple(bound.pop("stop", None) or request.sampling.stop)
    extra = dict(request.extra)
    if "tool_choice" in bound:
        extra["tool_choice"] = bound.pop("tool_choice")
    if bound:
        raise UsageError(
            f"{', '.join(map(repr, sorted(bound)))} cannot be bound to a model of askance.",
            hint="Set what belongs to the model where it is made: `get_model`.",
        )
    return replace(request, sampling=replace(request.sampling, **{**changes, "stop": stops}), extra=extra)


async def _response_format(model: Model, form: ResponseFormat, turns: list[Message]) -> ResponseFormat | None:
    """The form that the endpoint can be held to; where that is no schema, the last turn asks for it in words."""
    output_mode = await model.output_mode()
    if output_mode == "json_schema" or form.kind == "json_object":
        return form if output_mode in {"json_schema", "json_object"} else None
    wish = f"Reply with JSON that satisfies this JSON Schema, and nothing else:\n{json.dumps(form.schema)}"
    turns[-1] = replace(turns[-1], parts=(*turns[-1].parts, TextPart(f"\n\n{wish}")))
    return ResponseFormat("json_object") if output_mode == "json_object" else None


def _asked_format(form: JsonObject) -> ResponseFormat:
    """A response format in OpenAI's form as a value."""
    if form.get("type") == "json_object":
        return ResponseFormat("json_object")
    named = form.get("json_schema")
    if not isinstance(named, dict):
        raise UsageError(
            f"The response format {form!r} is not known.", hint="Give OpenAI's json_schema or json_object."
        )
    about = cast("JsonObject", named)
    return ResponseFormat("json_schema", about.get("name"), about["schema"])


def _tool(form: JsonObject) -> ToolSpec:
    function: JsonObject = form["function"]
    return ToolSpec(function["name"], function.get("description", ""), function.get("parameters") or {"type": "object"})


def _tool_choice(choice: object, tools: Sequence[JsonObject]) -> str | JsonObject | None:
    """The choice in OpenAI's form, from a word, a tool's name, or whether any is required."""
    if isinstance(choice, dict):
        return cast("JsonObject", choice)
    if choice in {None, False, "auto"}:
        return None
    if choice in {"any", "required", True}:
        return "required"
    if choice == "none":
        return "none"
    if choice not in {tool["function"]["name"] for tool in tools}:
        raise UsageError(f"There is no tool {choice!r} to choose.", hint="Choose one of the tools that are bound.")
    return {"type": "function", "function": {"name": choice}}
