"""The backend for chat models of LangChain, from a ready object or from a `langchain:` spec.

The retries of a LangChain model cannot be seen from here: they make several calls of one try. They are off in a model
made from a spec; make your own with `max_retries=0`. LangChain's cache is off, since the records take its place. Its
callbacks and tracers are off inside a call: they see the node that asks, with pictures as digests.

The identity of a model is made of its settings, where its class is known to hold all of them. Its secrets are blanked
out of its answers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage
from langsmith import run_helpers
from pydantic import BaseModel, SecretBytes, SecretStr

from askance.chat import ModelId, canonical_json
from askance.documents import read_yaml
from askance.errors import AskanceError, AuthError, BadRequest, CallError, ConfigError, MissingExtra, ModelError
from askance.models.image_data import ImageEncoder
from askance.models.langchain.messages import to_langchain, to_response
from askance.models.openai.chat_completions import extras, from_chat, response_format
from askance.models.openai.client import NO_KEY, is_own, resolved, secrets_of
from askance.models.secrets import HiddenValues, Secrets
from askance.models.vendor_errors import ErrorContext, error_details, error_of, one_line, public_address, shows

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

    from askance.chat import ChatRequest, ChatResponse, JsonObject, ResponseFormat, Sampling
    from askance.models.settings import ModelSettings

_TABLE = read_yaml(Path(__file__).with_name("chat_models.yaml"), what="a table")
KNOWN, IRRELEVANT = frozenset(_TABLE["known"]), frozenset(_TABLE["irrelevant"])
"""Classes whose settings are all in their fields; fields that cannot change an answer."""

_NAMES = ("deployment_name", "model_name", "model")
_ADDRESSES = ("azure_endpoint", "openai_api_base", "anthropic_api_url", "base_url", "api_base", "endpoint")

_PRIVATE_FIELDS = (
    "key",
    "token",
    "secret",
    "credential",
    "header",
    "organization",
    "proxy",
    "kwargs_client",
    "client_kwargs",
)
"""Parts of names of fields that say who asks, and how; such fields may be secret and are never read."""


def identity_of(chat_model: BaseChatModel) -> ModelId | None:
    """The identity by the settings of `chat_model`; None for an unknown class, or a setting that is not JSON.

    It is made of the class, the model's name, the address, and each field that was set and can change an answer.
    """
    kind = type(chat_model)
    path = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    name = _first(chat_model, _NAMES)
    if path not in KNOWN or name is None:
        return None
    try:
        settings = canonical_json(_settings(chat_model))
    except (TypeError, ValueError):
        return None
    return ModelId("langchain", f"{path}:{name}" + (f" {settings}" if settings != "{}" else ""), _address(chat_model))


def _settings(chat_model: BaseChatModel) -> dict[str, Any]:
    """The fields that were set and can change an answer, without those that stand elsewhere in the identity."""
    elsewhere = {*IRRELEVANT, *_NAMES, *_ADDRESSES}
    values = {
        field: getattr(chat_model, field) for field in sorted(chat_model.model_fields_set - elsewhere) if _public(field)
    }
    return {field: value for field, value in values.items() if value is not None and value != {}}


def _public(field: str) -> bool:
    # `max_tokens` is no token.
    return "max" in field or not any(piece in field for piece in _PRIVATE_FIELDS)


def _address(chat_model: BaseChatModel) -> str | None:
    """The address of the endpoint; None is the provider's own."""
    # The SDK reads the environment where the field is empty; its client knows where calls go.
    client = getattr(chat_model, "root_async_client", None)
    address = str(getattr(client, "base_url", "")) or _first(chat_model, _ADDRESSES)
    return None if address is None or is_own(address) or "api.anthropic.com" in address else public_address(address)


def _first(chat_model: BaseChatModel, fields: tuple[str, ...]) -> str | None:
    return next(
        (value for field in fields if isinstance(value := getattr(chat_model, field, None), str) and value), None
    )


DEPTH = 4
"""How deep models, dictionaries and lists are searched for secrets."""

_PRIVATE_HEADERS = ("auth", "cookie", "key", "secret", "token")
"""Parts of names of headers that authenticate a request."""

