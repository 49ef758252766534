from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.chat import ImagePart, Message, ResponseFormat, Sampling, TextPart, ToolSpec, Usage
from askance.errors import UsageError
from askance.images import CLEAN_POLICY, ORIGINAL_POLICY, Image, Shown
from askance.models import Engine, Price, ScriptedModel, get_model, use_draw
from askance.models.capabilities import RED_SQUARE
from askance.replay import MemoryStore
from tests.scripted import ClosableModel

Engines = Callable[..., Engine]

ASKED = (Message("user", (TextPart("What is odd?"),)),)


def test_a_request_carries_what_the_settings_say() -> None:
    model = get_model("openai:gpt-4o", temperature=0, extra={"top_k": 5})
    tool, form = ToolSpec("look", "Looks.", {}), ResponseFormat("json_object")
    request = model.request(ASKED, response=form, tools=[tool], max_tokens=50, draw=2)
    assert request.canonical() == {
        "model": {"provider": "openai", "model": "gpt-4o"},
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "What is odd?"}]}],
        "tools": [{"name": "look", "description": "Looks.", "parameters": {}}],
        "response": {"kind": "json_object"},
        "sampling": {"temperature": 0, "max_tokens": 50},
        "extra": {"top_k": 5},
        "draw": 2,
    }


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_model_or_an_engine_is_itself(again: Callable[[Any], Any], engine: Engines) -> None:
    run = engine()
    model = get_model("openai:gpt-4o", engine=run)
    assert again([model, run]) == [model, run]
    assert again(model) is model
    assert again(run) is run


def test_the_settings_token_limit_goes_first() -> None:
    assert get_model("openai:gpt-4o", max_tokens=9).request(ASKED, max_tokens=50).sampling == Sampling(max_tokens=9)


def test_a_picture_is_sent_as_model_and_engine_say() -> None:
    image = Image.from_bytes(RED_SQUARE)
    run = Engine(records=MemoryStore(), image_policy=ORIGINAL_POLICY)
    assert get_model("openai:gpt-4o", detail="low").image(image) == ImagePart(Shown(image, CLEAN_POLICY), "low")
    assert get_model("openai:gpt-4o", image_policy="clean", engine=run).image(image) == ImagePart(
        Shown(image, ORIGINAL_POLICY)
    )


Settings: TypeAlias = dict[str, Any]

KEYS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "seed": st.integers(0, 99),
        "max_tokens": st.integers(1, 99),
        "stop": st.lists(st.text(min_size=1), max_size=2),
        "extra": st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=2),
    },
)
VOLATILE = st.fixed_dictionaries(
    {},
    optional={
        "timeout": st.floats(1, 99),
        "key_variable": st.sampled_from(["ONE_KEY", "OTHER_KEY"]),
        "headers": st.dictionaries(st.sampled_from("abc"), st.text(), max_size=2),
        "price": st.just({"input": 1, "output": 2}),
        "token_field": st.sampled_from(["max_tokens", "max_completion_tokens"]),
        "protocol": st.sampled_from(["paper", "prompted"]),
    },
)


@given(KEYS, VOLATILE, KEYS, VOLATILE)
def test_the_key_knows_what_can_change_an_answer_and_nothing_else(
    keyed: Settings, volatile: Settings, other: Settings, changed: Settings
) -> None:
    def request(*tables: Settings) -> tuple[str, Sampling, object]:
        settings = {name: value for table in tables for name, value in table.items()}
        asked = get_model("openai:gpt-4o", **settings).request(ASKED)
        return asked.key, asked.sampling, asked.extra

    one, again, another = request(keyed, volatile), request(keyed, changed), request(other, volatile)
    assert one == again
    assert (one[0] == another[0]) == (one[1:] == another[1:])


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(input=1_000_000, output=500_000), 4.0),
        (Usage(input=1_000_000, output=0, cached=400_000), 0.6 * 2 + 0.4 * 0.5),
        (Usage(input=10), None),
        (Usage(), None),
    ],
    ids=["plain", "cached", "no output", "nothing"],
)
def test_what_a_call_costs(usage: Usage, cost: float | None) -> None:
    model = get_model("openai:gpt-4o", price=Price(input=2, output=4, cached=0.5))
    assert model.cost(usage) == pytest.approx(cost)
    assert get_model("openai:gpt-4o@http://localhost:8000/v1").cost(usage) is None


def test_a_model_at_its_providers_endpoint_costs_the_list_price_unless_one_is_configured() -> None:
    usage = Usage(input=1_000_000, output=0)

    assert get_model("openai:gpt-4o").cost(usage) == pytest.approx(2.5)
    assert get_model("openai:gpt-4o", price={"input": 1, "output": 1}).cost(usage) == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "fast"}, "'fast' is no mode. Modes: 'live', 'auto', 'replay', 'refresh'."),
        (
            {"retry": frozenset({"failed"})},
            (
                "No recorded answer is 'failed', so none can be asked again (`retry`). "
                "Outcomes to ask again: 'invalid', 'refused', 'filtered', 'truncated'."
            ),
        ),
    ],
    ids=["mode", "retry"],
)
def test_engines_that_cannot_be(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        Engine(**settings)  # pyright: ignore[reportArgumentType]
    assert str(error.value) == message


async def test_a_closed_model_may_be_used_again(engine: Engines) -> None:
    script = ClosableModel(["one", "two"])
    model = get_model(script, engine=engine("refresh"))
    await model.aclose()
    for text in ("one", "two"):
        assert (await model.generate(model.request(ASKED))).text == text
        await model.aclose()
    assert script.closed == 2


async def test_a_draw_is_asked_anew_and_kept_apart() -> None:
    scripted = ScriptedModel(lambda request: f"draw {request.draw}", identity="drawn")
    model = get_model(scripted, engine=Engine(records=MemoryStore()))

    async def said() -> str:
        return (await model.generate(model.request([Message("user", (TextPart("again?"),))]))).text

    with use_draw(1):
        one = await said()
    assert [await said(), one, await said()] == ["draw 0", "draw 1", "draw 0"]
    assert [request.draw for request in scripted.requests] == [1, 0]
