from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from askance.chains import Chain, LinkPlan, Plan, action_reason, end_to_end, plan, verbalize
from askance.chat import ChatRequest, ChatResponse, ModelId, Usage
from askance.errors import UsageError
from askance.images import Image
from askance.models import Engine, Model, Price, ScriptedModel, get_model
from askance.models.token_estimate import UNSEEN_ANSWER, Range
from askance.replay import MemoryStore
from askance.tools import ocr
from tests.scripted import OPTIONS, PICTURE, PICTURES, model_of, scripted

USAGE = Usage(input=100, output=10)
GIVEN = {"image": PICTURE, "options": OPTIONS}
SEVEN = ["objects", "scene_text", "narration", "unusual", "description", "statement", "answers"]


def counted() -> ScriptedModel:
    """A model whose answers come with their tokens."""
    script = telling_apart()

    async def reply(request: ChatRequest) -> ChatResponse:
        return replace(await ScriptedModel.generate(script, request), usage=USAGE)

    script.generate = reply
    return script


def telling_apart() -> ScriptedModel:
    """A model whose answers differ from picture to picture."""

    def key_of(request: ChatRequest) -> dict[str, str]:
        return {"description": request.key}

    return scripted(narration=key_of, combine=key_of)


def counts(planned: Plan) -> dict[str, tuple[int, int, int]]:
    return {link.link: (link.hits, link.known, link.dependent) for link in planned.links}


def another(folder: Path, side: int = 64) -> Path:
    path = folder / f"{side}.png"
    Pillow.new("RGB", (side, side)).save(path)
    return path


async def test_with_nothing_on_record_the_first_links_are_known_and_the_others_depend_on_them() -> None:
    script = scripted()

    planned = await plan(action_reason(model_of(script)), [GIVEN])

    assert counts(planned) == {
        **dict.fromkeys(SEVEN[:4], (0, 1, 0)),
        **dict.fromkeys(SEVEN[4:], (0, 0, 1)),
    }
    assert (planned.images, planned.calls, planned.hits) == (1, 7, 0)
    assert script.requests == []


async def test_what_is_on_record_is_a_hit_and_not_counted_again() -> None:
    store = MemoryStore()
    script = scripted()
    chain = action_reason(model_of(script, store))
    await chain.ainvoke(GIVEN)

    planned = await plan(chain, [GIVEN])

    assert counts(planned) == dict.fromkeys(SEVEN, (1, 0, 0))
    assert (planned.calls, planned.dollars, len(script.requests)) == (0, Range(), 7)


async def test_the_plan_is_what_the_run_then_asks(own_place: Path) -> None:
    store = MemoryStore()
    await action_reason(model_of(telling_apart(), store)).ainvoke(GIVEN)
    script = telling_apart()
    chain = action_reason(model_of(script, store))
    pictures = [PICTURE, *sorted(PICTURES.glob("*.jpg")), another(own_place)]
    inputs: list[Any] = [{"image": picture, "options": OPTIONS} for picture in pictures]

    planned = await plan(chain, inputs)
    await chain.abatch(inputs)

    assert planned.images == len(pictures)
    assert planned.calls == len(script.requests) == 7 * 8


async def test_a_link_that_is_given_or_has_ended_for_good_is_not_planned() -> None:
    store = MemoryStore()
    refusing = scripted(objects=ChatResponse(refusal="No."))
    chain = action_reason(model_of(refusing, store))
    await chain.ainvoke({**GIVEN, "statement": "a is visibly located within b, in an unconventional manner."})

    planned = await plan(chain, [GIVEN])

    assert counts(planned) == {
        **dict.fromkeys(SEVEN[:4], (1, 0, 0)),
        "description": (0, 0, 0),
        "statement": (0, 0, 0),
        "answers": (0, 0, 0),
    }


async def test_answers_that_are_asked_again_are_planned() -> None:
    store = MemoryStore()
    await verbalize(model_of(scripted(unusual=ChatResponse(refusal="No.")), store)).ainvoke(PICTURE)

    planned = await plan(verbalize(model_of(scripted(), store, retry=frozenset({"refused"}))), [PICTURE])

    assert counts(planned)["unusual"] == (0, 1, 0)
    assert counts(planned)["description"] == (0, 0, 1)


@pytest.mark.parametrize("mode", ["live", "refresh"])
async def test_a_mode_that_reads_nothing_asks_for_everything(mode: str) -> None:
    store = MemoryStore()
    await verbalize(model_of(scripted(), store)).ainvoke(PICTURE)

    planned = await plan(verbalize(model_of(scripted(), store, mode=mode)), [PICTURE])

    assert (planned.hits, planned.calls) == (0, 5)


async def test_replay_has_no_plan() -> None:
    with pytest.raises(
        UsageError, match=r"^`replay` asks nothing, so there is nothing to plan\. Use the mode `auto`\.$"
    ):
        await plan(verbalize(model_of(scripted(), mode="replay")), [PICTURE])


async def test_pictures_that_cannot_be_used_are_counted(own_place: Path) -> None:
    (own_place / "text.jpg").write_text("no picture")

    planned = await plan(verbalize(model_of(scripted())), ["missing.jpg", "text.jpg", PICTURE])

    assert (planned.images, planned.unusable, planned.calls) == (3, 2, 5)


async def test_an_endpoint_that_nobody_has_asked_counts_as_one_that_takes_a_schema_and_is_not_remembered_so() -> None:
    script = scripted(capabilities=None)
    model = model_of(script)
    chain = verbalize(model)

    planned = await plan(chain, [PICTURE])

    assert (planned.probes, planned.calls, model.known) == (1, 5, None)
    assert script.requests == []