_TEXTS = ("content", "additional_kwargs", "response_metadata", "tool_calls", "invalid_tool_calls")
"""Fields of a message that answers are read from."""


def secrets_in(model: object) -> Secrets:
    """The secrets of a pydantic model: the values of its `SecretStr` fields, and of headers that authenticate it."""
    return Secrets(set(_secret_values(model, depth=DEPTH)))


def hidden_fields(chat_model: BaseChatModel, secrets: Secrets) -> dict[str, HiddenValues]:
    """The fields that hold a secret in clear, in a form that a traceback with locals does not show."""
    fields = {name: cast("dict[str, Any]", value) for name, value in vars(chat_model).items() if type(value) is dict}
    return {name: HiddenValues(value) for name, value in fields.items() if secrets.are_in(repr(value))}


def cleared(message: object, secrets: Secrets) -> object:
    """A model's message with every secret blanked out; anything else as it is."""
    if not secrets or not isinstance(message, AIMessage):
        return message
    return message.model_copy(update={name: secrets.cleared(getattr(message, name)) for name in _TEXTS})


def _secret_values(value: object, *, depth: int, headers: bool = False) -> Iterator[str]:
    if isinstance(value, (SecretStr, SecretBytes)):
        secret = value.get_secret_value()
        yield secret if isinstance(secret, str) else secret.decode(errors="replace")
    elif depth and isinstance(value, BaseModel):
        yield from _secret_values({**vars(value), **(value.__pydantic_private__ or {})}, depth=depth)
    elif depth and isinstance(value, Mapping):
        for name, inner in cast("Mapping[object, object]", value).items():
            if headers and isinstance(inner, str) and any(piece in str(name).lower() for piece in _PRIVATE_HEADERS):
                # The key alone as well as with the word before it, as in `Bearer …`.
                yield from (inner, inner.rpartition(" ")[2])
            yield from _secret_values(inner, depth=depth - 1, headers="header" in str(name).lower())
    elif depth and isinstance(value, (list, tuple)):
        for inner in cast("list[object]", value):
            yield from _secret_values(inner, depth=depth - 1)


FIELDS: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "seed": ("seed",),
    "max_tokens": ("max_tokens", "max_output_tokens", "num_predict", "max_new_tokens"),
}
"""Names under which classes hold a sampling parameter."""

OPENAI_STYLE = frozenset({"BaseChatOpenAI", "ChatFireworks", "ChatGroq", "ChatMistralAI"})
"""Classes, or ancestors of classes, that take `response_format` as OpenAI does."""

OPTIONAL = frozenset({"api_key", "cache", "default_headers", "max_retries"})
"""Arguments of a model's class that not every class knows."""


