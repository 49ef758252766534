from __future__ import annotations

import pytest

from askance.chat import ChatRequest, ChatResponse, Message, ModelId, ResponseFormat, TextPart, Usage
from askance.models.spending.measured import Mean, measure
from askance.models.spending.spread import Spread
from askance.replay import MemoryStore, Record

MODEL = ModelId("openai", "gpt-4o")


def record(text: str, usage: Usage, *, name: str | None = "objects", model: ModelId = MODEL) -> Record:
    response = None if name is None else ResponseFormat("json_schema", name, {"type": "object"})
    request = ChatRequest(model=model, messages=(Message("user", (TextPart(text),)),), response=response)
    return Record.make("chat", request.canonical(), ChatResponse(text="{}", usage=usage).canonical())


def test_answers_of_one_kind_tell_their_length_and_how_far_estimates_are_off() -> None:
    other = ModelId("openai", "gpt-5")
    store = MemoryStore(
        [
            record("a" * 400, Usage(input=200, output=10)),
            record("b" * 400, Usage(input=220, output=30)),
            record("uncounted", Usage()),
            record("unnamed", Usage(input=1, output=1), name=None),
            record("another's", Usage(input=1, output=1), model=other),
        ]
    )

    (kind, found), *others = measure(store, [MODEL]).items()

    assert (kind, others) == ((MODEL, "objects"), [])
    assert (found.input.count, found.output.total) == (2, 40)
    assert found.factor is not None
    assert 1 < found.factor < 2


@pytest.mark.parametrize(
    ("values", "spread"),
    [([], None), ([100], Spread(50, 100, 200)), ([100] * 4, Spread(90, 100, 110)), ([50, 150], Spread(0, 100, 200))],
    ids=["none", "one", "alike", "apart"],
)
def test_a_mean_and_how_far_off_it_may_be(values: list[float], spread: Spread | None) -> None:
    mean = Mean()
    for value in values:
        mean.add(value)

    assert mean.spread == spread
