"""Structured output over LangChain: a reply is read only where it is an answer, and then strictly.

LangChain's own parsers complete JSON that was cut off, so that half an answer would pass for one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from langchain_core.runnables import Runnable
from pydantic import BaseModel, ValidationError

from askance.errors import CallError, Filtered, InvalidOutput, Refused, Truncated
from askance.models.complaints import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.language_models import LanguageModelInput
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableConfig

    from askance.chat import JsonObject

_FENCED = re.compile(r"\s*```(?:json)?\s(.*)```\s*", re.DOTALL | re.IGNORECASE)


class Structured(Runnable["LanguageModelInput", Any]):
    """A chat model and what reads its replies; the model is all that handlers and tracers see of it.

    Args:
        asked: the model, bound to the form.
        read: the value in a reply; raises a `CallError` where there is none.
        include_raw: give `raw`, `parsed` and `parsing_error` instead of the value or an error.
    """

    def __init__(
        self,
        asked: Runnable[LanguageModelInput, AIMessage],
        read: Callable[[AIMessage], Any],
        *,
        include_raw: bool,
    ) -> None:
        self._asked = asked
        self._read = read
        self._include_raw = include_raw

    def invoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        return self._given(self._asked.invoke(input, config, **kwargs))

    async def ainvoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        return self._given(await self._asked.ainvoke(input, config, **kwargs))

    def _given(self, message: AIMessage) -> Any:
        if not self._include_raw:
            return self._read(message)
        try:
            return {"raw": message, "parsed": self._read(message), "parsing_error": None}
        except CallError as error:
            return {"raw": message, "parsed": None, "parsing_error": error}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
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
        _refuse_unanswered(message)
        found = _json_value(message.text) if self.tool is None else _arguments(message, self.tool)
        if isinstance(self.schema, type) and issubclass(self.schema, BaseModel):
            try:
                # As JSON, for a strict model takes a list for a tuple, and a text for a date, from there alone.
                return self.schema.model_validate_json(json.dumps(found))
            except ValidationError as error:
                _invalid(_words(error), message)
        if self.form.get("type") == "object":
            if not isinstance(found, dict):
                _invalid("it is no JSON object", message)
            missing = [name for name in self.form.get("required", ()) if name not in cast("JsonObject", found)]
            if missing:
                _invalid(f"it lacks {', '.join(map(repr, missing))}", message)
        return cast("Any", found)


def _refuse_unanswered(message: AIMessage) -> None:
    finish = message.response_metadata.get("finish_reason")
    if finish == "refusal":
        words = clean(str(message.additional_kwargs.get("refusal") or message.text))
        raise Refused(f"The model declined to answer: {words}" if words else "The model declined to answer.", raw=words)
    if finish == "content_filter":
        raise Filtered("A content filter of the endpoint stopped the answer.", raw=message.text)
    if finish == "length":
        raise Truncated("The answer was cut off at the token limit.", hint="Raise `max_tokens`.", raw=message.text)


def _json_value(text: str) -> Any:
    """The JSON value that is the whole of `text`, or all that stands in its one code fence."""
    fenced = _FENCED.fullmatch(text)
    try:
        return json.loads(fenced.group(1) if fenced else text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InvalidOutput("The answer is no JSON text.", raw=text) from None


def _arguments(message: AIMessage, tool: str) -> Any:
    found = next((call["args"] for call in message.tool_calls if call["name"] == tool), None)
    if found is None:
        broken = any(call["name"] == tool for call in message.invalid_tool_calls)
        _invalid(f"the arguments of {tool!r} are no JSON object" if broken else f"it does not call {tool!r}", message)
    return found


def _invalid(why: str, message: AIMessage) -> NoReturn:
    raise InvalidOutput(f"The answer is not of the form asked for: {why}.", raw=message.text) from None


def _words(error: ValidationError) -> str:
    """What is wrong, each place by its name."""
    found = cast("list[JsonObject]", error.errors(include_url=False, include_input=False, include_context=False))
    return clean("; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in found))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
