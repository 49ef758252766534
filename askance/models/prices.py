"""List prices of the models that are reached at their provider's own endpoint: those of the package genai-prices.

A file beside this module has what the package lacks: longest answers, batch discounts, and some models, with a date.

A configured price goes before a list price. A model at any other address has no price unless one is configured. A model
without a price is not free: its cost is not known, and sums say so.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from askance.chat import ModelId, Usage, canonical_json
from askance.models.settings import Price

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from askance.models.settings import ModelSettings
    from askance.replay import Record

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
"""The part of a name that says which release of the model it is."""


def price_of(settings: ModelSettings) -> Price | None:
    """The configured price, else the list price; None where neither is known."""
    return settings.price or list_price(settings.id)


@cache
def list_price(model: ModelId) -> Price | None:
    """The list price of `model` today; None where none is known. The first one takes a third of a second."""
    provider, name = _provider_of(model)
    if provider is None or provider not in _providers():
        return None
    provider_prices, own = _providers()[provider], _entry(model) or {}
    listed = _listed(provider, name) or _listed(provider, _DATED.sub("", name))
    if listed is None and "input" not in own:
        return None
    prices = {name: value for name, value in own.items() if name != "most"}
    as_of = provider_prices["as_of"]
    if listed is not None:
        # A higher price of written input counts where the provider writes unasked, not where a request asks for it.
        prices |= {name: value for name, value in listed.items() if name != "written" or provider_prices["writes"]}
        as_of = list_version()
    return Price(**prices, batch=provider_prices["batch"], as_of=as_of)


def record_cost(models: Iterable[ModelSettings], *, cached: bool = True) -> Callable[[Record], float | None]:
    """A function that gives what the call on a record cost, in US dollars; None where that is not known.

    Args:
        models: the prices that they are configured with go before list prices.
        cached: whether input that the provider read from its cache has the price of such input, or that of other input.
    """
    configured = {canonical_json(settings.id.canonical()): settings.price for settings in models}

    def cost(record: Record) -> float | None:
        form: Any = record.request.get("model")
        try:
            price = configured.get(canonical_json(form)) or list_price(ModelId(**form))
            usage = Usage(**record.response.get("usage", {}))
            return None if price is None else price.cost(usage if cached else replace(usage, cached=None))
        except (TypeError, ValueError):
            return None

    return cost


def longest_answer(model: ModelId) -> int | None:
    """Most tokens of an answer of `model` where no limit is set; None where that is not known."""
    entry = _entry(model)
    return None if entry is None else entry["most"]


def list_version() -> str | None:
    """Name and version of the package whose prices were looked up in this process; None where none were."""
    package = sys.modules.get("genai_prices")
    return None if package is None else f"genai-prices {package.__version__}"


def _listed(provider: str, name: str) -> Mapping[str, Any] | None:
    """What genai-prices says of a model, in the names of `Price`; None where it lacks the model."""
    from genai_prices import Usage, calc_price
    from genai_prices.types import TieredPrices

    try:
        prices = calc_price(Usage(), name, provider_id=provider).model_price
    except LookupError:
        return None
    parts = {
        "input": prices.input_mtok,
        "cached": prices.cache_read_mtok,
        "written": prices.cache_write_mtok,
        "output": prices.output_mtok,
    }
    if parts["input"] is None or parts["output"] is None:
        return None
    tiered = [part for part in parts.values() if isinstance(part, TieredPrices)]
    ends = [tier.start for part in tiered for tier in part.tiers]
    base = {name: part.base if isinstance(part, TieredPrices) else part for name, part in parts.items()}
    listed: dict[str, Any] = {name: float(part) for name, part in base.items() if part is not None}
    return listed | ({"up_to": min(ends)} if ends else {})


def _entry(model: ModelId) -> Mapping[str, Any] | None:
    """What the file beside this module says of the model."""
    provider, name = _provider_of(model)
    models = _providers().get(provider or "", {"models": {}})["models"]
    return models.get(name) or models.get(_DATED.sub("", name))


def _provider_of(model: ModelId) -> tuple[str | None, str]:
    """The provider of the model's endpoint, None for one of the user's own, and the model's name there."""
    if model.endpoint is not None:
        return HOSTS.get(urlsplit(model.endpoint).hostname or ""), model.model
    if model.provider == "langchain":
        prefix, _, name = model.model.partition(":")
        return _PREFIXES.get(prefix), name
    return (model.provider if model.provider == "openai" else None), model.model


@cache
def _providers() -> Mapping[str, Mapping[str, Any]]:
    return json.loads(PRICES.read_text(encoding="utf-8"))["providers"]