# --- tokens and dollars ---


def priced(store: MemoryStore, script: ScriptedModel, price: Price | None = Price(input=1, output=2)) -> Any:  # noqa: B008
    model = model_of(script, store)
    return model.changed(lambda settings: replace(settings, price=price), model.engine)


async def test_answers_on_record_tell_how_long_others_will_be(own_place: Path) -> None:
    store = MemoryStore()
    await verbalize(model_of(counted(), store)).ainvoke(PICTURE)
    await verbalize(model_of(counted(), store)).ainvoke(PICTURES / "coin-horse.jpg")

    planned = await plan(verbalize(priced(store, scripted())), [another(own_place)])

    by_link = {link.link: link for link in planned.links}
    assert all(link.measured for link in planned.links)
    assert by_link["unusual"].output == Range(9, 10, 11)
    assert by_link["description"].input == Range(90, 100, 110)
    dollars = by_link["description"].dollars
    assert dollars is not None
    assert dollars.expected == pytest.approx(120e-6)


async def test_without_any_like_it_a_call_is_estimated_within_its_limit(own_place: Path) -> None:
    model = get_model(scripted(), engine=Engine(records=MemoryStore()), max_tokens=100)

    planned = await plan(verbalize(model, context="IN"), [another(own_place)])

    (link,) = planned.links
    assert not link.measured
    assert link.output == Range(UNSEEN_ANSWER.low, 100, 100)
    assert link.input.low < link.input.expected < link.input.high


def link_plan(model: str, price: Price | None, calls: int = 10) -> LinkPlan:
    return LinkPlan(
        link="objects",
        model=ModelId("openai", model),
        price=price,
        hits=0,
        known=calls,
        dependent=0,
        input=Range(1e6, 2e6, 4e6),
        output=Range(1e5, 2e5, 4e5),
        measured=True,
    )


def test_dollars_online_and_by_batch_and_what_has_no_price() -> None:
    listed = Price(input=1, output=10, batch=0.5, as_of="2026-11-18")
    planned = Plan(
        images=1,
        unusable=0,
        links=(link_plan("a", listed), link_plan("b", Price(input=1, output=0)), link_plan("c", None)),
        probes=0,
    )

    assert planned.dollars == Range(3, 6, 12)
    assert planned.batch_dollars == Range(2, 4, 8)
    assert planned.unpriced == {"openai:c": 10}
    assert planned.price_dates == ("2026-11-18",)
    assert replace(planned, links=planned.links[1:]).batch_dollars is None


@pytest.mark.parametrize(("known", "dollars"), [(10, None), (0, Range())], ids=["calls to make", "all on record"])
def test_what_has_no_price_costs_nobody_knows_what(known: int, dollars: Range | None) -> None:
    nothing = Range() if not known else Range(1, 1, 1)
    link = replace(link_plan("c", None), known=known, input=nothing, output=nothing)
    planned = Plan(images=1, unusable=0, links=(link,), probes=0)

    assert (planned.dollars, planned.batch_dollars) == (dollars, None)


@pytest.mark.parametrize(
    ("pace", "seconds"),
    [
        ({"concurrency": 5}, 6.0),
        ({"concurrency": 5, "rpm": 30}, 20.0),
        ({"concurrency": 5, "rpm": 30, "tpm": 2.2e6}, 60.0),
    ],
    ids=["calls at once", "calls a minute", "tokens a minute"],
)
def test_seconds_at_a_pace(pace: dict[str, Any], seconds: float) -> None:
    planned = Plan(images=1, unusable=0, links=(link_plan("a", None),), probes=0)

    assert planned.seconds(**pace) == pytest.approx(seconds)


# --- nodes that ask no model ---


async def test_a_node_of_the_callers_own_is_not_run() -> None:
    called: list[Image] = []
    chain = verbalize(model_of(scripted())).with_nodes(scene_text=called.append)

    planned = await plan(chain, [PICTURE])

    assert (called, planned.without_model) == ([], {"scene_text": 1})
    assert counts(planned)["description"] == (0, 0, 1)


async def test_ocr_is_read_from_the_records_and_not_run() -> None:
    store = MemoryStore()
    reader = ocr(engine=Engine(records=store))
    chain = verbalize(model_of(scripted(), store)).with_nodes(scene_text=reader)

    before = await plan(chain, [PICTURE])

    assert before.without_model == {"scene_text": 1}


def concatenated(model: Model) -> Chain:
    return verbalize(model, context="V+T")


@pytest.mark.parametrize("make", [concatenated, end_to_end], ids=["concatenated", "end to end"])
async def test_other_chains(make: Callable[[Model], Chain]) -> None:
    script = scripted()
    chain = make(model_of(script))

    planned = await plan(chain, [GIVEN])
    await chain.ainvoke(GIVEN)

    assert planned.calls == len(script.requests) > 0


async def test_many_pictures_are_planned_in_seconds(own_place: Path) -> None:
    """Each picture has its own bytes; none is decoded."""
    data = PICTURE.read_bytes()
    pictures = [Image.from_bytes(data + number.to_bytes(4, "big"), name=str(number)) for number in range(150)]
    chain = action_reason(model_of(scripted()))

    start = time.perf_counter()
    planned = await plan(chain, ({"image": picture, "options": OPTIONS} for picture in pictures))

    assert planned.calls == 7 * 150
    assert time.perf_counter() - start < 3
