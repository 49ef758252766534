"""Specs: `provider:model`, or `provider:model@http://…` for an endpoint of one's own; `?temperature=0` may follow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from askance.documents import read_yaml
from askance.errors import ConfigError
from askance.registry import Registry, nearest
from askance.spec_grammar import Settings, split_settings

BACKENDS = Registry(
    group="askance.backends",
    what="backend",
    built_in={
        "demo": "askance.demo.demo_model:from_settings",
        "hf": "askance.models.local.hf:from_settings",
        "langchain": "askance.models.langchain.langchain_model:from_settings",
        "openai": "askance.models.openai.openai_model:from_settings",
        "vllm": "askance.models.vllm.vllm_model:from_settings",
    },
    error=ConfigError,
)
"""By provider: a function of `ModelSettings` that gives a `ChatModel`; it is loaded at the first live call."""

IDENTITIES: Mapping[str, str] = {
    "hf": "askance.models.local.folder:with_identity",
    "vllm": "askance.models.vllm.engine_args:with_identity",
}
"""By provider of models on this machine: a function that fills in `ModelSettings` with an identity by the weights."""

DECLARED: Mapping[str, str] = {"demo": "askance.demo.demo_model:CAPABILITIES"}
"""By provider: the `Capabilities` of models that need not be asked what they can do."""

BUILT_IN: dict[str, dict[str, Any]] = {
    "demo": {"spec": "demo:handwritten", "identity": "demo (hand-written)", "price": {"input": 0, "output": 0}},
}
"""Models that need no spec and no table in the settings file, by name."""


@cache
def _by_langchain() -> Mapping[str, str]:
    """Providers that people name, and what `init_chat_model` of LangChain calls them."""
    return read_yaml(Path(__file__).parent / "langchain" / "chat_models.yaml", what="a table")["providers"]


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
    settings: Settings = ()
    """How it is asked, as written."""

    @classmethod
    def parse(cls, text: str) -> Spec:
        """The spec that `text` writes.

        Raises:
            ConfigError: `text` is no spec, its provider is not known, or its address cannot be used.
        """
        written, settings = split_settings(text)
        head, mark, tail = _split(written)
        provider, colon, model = head.partition(":")
        if not colon:
            raise ConfigError(f"{written!r} is no model spec.", hint=f"Write {EXAMPLES}.")
        if provider not in BACKENDS:
            if (called := _by_langchain().get(provider.lower())) is not None:
                raise ConfigError(
                    f"{provider!r} in {written!r} is reached through LangChain.",
                    hint=f"Write langchain:{called}:{model or 'MODEL'}, after pip install 'askance[langchain]' and the "
                    "package of LangChain for this provider.",
                )
            raise ConfigError(
                f"{provider!r} in {written!r} is no known provider.",
                hint=f"{nearest(provider, BACKENDS.names())}A spec reads {EXAMPLES}.",
            )
        name, at, address = model.rpartition("@")
        if at and not mark and provider in {"langchain", "openai"} and _ADDRESS.fullmatch(address):
            raise ConfigError(
                f"The address {address!r} in {written!r} has no `http://` or `https://`.",
                hint=f"Write {provider}:{name}@http://{address}",
            )
        if not model or model != model.strip():
            raise ConfigError(f"The spec {written!r} names no model.", hint=f"Write {EXAMPLES}.")
        return cls(provider, model, checked_endpoint(tail) if mark else None, settings)

    def __str__(self) -> str:
        settings = f"?{urlencode(self.settings, quote_via=quote)}" if self.settings else ""
        return f"{self.provider}:{self.model}" + (f"@{self.endpoint}" if self.endpoint else "") + settings


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
