from __future__ import annotations

from dataclasses import replace

import pytest

from askance.chat import ChatRequest, ChatResponse
from askance.models import Counters, Model, ScriptedModel, get_model
from askance.models.counters import counts_form, counts_text
from askance.models.run_counters import RunCounters
from tests.models.local.questions import asked

VISION = Counters(answers=4, batches=1, encodes=1, pictures=4, prefix_reused=90, prompt=140, written=20)
SERVER = Counters(answers=2, prompt=50, prefix_reused=10, unknown=frozenset({"batches", "found", "halved", "written"}))

WORDS = {
    "all": (
        VISION,
        "4 answers in 1 batch, 1 encode for 4 pictures asked about, 90 of 140 prompt tokens reused, 20 tokens written",
    ),
    "halved": (
        Counters(answers=1, batches=1, halved=2, unknown=frozenset({"encodes", "prompt", "written"})),
        "1 answer in 1 batch, 2 batches halved for want of memory",
    ),
    "a server": (SERVER, "2 answers, 0 encodes for 0 pictures asked about, 10 of 50 prompt tokens reused"),
    "tokens alone": (Counters.from_canonical({"prompt": 5, "prefix_reused": 3}), "3 of 5 prompt tokens reused"),
}


@pytest.mark.parametrize(("counters", "text"), WORDS.values(), ids=WORDS)
def test_counts_in_words(counters: Counters, text: str) -> None:
    assert str(counters) == text


def test_counts_as_a_record_and_back() -> None:
    form = SERVER.canonical()

    assert form == {
        "answers": 2, "encodes": 0, "pictures": 0, "prefix_computed": 0, "prefix_reused": 10, "prompt": 50
    }  # fmt: skip
    assert Counters.from_canonical(form) == SERVER


def test_counts_are_added_and_taken_off() -> None:
    total = VISION + SERVER

    assert (total.answers, total.prompt, total.unknown) == (6, 190, SERVER.unknown)
    assert total - SERVER == replace(VISION, unknown=SERVER.unknown)
    assert (bool(VISION), bool(Counters())) == (True, False)


class Counted:
    """A model that counts."""

    id = "counted"

    def __init__(self) -> None:
        self.counters = Counters()

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self.counters.answers += 1
        return ChatResponse(text="red")

    async def counted(self) -> Counters:
        return replace(self.counters)


class Broken(Counted):
    """A model that cannot tell."""

    async def counted(self) -> Counters:
        msg = "The server is gone."
        raise OSError(msg)


async def ask(model: Model, draw: int) -> None:
    await model.generate(asked("What?", draw=draw))


async def test_a_run_counts_what_is_computed_while_it_lasts(own_place: object) -> None:
    model, mute = get_model(Counted()), get_model(ScriptedModel(["red"]))
    await ask(model, 0)

    counting = await RunCounters.begun([model, mute, model])
    nothing = await counting.so_far()
    await ask(model, 1)
    await model.aclose()
    await ask(model, 2)
    await ask(model, 2)

    assert nothing == {}
    assert await counting.so_far() == {"counted": Counters(answers=2)}


async def test_a_model_that_cannot_tell_costs_no_run(own_place: object, caplog: pytest.LogCaptureFixture) -> None:
    model = get_model(Broken(), identity="broken")

    assert await (await RunCounters.begun([model])).so_far() == {}
    assert caplog.messages == ["broken cannot tell what it computed."] * 2


def test_starts_of_a_run_add_up() -> None:
    form = counts_form({"a": VISION}, {"a": VISION.canonical(), "b": SERVER.canonical()})

    assert form == {"a": (VISION + VISION).canonical(), "b": SERVER.canonical()}
    assert counts_text({"b": SERVER}) == [f"b: {SERVER}."]