class LangChainModel:
    """A chat model of LangChain as a backend.

    Sampling parameters are set on a copy of the model, under the class's own names; extras are passed to the call. A
    limit of tokens is left out where the class has none; any other parameter that it does not have is an error.

    Args:
        chat_model: any `BaseChatModel`; the object itself is not changed.
        identity: name under which its answers are filed; None takes the one by its settings, where there is one.
        secrets: blanked out of replies and errors, beside the secrets that the model itself holds.
    """

    def __init__(
        self, chat_model: BaseChatModel, identity: str | None = None, *, secrets: Secrets | None = None
    ) -> None:
        name = type(chat_model).__name__
        self.id = ModelId("langchain", identity, name=identity) if identity else identity_of(chat_model)
        self._secrets = secrets_in(chat_model) | (secrets or Secrets())
        self._chat_model = chat_model.model_copy(update={"cache": False, **hidden_fields(chat_model, self._secrets)})
        self._context = ErrorContext(
            where=self.id.endpoint if self.id is not None and self.id.endpoint else name,
            model=str(getattr(chat_model, "model_name", None) or getattr(chat_model, "model", None) or name),
            key_variable="its variable",
        )
        self._images = ImageEncoder()

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer to `request`.

        Raises:
            CallError: the call ended without an answer.
            BadImage: a picture cannot be used.
            UsageError: a picture stands in a turn of the system or of the assistant.
        """
        encode = await self._images.encoder(request.images)
        messages = [to_langchain(message, encode) for message in request.turns]
        arguments = self._extras(request)
        if request.response is not None:
            arguments |= self._response_format(request.response)
        runnable = self._bound(request, arguments)
        if request.sampling.stop:
            arguments["stop"] = list(request.sampling.stop)
        try:
            return to_response(cleared(await _alone(runnable, messages, arguments), self._secrets))
        except AskanceError:
            raise
        except Exception as cause:  # noqa: BLE001  # any class may raise anything
            outcome = self._outcome_of(cause, request)
        # Raised outside of `except`, the error does not carry the exception that was handled there.
        if isinstance(outcome, CallError):
            raise outcome
        return outcome

    def __repr__(self) -> str:
        return f"LangChainModel({type(self._chat_model).__name__})"

    def _extras(self, request: ChatRequest) -> JsonObject:
        """The request's extras as arguments of the call; OpenAI's clients take fields they do not know as a body's."""
        fields = extras(request)
        choice = {"tool_choice": fields.pop("tool_choice")} if "tool_choice" in fields else {}
        if fields and {kind.__name__ for kind in type(self._chat_model).__mro__} & OPENAI_STYLE:
            fields = {"extra_body": fields}
        return {**fields, **choice}

    def _response_format(self, form: ResponseFormat) -> JsonObject:
        names = {kind.__name__ for kind in type(self._chat_model).__mro__}
        if names & OPENAI_STYLE:
            return {"response_format": response_format(form)}
        if "ChatOllama" in names:
            return {"format": "json" if form.kind == "json_object" else dict(form.schema or {})}
        raise self._unsupported("a response format")

    def _bound(self, request: ChatRequest, arguments: JsonObject) -> Any:
        """The model with the request's sampling and tools."""
        update = self._sampling(request.sampling)
        # Copied only where something changes: a model may count its calls in a field.
        chat_model = self._chat_model.model_copy(update=update) if update else self._chat_model
        if not request.tools:
            return chat_model
        tools = [{"type": "function", "function": tool.canonical()} for tool in request.tools]
        choice = {"tool_choice": _tool_choice(arguments.pop("tool_choice"))} if "tool_choice" in arguments else {}
        try:
            return chat_model.bind_tools(tools, **choice)
        except NotImplementedError:
            raise self._unsupported("tools") from None

    def _sampling(self, sampling: Sampling) -> JsonObject:
        known = type(self._chat_model).model_fields
        update: JsonObject = {}
        for name, fields in FIELDS.items():
            value = getattr(sampling, name)
            field = next((field for field in fields if field in known), None)
            if value is not None and field is not None:
                update[field] = value
            elif value is not None and name != "max_tokens":
                raise self._unsupported(name)
        if sampling.logprobs is not None:
            if not {"logprobs", "top_logprobs"} <= known.keys():
                raise self._unsupported("log-probabilities")
            update |= {"logprobs": True, "top_logprobs": sampling.logprobs or None}
        return update

    def _unsupported(self, what: str) -> BadRequest:
        return BadRequest(f"{type(self._chat_model).__name__} takes no {what.replace('_', ' ')}.")

    def _outcome_of(self, cause: Exception, request: ChatRequest) -> ChatResponse | CallError:
        """The answer that an exception carries, or the error that it stands for."""
        completion = getattr(cause, "completion", None)
        if completion is None:
            return self._error(cause, request)
        try:
            # The SDK's reader of structured answers raises on one that was cut off or filtered.
            return from_chat(self._secrets.cleared(completion.model_dump()))
        except CallError as error:
            error.__context__ = None
            return error

    def _error(self, cause: Exception, request: ChatRequest) -> CallError:
        """The error that `cause` stands for; `cause` is chained unless it holds a secret."""
        details = error_details(cause, clear=self._secrets.cleared)
        if details is not None:
            error = error_of(details, replace(self._context, images=bool(request.images)))
        else:
            words = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
            error = self._failure(one_line(self._secrets.cleared(words)), cause, request)
        if not isinstance(error, AuthError) and not shows(cause, self._secrets, frames=details is None):
            error.__cause__ = cause
        return error

    def _failure(self, words: str, cause: Exception, request: ChatRequest) -> CallError:
        failure, name = f"{self._context.where} failed: {words}.", type(self._chat_model).__name__
        if request.response is not None and isinstance(cause, (NotImplementedError, TypeError)):
            return BadRequest(failure, hint=f"{name} may take no response format: ask in the text form of the paper.")
        return ModelError(failure, hint=f"Call {name} without askance: the same error should come.")


