"""Specs: `provider:model`, or `provider:model@http://…` for an endpoint of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from askance.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Where the parts of one provider are, each as `module:name`; a module is loaded when its part is needed."""

    backend: str
    """A function of `ModelSettings` that gives a `ChatModel`; it is needed at the first live call."""
    settle: str | None = None
    """A function that fills in `ModelSettings`: for a model on this machine, an identity by its weights."""
    capabilities: str | None = None
    """The `Capabilities` of models that need not be asked what they can do."""


PROVIDERS: dict[str, Provider] = {
    "demo": Provider(backend="askance.demo.model:from_settings", capabilities="askance.demo.model:CAPABILITIES"),
    "hf": Provider(backend="askance.models.local.hf:from_settings", settle="askance.models.local.folder:with_identity"),
    "langchain": Provider(backend="askance.models.langchain.langchain_model:from_settings"),
    "openai": Provider(backend="askance.models.openai.openai_model:from_settings"),
    "vllm": Provider(
        backend="askance.models.vllm.vllm_model:from_settings",
        settle="askance.models.vllm.engine_args:with_identity",
    ),
}
"""By the name in front of the colon of a spec."""

BUILT_IN: dict[str, dict[str, Any]] = {
    "demo": {"spec": "demo:handwritten", "identity": "demo (hand-written)", "price": {"input": 0, "output": 0}},
}
"""Models that need no spec and no table in the settings file, by name."""

_BY_LANGCHAIN = {
    "anthropic": "anthropic",
    "azure": "azure_openai",
    "azure_openai": "azure_openai",
    "bedrock": "bedrock",
    "claude": "anthropic",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "gemini": "google_genai",
    "google": "google_genai",
    "google_genai": "google_genai",
    "google_vertexai": "google_vertexai",
    "groq": "groq",
    "huggingface": "huggingface",
    "mistral": "mistralai",
    "mistralai": "mistralai",
    "ollama": "ollama",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "together": "together",
    "vertex": "google_vertexai",
    "xai": "xai",
}
"""Providers that people name, and what `init_chat_model` of LangChain calls them."""

_ADDRESS = re.compile(
    r"localhost([:/]\S*)?|\d+\.\d+\.\d+\.\d+([:/]\S*)?|\[[0-9a-f:]+\]([:/]\S*)?|[\w-]+(\.[\w-]+)*:\d+(/\S*)?|[\w-]+(\.[\w-]+)+/\S*",
    re.IGNORECASE,
)
"""What reads like a host, with a port or a path, and names no `http://`."""

EXAMPLES = "`openai:gpt-4o`, or `openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1` for a server of your own"


@dataclass(frozen=True, slots=True)
class Spec:
    """A model and where it is reached."""

    provider: str
    model: str
    """As the provider calls it; it may hold `:`, `/` and `@`."""
    endpoint: str | None = None
    """Base address of the endpoint; None is the provider's own."""

    @classmethod
    def parse(cls, text: str) -> Spec:
        """The spec that `text` writes.

        Raises:
            ConfigError: `text` is no spec, its provider is not known, or its address cannot be used.
        """
        head, mark, tail = _split(text)
        provider, colon, model = head.partition(":")
        if not colon:
            raise ConfigError(f"{text!r} is no model spec.", hint=f"Write {EXAMPLES}.")
        if provider not in PROVIDERS:
            if (called := _BY_LANGCHAIN.get(provider.lower())) is not None:
                raise ConfigError(
                    f"{provider!r} in {text!r} is reached through LangChain.",
                    hint=f"Write langchain:{called}:{model or 'MODEL'}, after pip install 'askance[langchain]' and the "
                    "package of LangChain for this provider.",
                )
            raise ConfigError(
                f"{provider!r} in {text!r} is no known provider.",
                hint=f"{nearest(provider, PROVIDERS)}A spec reads {EXAMPLES}.",
            )
        name, at, address = model.rpartition("@")
        if at and not mark and provider in {"langchain", "openai"} and _ADDRESS.fullmatch(address):
            raise ConfigError(
                f"The address {address!r} in {text!r} has no `http://` or `https://`.",
                hint=f"Write {provider}:{name}@http://{address}",
            )
        if not model or model != model.strip():
            raise ConfigError(f"The spec {text!r} names no model.", hint=f"Write {EXAMPLES}.")
        return cls(provider, model, checked_endpoint(tail) if mark else None)

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}" + (f"@{self.endpoint}" if self.endpoint else "")


def _split(text: str) -> tuple[str, str, str]:
    """`text` before and after the last `@http`; a model's name may hold an `@` itself."""
    head, mark, tail = text.rpartition("@http")
    return (head, mark, f"http{tail}") if mark else (tail, "", "")


def checked_endpoint(address: str) -> str:
    """`address` without a slash at its end.

    Raises:
        ConfigError: it is no http address, or it carries a name, a password or a query, which may be secrets.
    """
    try:
        parts = urlsplit(address)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise ConfigError(f"{address!r} is no address.", hint="Write it like http://localhost:8000/v1.") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigError(
            f"The address of {parts.hostname!r} carries a name, a password or a query.",
            hint="An address is recorded with each answer; put secrets into the environment (`key_variable`).",
        )
    if not usable or not address.isprintable() or any(mark.isspace() for mark in address):
        raise ConfigError(f"{address!r} is no address.", hint="Write it like http://localhost:8000/v1.")
    return address.rstrip("/")


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names those of `known` that `name` may stand for."""
    names = sorted(known)
    close = get_close_matches(name, names, n=3)
    if close:
        return f"Nearest: {', '.join(map(repr, close))}. "
    return f"Known: {', '.join(map(repr, names))}. " if names else ""
