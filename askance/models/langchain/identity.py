"""What tells a LangChain chat model's answers from another's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from askance.chat import ModelId, canonical_json
from askance.models.openai.client import is_own
from askance.models.vendor_errors import shown

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

KNOWN = frozenset(
    {
        "langchain_anthropic.ChatAnthropic",
        "langchain_deepseek.ChatDeepSeek",
        "langchain_google_genai.ChatGoogleGenerativeAI",
        "langchain_groq.ChatGroq",
        "langchain_mistralai.ChatMistralAI",
        "langchain_ollama.ChatOllama",
        "langchain_openai.AzureChatOpenAI",
        "langchain_openai.ChatOpenAI",
        "langchain_xai.ChatXAI",
    }
)
"""Classes whose settings are all in their fields."""

_NAMES = ("deployment_name", "model_name", "model")
_ADDRESSES = ("azure_endpoint", "openai_api_base", "anthropic_api_url", "base_url", "api_base", "endpoint")

IRRELEVANT = frozenset(
    {
        "async_client",
        "cache",
        "callbacks",
        "client",
        "custom_get_token_ids",
        "default_request_timeout",
        "disable_streaming",
        "http_async_client",
        "http_client",
        "http_socket_options",
        "include_response_headers",
        "keep_alive",
        "max_retries",
        "metadata",
        "name",
        "profile",
        "rate_limiter",
        "request_timeout",
        "root_async_client",
        "root_client",
        "store",
        "stream_chunk_timeout",
        "stream_usage",
        "streaming",
        "tags",
        "tiktoken_model_name",
        "timeout",
        "verbose",
    }
)
"""Fields that cannot change an answer."""

_PRIVATE = ("key", "token", "secret", "credential", "header", "organization", "proxy", "kwargs_client", "client_kwargs")
"""Pieces of names of fields that say who asks and how, not what; they may be secret and are never read."""


def identity_of(chat_model: BaseChatModel) -> ModelId | None:
    """The identity that the settings of `chat_model` tell; None for an unknown class or a setting that is no JSON.

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
    # A limit of tokens is no token.
    return "max" in field or not any(piece in field for piece in _PRIVATE)


def _address(chat_model: BaseChatModel) -> str | None:
    """The address of the endpoint; None is the provider's own."""
    # The SDK reads the environment where the field is empty; its client knows where calls go.
    client = getattr(chat_model, "root_async_client", None)
    address = str(getattr(client, "base_url", "")) or _first(chat_model, _ADDRESSES)
    return None if address is None or is_own(address) or "api.anthropic.com" in address else shown(address)


def _first(chat_model: BaseChatModel, fields: tuple[str, ...]) -> str | None:
    return next(
        (value for field in fields if isinstance(value := getattr(chat_model, field, None), str) and value), None
    )
