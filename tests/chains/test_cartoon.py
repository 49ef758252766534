"""A cartoon is described by four fields: asked of a VLM, or given; and they are laid out the same either way."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from askance.chains import (
    CARTOON_LINKS,
    DESCRIPTION,
    ENTITIES,
    LOCATION,
    NARRATION,
    UNUSUAL,
    Chain,
    Reading,
    brainstorm,
    cartoon_steps,
    plan,
)
from askance.chains.cartoon import lay_out
from askance.chains.output_line import link_values
from askance.chat import ChatRequest
from askance.cli.display import card_text
from askance.errors import UsageError
from askance.models import Model, get_model
from tests.scripted import PICTURE, model_of, name_of, scripted

ASKED: dict[str, Any] = {
    "location": {"location": "a bar"},
    "scene_description": {"description": "A lizard sits at a bar."},
    "unusual": {"unusual": "Lizards do not drink."},
    "entities": {"entities": ["Godzilla", "Bartender"]},
}
GIVEN: dict[str, Any] = {
    "location": "a bar",
    "narration": "A lizard sits at a bar.",
    "unusual": "Lizards do not drink.",
    "entities": ["Godzilla", "Bartender"],
}
LAID_OUT = """\
Place: a bar
Description: A lizard sits at a bar.
What is unusual: Lizards do not drink.
Entities: Godzilla, Bartender"""


def chain(vlm: Model | None, fields: int = 4) -> Chain:
    return Chain("cartoon", target=DESCRIPTION, steps=cartoon_steps(vlm, fields=fields))


def described(reading: Reading) -> str:
    return reading.require(DESCRIPTION).text


async def test_the_four_fields_are_asked_of_the_vlm_and_laid_out() -> None:
    script = scripted(**ASKED)

    reading = await chain(model_of(script)).ainvoke(PICTURE)

    assert described(reading) == LAID_OUT
    assert sorted(map(name_of, script.requests)) == sorted(ASKED)
    questions = {name_of(request): request.messages[-1].text for request in script.requests}
    assert questions["location"].startswith("Where does this take place?")
    assert questions["scene_description"].startswith("Describe this image.\n")
    assert questions["unusual"].startswith("What is unusual about this image?")
    assert questions["entities"].startswith("What entities are there?")


async def test_what_people_said_is_laid_out_as_what_a_vlm_says() -> None:
    reading = await chain(None).ainvoke(GIVEN)

    assert described(reading) == LAID_OUT
    assert reading.calls == ()


async def test_a_field_that_is_given_is_not_asked() -> None:
    script = scripted(**ASKED)

    reading = await chain(model_of(script)).ainvoke({"image": PICTURE, "location": "the moon", "entities": "Moon"})

    assert described(reading).splitlines()[0] == "Place: the moon"
    assert sorted(map(name_of, script.requests)) == ["scene_description", "unusual"]


@pytest.mark.parametrize("fields", [1, 2, 3, 4])
async def test_the_first_fields_alone_are_laid_out(fields: int) -> None:
    names = [link.name for link in CARTOON_LINKS[:fields]]

    reading = await chain(None, fields).ainvoke({name: GIVEN[name] for name in names})

    assert described(reading) == "\n".join(LAID_OUT.splitlines()[:fields])


@pytest.mark.parametrize("fields", [0, 5])
def test_there_are_four_fields(fields: int) -> None:
    with pytest.raises(UsageError, match=rf"A cartoon has no {fields} fields\. Take 1 to 4\."):
        cartoon_steps(None, fields=fields)


async def test_where_a_field_could_not_be_read_there_is_no_description() -> None:
    broken: dict[str, Any] = {**ASKED, "location": "?"}
    script = scripted(**broken)

    asked = await chain(model_of(script)).ainvoke(PICTURE)

    assert (asked[LOCATION].outcome, asked[DESCRIPTION].outcome) == ("invalid", "skipped")
    assert asked[DESCRIPTION].reason == "location has no answer (invalid)"


async def test_a_field_that_nobody_asks_for_is_left_out() -> None:
    some = await chain(None).ainvoke({name: GIVEN[name] for name in ("location", "unusual")})
    dropped = await chain(model_of(scripted(**ASKED))).with_nodes(narration=None).ainvoke(PICTURE)
    none = await chain(None).ainvoke({})

    assert described(some) == "Place: a bar\nWhat is unusual: Lizards do not drink."
    assert [line.split(":")[0] for line in described(dropped).splitlines()] == ["Place", "What is unusual", "Entities"]
    assert (none.outcome, none[DESCRIPTION].reason) == ("skipped", "nothing is known of the cartoon")


def test_a_field_that_says_nothing_is_left_out() -> None:
    assert lay_out({"location": "a bar", "narration": " ", "unusual": "", "entities": "Godzilla"}) == (
        "Place: a bar\nEntities: Godzilla"
    )


async def test_a_line_holds_the_fields() -> None:
    reading = await chain(model_of(scripted(**ASKED))).ainvoke(PICTURE)

    line = reading.to_dict()

    assert link_values(line) == {**GIVEN, "description": LAID_OUT}
    assert line["links"]["location"]["value"] == "a bar"
    assert line["links"]["entities"]["value"] == ["Godzilla", "Bartender"]


async def test_a_plan_counts_four_calls_a_cartoon() -> None:
    model = model_of(scripted(**ASKED))

    found = await plan(chain(model), [PICTURE])

    assert {link.link: link.calls for link in found.links} == dict.fromkeys(GIVEN, 1)


def test_the_steps_and_links_are_pickled() -> None:
    again: Chain = pickle.loads(pickle.dumps(chain(None)))

    assert described(again.invoke(GIVEN)) == LAID_OUT
    assert again.links["entities"] == ENTITIES


def read(link: Any, given: Any) -> Any:
    return link.value(given)


def test_links_read_what_data_give() -> None:
    assert read(LOCATION, "a bar").text == "a bar"
    assert read(ENTITIES, ["Paris, Texas", "Cowboy"]).names == ("Paris, Texas", "Cowboy")
    assert [link.name for link in CARTOON_LINKS] == [LOCATION.name, NARRATION.name, UNUSUAL.name, ENTITIES.name]


# --- captions that a model thinks of ---

DRAFT: dict[str, Any] = {"concepts": ["a", "b"], "chosen": ["b"], "caption": "Next!", "explanation": "A pun."}


async def test_each_draw_is_a_candidate_of_its_own() -> None:
    seen, written = scripted(**ASKED), scripted(brainstorm=DRAFT)

    reading = await brainstorm(model_of(seen), model_of(written), draws=3).ainvoke(PICTURE)

    assert [request.draw for request in written.requests] == [0, 1, 2]
    assert len(seen.requests) == 4
    assert LAID_OUT in written.requests[0].messages[-1].text
    assert [str(reading[f"candidate_{n}"].value) for n in (1, 2, 3)] == ["Next!"] * 3
    assert link_values(reading.to_dict()) == {**GIVEN, **{f"candidate_{n}": DRAFT for n in (1, 2, 3)}}


async def test_a_candidate_that_fails_leaves_the_others() -> None:
    def answer(request: ChatRequest) -> Any:
        return "?" if request.draw == 1 else DRAFT

    seen, written = scripted(**ASKED), scripted(brainstorm=answer)
    reading = await brainstorm(model_of(seen), model_of(written), draws=3).ainvoke(PICTURE)

    assert [reading[f"candidate_{n}"].outcome for n in (1, 2, 3)] == ["answered", "invalid", "answered"]
    assert reading.outcome == "answered"
    assert "\n  candidate 2 none, invalid: " in card_text(reading.to_dict(), None)


async def test_a_cartoon_that_is_described_takes_no_eyes() -> None:
    written = scripted(brainstorm=DRAFT)

    reading = await brainstorm(model_of(written)).ainvoke(GIVEN)

    assert reading.outcome == "answered"
    assert [*map(name_of, written.requests)] == ["brainstorm"]


def test_one_candidate_at_least_is_asked_for() -> None:
    with pytest.raises(UsageError, match=r"There are to be 0 candidate captions\. Ask for 1 or more\."):
        brainstorm(model_of(scripted()), draws=0)


def test_the_chain_is_pickled() -> None:
    chain = brainstorm(get_model("openai:m@http://127.0.0.1:9"), draws=2)

    again: Chain = pickle.loads(pickle.dumps(chain))

    assert [step.link.name for step in again.steps] == [step.link.name for step in chain.steps]
    assert [getattr(again[f"candidate_{n}"], "draw", None) for n in (1, 2)] == [0, 1]
