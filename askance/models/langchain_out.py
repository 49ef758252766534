"""A model of askance as a chat model of LangChain: recorded, replayed, retried and limited as everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.output_parsers import BaseOutputParser, JsonOutputParser, PydanticOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field

from askance.chat import ChatRequest, JsonObject, Message, ResponseFormat, Sampling, TextPart, ToolSpec
from askance.errors import UsageError
from askance.models.langchain_messages import from_langchain, from_response
from askance.models.loop import run_sync
from askance.models.model import Model  # noqa: TC001  # pydantic reads it

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

SAMPLING = ("temperature", "top_p", "seed", "max_tokens")
"""Sampling parameters that may be bound."""


def as_langchain(model: Model) -> BaseChatModel:
    """`model` as a LangChain chat model, with tools, structured output and usage; it does not stream."""
    return _AskanceChatModel(model=model)


class _AskanceChatModel(BaseChatModel):
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

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        return run_sync(self._agenerate(messages, stop, None, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        request = await self._request(messages, stop, kwargs)
        message = from_response(await self.model.generate(request))
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _request(
        self, messages: Sequence[BaseMessage], stop: Sequence[str] | None, bound: JsonObject
    ) -> ChatRequest:
        bound = {name: value for name, value in bound.items() if not name.startswith("ls_") and value is not None}
        turns = [from_langchain(message, self.model.image) for message in messages]
        form = bound.pop("response_format", None)
        response = None if form is None else await self._response_format(_asked_format(form), turns)
        tools = tuple(_tool(tool) for tool in bound.pop("tools", ()))
        request = self.model.request(turns, response=response, tools=tools, draw=bound.pop("draw", 0))
        changes = {name: bound.pop(name) for name in SAMPLING if name in bound}
        stops = tuple(stop or bound.pop("stop", None) or request.sampling.stop)
        extra = dict(request.extra)
        if "tool_choice" in bound:
            extra["tool_choice"] = bound.pop("tool_choice")
        if bound:
            raise UsageError(f"{', '.join(map(repr, sorted(bound)))} cannot be bound to a model of askance.")
        return replace(request, sampling=_changed(request.sampling, {**changes, "stop": stops}), extra=extra)

    async def _response_format(self, form: ResponseFormat, turns: list[Message]) -> ResponseFormat | None:
        """The form as the endpoint can be held to it; below a schema, the last turn asks for it in words."""
        rung = await self.model.rung()
        if rung == "json_schema" or form.kind == "json_object":
            return form if rung in {"json_schema", "json_object"} else None
        wish = f"Reply with JSON that satisfies this JSON Schema, and nothing else:\n{json.dumps(form.schema)}"
        turns[-1] = replace(turns[-1], parts=(*turns[-1].parts, TextPart(f"\n\n{wish}")))
        return ResponseFormat("json_object") if rung == "json_object" else None

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
            kwargs: as LangChain's.
        """
        if method == "function_calling":
            return super().with_structured_output(schema, include_raw=include_raw, **kwargs)
        form = convert_to_json_schema(cast("Any", schema))
        named = {"name": form.get("title", "answer"), "schema": form}
        asked = self.bind(response_format={"type": "json_schema", "json_schema": named})
        parser = _parser(schema)
        if not include_raw:
            return asked | parser
        parse = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=asked) | parse.with_fallbacks([failed], exception_key="parsing_error")


def _parser(schema: JsonObject | type) -> BaseOutputParser[Any]:
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return PydanticOutputParser(pydantic_object=schema)
    return JsonOutputParser()


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
        raise UsageError(f"There is no tool {choice!r} to choose.")
    return {"type": "function", "function": {"name": choice}}


def _changed(sampling: Sampling, changes: JsonObject) -> Sampling:
    return replace(sampling, **changes)
