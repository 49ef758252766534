"""Spans of OpenTelemetry: of runs, samples, chains, links, tools and calls, each below the one that it is part of.

A span says what was asked of whom, how long it took, what it cost and how it ended. Prompts and replies are in it only
if they are asked for; then pictures stand there by their digests. Whatever is known to be a secret is blanked out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from opentelemetry.trace import SpanKind, Status, StatusCode
from typing_extensions import override

from askance import __version__
from askance.chat import ImagePart
from askance.models.call_scope import Pending, Tracer
from askance.models.prices import price_of
from askance.models.secrets import Secrets, environment_secrets, named_variables
from askance.otel import conventions as names

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

    from askance.chat import ChatRequest, ChatResponse, JsonObject, Message, ModelId
    from askance.models.call_scope import Facts, WorkKind
    from askance.models.settings import ModelSettings

_log = logging.getLogger("askance")

Attribute = str | bool | int | float | Sequence[str]

_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
_NO_ERROR = frozenset({"answered", "skipped"})
"""Outcomes of work in which nothing went wrong."""


class SpanTracer(Tracer):
    """Makes spans of the work and the calls that it hears of.

    Args:
        provider: of the spans; what it does with them is its own affair.
        content: whether prompts and replies are in them.
    """

    def __init__(self, provider: TracerProvider, *, content: bool = False) -> None:
        self._tracer = provider.get_tracer("askance", __version__, schema_url=names.SCHEMA_URL)
        self._content = content
        self._calls: dict[tuple[int, int], Span] = {}
        """The calls under way, by the request and the task that asks it."""
        self._secrets = environment_secrets()
        self._learned: set[str] = set()

    # --- the work around calls ---

    @override
    @contextmanager
    def span(self, kind: WorkKind, name: str, facts: Facts) -> Generator[Callable[..., object]]:
        operation = names.OPERATIONS.get(kind)
        known = {f"{names.OWN}{fact}": value for fact, value in facts.items() if fact != "call_id"}
        if operation is not None:
            known[names.OPERATION] = operation
        if kind == "tool":
            known |= {names.TOOL: name, names.TOOL_TYPE: "function", names.TOOL_CALL: facts.get("call_id")}
        elif operation is not None:
            known[names.AGENT] = name
        with self._tracer.start_as_current_span(
            self._cleared(f"{operation or kind} {name}"),
            attributes=self._attributes(known),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield partial(self._ended, span)
            except BaseException as error:
                self._failed(span, error)
                raise

    def _ended(self, span: Span, *, outcome: str, error: str | None = None) -> None:
        span.set_attribute(names.OUTCOME, outcome)
        if outcome not in _NO_ERROR:
            span.set_attribute(names.ERROR, error or outcome)
            span.set_status(Status(StatusCode.ERROR))

    def _failed(self, span: Span, error: BaseException) -> None:
        """Ends a span in an error; what the error says may quote a prompt or a reply."""
        span.set_attribute(names.ERROR, type(error).__name__)
        span.set_status(Status(StatusCode.ERROR, self._cleared(str(error)) if self._content else None))

    # --- calls ---

    @override
    def asked(self, request: ChatRequest, settings: ModelSettings) -> None:
        with _harmless():
            self._learn(settings)
            self._calls[_place(request)] = self._tracer.start_span(
                self._cleared(f"{names.CHAT} {request.model.model}"),
                kind=SpanKind.CLIENT,
                attributes=self._attributes({**_asked_of(request, settings.id), **self._input(request)}),
            )

    @override
    def received(self, request: ChatRequest, settings: ModelSettings, response: ChatResponse) -> None:
        with _harmless():
            if (span := self._calls.pop(_place(request), None)) is None:
                return
            span.set_attributes(self._attributes({**_answered(response, settings), **self._output(response)}))
            self._add_tries(span, response.meta.tries)
            self._ended(span, outcome=response.outcome)
            span.end()

    @override
    def failed(self, request: ChatRequest, settings: ModelSettings, error: BaseException) -> None:
        with _harmless():
            if (span := self._calls.pop(_place(request), None)) is None:
                return
            if isinstance(error, Pending):
                span.set_attribute(names.OUTCOME, "pending")
            else:
                self._failed(span, error)
            self._add_tries(span, getattr(error, "tries", ()))
            span.end()

    @override
    def answered_by(self, request: ChatRequest, key: str) -> None:
        if (span := self._calls.get(_place(request))) is not None:
            span.set_attribute(names.KEY, key)

    def _add_tries(self, span: Span, tries: Sequence[Any]) -> None:
        if tries:
            span.set_attribute(names.TRIES, len(tries))
        for each in tries:
            if each.error is not None:
                kind = str(each.error).partition(":")[0]
                said = {names.EXCEPTION_WORDS: each.error} if self._content else {}
                span.add_event(
                    names.TRY,
                    self._attributes({names.EXCEPTION: kind, **said}),
                    int((each.at + each.seconds) * 1e9),
                )

    # --- content ---

    def _input(self, request: ChatRequest) -> JsonObject:
        """The prompt, in the form of the conventions: the system's turns apart from the others."""
        if not self._content:
            return {}
        system = [part for turn in request.messages if turn.role == "system" for part in _parts(turn)]
        others = [{"role": turn.role, "parts": _parts(turn)} for turn in request.messages if turn.role != "system"]
        tools = [{"type": "function", **tool.canonical()} for tool in request.tools]
        return {
            names.INSTRUCTIONS: _json(system) if system else None,
            names.INPUT: _json(others),
            names.TOOLS: _json(tools) if tools else None,
        }

    def _output(self, response: ChatResponse) -> JsonObject:
        if not self._content:
            return {}
        parts: list[JsonObject] = []
        if response.thinking:
            parts.append({"type": "reasoning", "content": response.thinking})
        if text := response.text or response.refusal:
            parts.append({"type": "text", "content": text})
        parts += [_tool_call(call.id, call.name, call.arguments) for call in response.tool_calls]
        return {names.OUTPUT: _json([{"role": "assistant", "parts": parts}])}

    # --- secrets ---

    def _learn(self, settings: ModelSettings) -> None:
        """Takes note of the key and the headers of a model, each of which may be a secret."""
        headers = {value for value in settings.headers.values() if not value.startswith("env:")}
        new = (headers | {os.environ.get(name, "") for name in named_variables(settings)}) - self._learned
        if new:
            self._learned |= new
            self._secrets |= Secrets(new)

    def _attributes(self, values: Mapping[str, Any]) -> dict[str, Attribute]:
        """The values that are there, with secrets blanked out."""
        return {
            name: self._cleared(value) if isinstance(value, str) else self._secrets.cleared(value)
            for name, value in values.items()
            if value is not None
        }

    def _cleared(self, text: str) -> str:
        """A text without secrets, and without halves of pairs: one would cost all spans of its batch."""
        cleared = self._secrets.cleared(text)
        return cleared if cleared.isascii() else cleared.encode("utf-8", "replace").decode("utf-8")


