from __future__ import annotations

import json
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pytest

from askance.chat import ChatResponse, Message, ModelId, TextPart, Usage
from askance.models import Capabilities, Config, Engine, ModelSettings, Price, ScriptedModel, call, get_model, prices
from askance.models.factory import configured
from askance.models.prices import PRICES, list_price, longest_answer, record_cost
from askance.replay import MemoryStore, Record
from tests.models.local.questions import asked

GPT_4O = Price(input=2.5, cached=1.25, output=10, batch=0.5, as_of=f"genai-prices {version('genai-prices')}")


@pytest.mark.parametrize("watched", [False, True], ids=["unwatched", "watched"])
async def test_the_price_list_is_loaded_for_those_who_count_costs_alone(
    watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[ModelId] = []

    def priced(settings: ModelSettings) -> None:
        looked.append(settings.id)

    monkeypatch.setattr(call, "price_of", priced)
    run = Engine(records=MemoryStore(), observers=[lambda _: None] if watched else [])
    model = get_model(ScriptedModel(["a cup"], identity="cups", capabilities=Capabilities()), engine=run)

    await model.generate(model.request([Message("user", (TextPart("What is it?"),))]))

    assert bool(looked) is watched


@pytest.mark.parametrize(
    "model",
    [
        ModelId("openai", "gpt-4o"),
        ModelId("openai", "gpt-4o-2024-11-20"),
        ModelId("openai", "gpt-4o", "https://api.openai.com/v1"),
        ModelId("openai", "gpt-4o", name="mine"),
        ModelId("openai", "gpt-4o", api="responses"),
        ModelId("langchain", "openai:gpt-4o"),
    ],
    ids=["plain", "dated", "own address", "named", "responses", "langchain"],
)
def test_a_model_at_its_providers_endpoint_has_the_list_price(model: ModelId) -> None:
    assert list_price(model) == GPT_4O


@pytest.mark.parametrize(
    "model",
    [
        ModelId("openai", "gpt-4o", "http://localhost:8000/v1"),
        ModelId("openai", "gpt-4o", "https://mine.openai.azure.com"),
        ModelId("openai", "gpt-4o-tuned"),
        ModelId("openai", "gemini-2.5-pro"),
        ModelId("scripted", "gpt-4o"),
        ModelId("langchain", "groq:gpt-4o"),
    ],
    ids=["local", "azure", "unlisted", "another's", "an object", "another provider"],
)
def test_what_is_not_listed_has_no_price(model: ModelId) -> None:
    assert (list_price(model), longest_answer(model)) == (None, None)


def test_anothers_protocol_at_its_own_address_is_priced_as_its_own() -> None:
    model = ModelId("openai", "gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai")

    price = list_price(model)

    assert price is not None
    assert (price.input, price.output, price.up_to, longest_answer(model)) == (1.25, 10, 200_000, 65_536)


def test_a_snapshot_with_a_price_of_its_own_goes_before_its_family() -> None:
    price = list_price(ModelId("openai", "gpt-4o-2024-05-13"))

    assert price is not None
    assert (price.input, price.output) == (5, 15)


@pytest.mark.parametrize(
    ("usage", "cost", "most"),
    [
        (Usage(input=1_000_000, output=0), 2.0, 2.5),
        (Usage(input=1_000_000, output=100_000, cached=400_000), 2.28, 2.58),
        (Usage(input=1_000_001, output=0), None, None),
        (Usage(input=10), None, None),
    ],
    ids=["written at most", "read from the cache", "too long", "not counted"],
)
def test_cost_and_the_most_that_it_can_be(usage: Usage, cost: float | None, most: float | None) -> None:
    price = Price(input=2, cached=0.2, written=2.5, output=10, up_to=1_000_000)

    assert (price.cost(usage), price.most(usage)) == (
        pytest.approx(cost) if cost else None,
        pytest.approx(most) if most else None,
    )


def test_what_is_free_costs_nothing_though_nobody_counted() -> None:
    free = Price(input=0, output=0)

    assert (free.cost(Usage()), free.most(Usage())) == (0, 0)
    assert Price(input=0, output=0, cached=1).cost(Usage()) is None


def test_input_that_is_written_unasked_has_a_price_of_its_own() -> None:
    asked = list_price(ModelId("openai", "gpt-5.6-sol"))
    unasked = list_price(ModelId("langchain", "anthropic:claude-sonnet-4-5-20250929"))

    assert asked is not None
    assert unasked is not None
    assert (asked.input, asked.written, asked.up_to) == (4, 5, 272_000)
    assert (unasked.input, unasked.written, unasked.up_to) == (3, None, 200_000)


def lacking(provider: str, name: str) -> None:
    """A package without prices."""


def test_a_model_that_the_package_lacks_has_the_price_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "_listed", lacking)
    list_price.cache_clear()
    try:
        price = list_price(ModelId("openai", "gpt-6.2-astra"))
    finally:
        list_price.cache_clear()

    assert price == Price(input=8, cached=0.4, written=10, output=40, up_to=272_000, batch=0.5, as_of="2026-11-18")


def test_every_entry_of_the_file_has_a_longest_answer_and_a_source() -> None:
    providers = json.loads(PRICES.read_text(encoding="utf-8"))["providers"]

    for provider in providers.values():
        assert date.fromisoformat(provider["as_of"]).year >= 2026
        assert provider["sources"]
        for entry in provider["models"].values():
            assert {"most"} <= entry.keys() <= {"input", "output", "cached", "written", "up_to", "most"}
            assert ("input" in entry) == ("output" in entry)


def test_every_listed_model_has_a_price() -> None:
    providers = json.loads(PRICES.read_text(encoding="utf-8"))["providers"]
    langchain = {"anthropic": "anthropic", "google": "google_genai", "openai": "openai"}

    for provider, there in providers.items():
        for name in there["models"]:
            price = list_price(ModelId("langchain", f"{langchain[provider]}:{name}"))
            assert price is not None, name
            assert 0 < (price.cached or 0.001) < price.input < price.output


SETTINGS = """\
[models.gone]
spec = "hf:models/gone"

[models.priced]
spec = "openai:mine@http://127.0.0.1:1/v1"
identity = "tiny"
price = { input = 1.0, output = 2.0 }
"""


def test_a_record_costs_the_configured_price_though_the_weights_of_another_model_are_gone(own_place: Path) -> None:
    (own_place / "askance.toml").write_text(SETTINGS, encoding="utf-8")
    answer = ChatResponse(text="red", usage=Usage(input=1_000_000, output=1_000_000))

    cost = record_cost(configured(Config.find()))

    assert cost(Record.make("chat", asked("What?").canonical(), answer.canonical())) == 3.0
