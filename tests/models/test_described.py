from __future__ import annotations

import pytest

from askance.chat import Message, TextPart
from askance.errors import CallError, UsageError
from askance.images import ImagePolicy
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model
from askance.models.described import described_model
from askance.replay import MemoryStore

SMALL = ImagePolicy("clean", max_side=512, formats=("png",))
ASKED = (Message("user", (TextPart("What is odd?"),)),)


def models() -> list[Model]:
    scripted = ScriptedModel(["a cup"], identity="cups", capabilities=Capabilities(schema="enforced"))
    return [
        get_model("openai:gpt-4o", temperature=0.5, stop=["\n"], max_tokens=9, extra={"top_k": 5}),
        get_model("openai:qwen@http://localhost:8000/v1", protocol="paper", family="vicuna", detail="low"),
        get_model("openai:gpt-5", api="responses", engine=Engine(image_policy=SMALL)),
        get_model("openai:qwen@http://localhost:8000/v1", identity="qwen-7b"),
        get_model(scripted),
    ]


@pytest.mark.parametrize("model", models(), ids=str)
def test_a_description_makes_the_same_requests(model: Model) -> None:
    again = described_model(model.form(), Engine(mode="replay", records=MemoryStore()))

    assert again.form() == model.form()
    assert again.request(ASKED).key == model.request(ASKED).key


async def test_a_described_model_gives_recorded_answers_and_asks_nobody() -> None:
    records = MemoryStore()
    model = get_model(ScriptedModel(["a cup"], identity="cups"), engine=Engine(records=records))
    said = await model.generate(model.request(ASKED))
    engine = Engine(mode="replay", records=records)

    again = described_model(model.form(), engine)

    assert (await again.generate(again.request(ASKED))).text == said.text
    asking = described_model(model.form(), Engine(records=MemoryStore()))
    with pytest.raises((UsageError, CallError), match=r"known from a run alone"):
        await asking.generate(asking.request(ASKED))


def test_what_describes_no_model_is_refused() -> None:
    with pytest.raises(
        UsageError,
        match=r"^This describes no model: \"\{'id': 3\}\"\. Give what a run's `run\.json` says of a model\.$",
    ):
        described_model({"id": 3}, Engine(records=MemoryStore()))
