"""List prices of the models that are reached at their provider's own endpoint: a dated file beside this module.

A configured price goes before them. A server at an address of one's own has no price unless one is configured, and a
model without a price is not free: its cost is not known, and whoever adds up says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from askance.models.settings import Price

if TYPE_CHECKING:
    from askance.chat import ModelId

PRICES = Path(__file__).with_name("prices.json")

HOSTS: Mapping[str, str] = {
    "api.anthropic.com": "anthropic",
    "api.openai.com": "openai",
    "generativelanguage.googleapis.com": "google",
}
"""Providers by the host of their own endpoint."""

_PREFIXES: Mapping[str, str] = {"anthropic": "anthropic", "google_genai": "google", "openai": "openai"}
"""Providers by the name that LangChain has for them."""

_DATED = re.compile(r"-(latest|\d{8}|\d{4}-\d{2}-\d{2})$")
"""What a name says about the release rather than the model."""


def list_price(model: ModelId) -> Price | None:
    """The list price of `model`; None where none is known."""
    found = _entry(model)
    if found is None:
        return None
    provider, entry = found
    prices = {name: value for name, value in entry.items() if name != "most"}
    return Price(**prices, batch=provider["batch"], as_of=provider["as_of"])


def longest_answer(model: ModelId) -> int | None:
    """Most tokens that `model` writes where no limit is set; None where that is not known."""
    found = _entry(model)
    return None if found is None else found[1]["most"]


def _entry(model: ModelId) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """What the file says of the provider and of the model."""
    provider, name = _provider_of(model)
    listed = _providers().get(provider or "")
    if listed is None:
        return None
    entry = listed["models"].get(name) or listed["models"].get(_DATED.sub("", name))
    return None if entry is None else (listed, entry)


def _provider_of(model: ModelId) -> tuple[str | None, str]:
    """Whose endpoint it is, None for one's own, and the model's name there."""
    if model.endpoint is not None:
        return HOSTS.get(urlsplit(model.endpoint).hostname or ""), model.model
    if model.provider == "langchain":
        prefix, _, name = model.model.partition(":")
        return _PREFIXES.get(prefix), name
    return (model.provider if model.provider == "openai" else None), model.model


@cache
def _providers() -> Mapping[str, Mapping[str, Any]]:
    return json.loads(PRICES.read_text(encoding="utf-8"))["providers"]