@contextmanager
def _harmless() -> Generator[None]:
    """Within it an error is said and goes no further: an answer is worth more than its span."""
    try:
        yield
    except Exception:  # noqa: BLE001  # whatever it is, the call goes on
        _log.exception("A span of a call could not be made.")


def _place(request: ChatRequest) -> tuple[int, int]:
    """Where a call is kept while it is under way: a task asks one after the other."""
    return id(request), id(asyncio.current_task())


def _asked_of(request: ChatRequest, model: ModelId) -> JsonObject:
    sampling, form = request.sampling, request.response
    return {
        names.OPERATION: names.CHAT,
        names.PROVIDER: names.PROVIDER_NAMES.get(model.provider, model.provider),
        names.REQUEST_MODEL: model.model,
        **_server(model.endpoint),
        names.TEMPERATURE: sampling.temperature,
        names.TOP_P: sampling.top_p,
        names.SEED: sampling.seed,
        names.MAX_TOKENS: sampling.max_tokens,
        names.STOP: sampling.stop or None,
        names.REASONING_LEVEL: request.extra.get("reasoning_effort"),
        names.OUTPUT_TYPE: None if form is None else "json",
        names.PROMPT: None if form is None else form.name,
        names.KEY: request.key,
        names.DRAW: request.draw or None,
    }


def _answered(response: ChatResponse, settings: ModelSettings) -> JsonObject:
    usage, meta = response.usage, response.meta
    price = None if meta.replayed or meta.shared else price_of(settings)
    return {
        names.RESPONSE_MODEL: response.model,
        names.FINISH_REASONS: [names.FINISHES.get(response.finish, response.finish)],
        names.INPUT_TOKENS: usage.input,
        names.OUTPUT_TOKENS: usage.output,
        names.CACHED_TOKENS: usage.cached,
        names.IMAGE_TOKENS: usage.image,
        names.REASONING_TOKENS: usage.thinking,
        names.REPLAYED: meta.replayed,
        names.SHARED: meta.shared or None,
        names.COST: None if price is None else price.cost(usage),
    }


def _server(endpoint: str | None) -> JsonObject:
    """Host and port of an endpoint of the user's own."""
    if endpoint is None:
        return {}
    try:
        parts = urlsplit(endpoint)
        return {names.SERVER: parts.hostname, names.PORT: parts.port or _PORTS.get(parts.scheme)}
    except ValueError:
        return {}


def _parts(message: Message) -> list[JsonObject]:
    if message.role == "tool":
        return [{"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}]
    shown = [
        {"type": "file", "modality": "image", "file_id": f"sha256:{part.shown.image.sha256}"}
        if isinstance(part, ImagePart)
        else {"type": "text", "content": part.text}
        for part in message.parts
    ]
    return [*shown, *(_tool_call(call.id, call.name, call.arguments) for call in message.tool_calls)]


def _tool_call(id: str, name: str, arguments: str) -> JsonObject:  # noqa: A002  # the field's name
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        read = arguments
    return {"type": "tool_call", "id": id, "name": name, "arguments": read}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