def _tool_choice(choice: Any) -> Any:
    """A choice of tools in OpenAI's form as all classes of LangChain know it."""
    if isinstance(choice, dict):
        return cast("JsonObject", choice)["function"]["name"] if "function" in choice else cast("JsonObject", choice)
    return "any" if choice == "required" else choice


def from_settings(settings: ModelSettings) -> LangChainModel:
    """The model that a `langchain:` spec describes, made by LangChain's `init_chat_model`.

    Raises:
        MissingExtra: `langchain` or the provider's package is not installed.
        AuthError: the key's variable is not set.
        ConfigError: LangChain knows no such provider, or its class does not take the settings.
    """
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingExtra(
            "LangChain's models need the package `langchain`.", hint='Install it: pip install "askance[langchain]".'
        ) from error
    arguments: JsonObject = {"cache": False, "max_retries": 0}
    if settings.headers:
        arguments["default_headers"] = resolved(settings.headers)
    if settings.id.endpoint is not None:
        arguments["base_url"] = settings.id.endpoint
        # LangChain would send the provider's key to any address.
        arguments["api_key"] = NO_KEY
    variable = settings.key_variable
    if variable is not None and not os.environ.get(variable):
        raise AuthError(f"There is no key for {str(settings.id)!r}.", hint=f"Set {variable}.")
    return LangChainModel(_made(init_chat_model, settings, arguments), secrets=secrets_of(settings))


def _made(make: Any, settings: ModelSettings, arguments: JsonObject) -> BaseChatModel:
    """The chat model; optional arguments that its class does not know are left out."""
    try:
        made = cast("BaseChatModel", make(settings.id.model, **{**arguments, **_key(settings)}))
    except ImportError as error:
        # LangChain's words name the package, and end with how to install it.
        words, _, way_out = one_line(str(error)).rstrip(".").partition(". ")
        raise MissingExtra(f"{words}.", hint=f"{way_out or 'Install the package of the provider'}.") from error
    except Exception as cause:  # noqa: BLE001
        unknown = _unknown(cause) & arguments.keys() & OPTIONAL
        if not unknown:
            raise _refusal(cause, settings) from None
        return _made(make, settings, {name: value for name, value in arguments.items() if name not in unknown})
    stray = cast("JsonObject", getattr(made, "model_kwargs", None) or {}).keys() & arguments.keys()
    if stray:
        return _made(make, settings, {name: value for name, value in arguments.items() if name not in stray})
    return made


def _key(settings: ModelSettings) -> JsonObject:
    return {} if settings.key_variable is None else {"api_key": os.environ[settings.key_variable]}


def _unknown(cause: Exception) -> set[str]:
    """Arguments that a class does not know, from pydantic's errors."""
    errors = getattr(cause, "errors", None)
    details = cast("list[JsonObject]", errors() if callable(errors) else [])
    return {str(error["loc"][0]) for error in details if error["type"] == "extra_forbidden" and error["loc"]}


def _refusal(cause: Exception, settings: ModelSettings) -> AskanceError:
    words = secrets_of(settings).cleared(str(cause))
    if "api_key" in words.lower().replace(" ", "_") or "credentials" in words.lower():
        return AuthError(
            f"There is no key for {str(settings.id)!r}.", hint="Set the variable that its provider's package names."
        )
    return ConfigError(
        f"LangChain makes no model of {str(settings.id)!r}: {one_line(words).rstrip('.')}.",
        hint="Write langchain:PROVIDER:MODEL, with a provider that LangChain knows, such as langchain:ollama:llava.",
    )


def _no_tracing() -> AbstractContextManager[None]:
    tracing: Any = run_helpers.tracing_context  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return tracing(enabled=False)


async def _alone(runnable: Any, messages: list[BaseMessage], arguments: JsonObject) -> object:
    """The answer of `runnable` in a context of its own, without callbacks, tracers and runs of the caller."""

    async def call() -> object:
        with _no_tracing():
            return await runnable.ainvoke(messages, config={"callbacks": []}, **arguments)

    return await asyncio.create_task(call(), context=Context())
