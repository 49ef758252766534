"""The JSON Schemas of what chains take and give, and the typed values of a reading."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from askance.chains import (
    DESCRIPTION,
    LINKS,
    NARRATION,
    OBJECTS,
    STATEMENT,
    Chain,
    Link,
    Step,
    action_reason,
    atypicality,
    picture,
    verbalize,
)
from askance.chains.reading import reading_of
from askance.errors import AskanceError, Refused, Skipped
from tests.scripted import OPTIONS, PICTURE, model_of, scripted


@dataclass(frozen=True)
class Place:
    name: str
    indoors: bool


class Clue(BaseModel):
    text: str
    weight: float = 1.0


class Unknown:
    """A type of which pydantic makes no schema."""


OWN = (Link("place", Place), Link("clue", Clue), Link("count", int), Link("odd", Unknown), Link("note", str))

GIVEN: dict[str, Any] = {
    "image": str(PICTURE),
    "name": "brick cup",
    "options": OPTIONS,
    "question": "What is odd?",
    "examples": [{"values": {"description": "A clock of cheese.", "options": OPTIONS}, "answer": ["1"]}],
    "objects": ["cup", "bricks"],
    "scene_text": "A solid start.",
    "narration": "A cup.",
    "unusual": {"text": "Bricks."},
    "description": "A cup of bricks.",
    "statement": {"relation": "TR1", "primary": "cup", "secondary": "bricks"},
    "answers": [2, 1],
    "reply": "It is made of bricks.",
    "place": {"name": "kitchen", "indoors": True},
    "clue": {"text": "mortar"},
    "count": 3,
    "note": "x",
}

WRONG: dict[str, Any] = {
    "objects": 3,
    "scene_text": 4,
    "narration": 5,
    "statement": {"relation": "TR1"},
    "answers": "2",
    "examples": [{"answer": "1"}],
    "place": {"name": "kitchen"},
    "clue": {"weight": 1.0},
    "count": "three",
    "colour": "red",
}


def chain() -> Chain:
    steps = [Step(link=link, node=str, subject=picture) for link in OWN]
    return Chain("own", target=OWN[0], steps=[*verbalize("openai:gpt-4o").steps, *steps])


def faults(of: Chain, given: Any) -> list[str]:
    schema = of.get_input_jsonschema()
    Draft202012Validator.check_schema(schema)
    valid: Any = Draft202012Validator(schema)
    return [error.message for error in valid.iter_errors(given)]


def test_what_the_schema_takes_the_chain_takes() -> None:
    own = chain()

    assert faults(own, GIVEN) == []
    parts = {"image", "name", "options", "question", "examples"}
    assert {*own.get_input_jsonschema()["properties"]} == {*parts, *own.links}
    reading = reading_of(GIVEN, own.target, own.links)
    assert {*reading.links} == {each.name for each in (*LINKS, *OWN)} - {"odd"}
    # What a link writes is taken again.
    assert faults(own, {name: own.links[name].write(each.value) for name, each in reading.links.items()}) == []


@pytest.mark.parametrize("link", WRONG)
def test_what_the_schema_refuses_the_chain_refuses(link: str) -> None:
    own = chain()

    assert faults(own, {link: WRONG[link]})
    if link != "narration":  # any value has a text
        with pytest.raises((AskanceError, TypeError)):
            reading_of({link: WRONG[link], "options": OPTIONS}, own.target, own.links)


def test_a_chain_that_chooses_requires_options() -> None:
    assert faults(action_reason("openai:gpt-4o"), {"image": "a.jpg"}) == ["'options' is a required property"]
    assert faults(verbalize("openai:gpt-4o"), {"image": "a.jpg"}) == []


async def test_what_a_chain_gives_is_as_its_schema_says() -> None:
    asked = action_reason(model_of(scripted()))
    reading = await asked.ainvoke({"image": PICTURE, "options": OPTIONS})

    form = reading.to_dict()

    assert json.loads(json.dumps(form)) == form
    valid: Any = Draft202012Validator(asked.get_output_jsonschema())
    assert [*valid.iter_errors(form)] == []
    assert [*valid.iter_errors({**form, "outcome": "odd"})]


async def test_values_of_a_reading_have_the_types_of_their_links() -> None:
    reading = await atypicality(model_of(scripted())).ainvoke(PICTURE)

    assert reading.require(STATEMENT).primary == "cup"
    assert reading[STATEMENT].unwrap().secondary == "bricks"
    assert reading[STATEMENT] == reading["statement"] == reading.statement
    assert reading.value(OBJECTS) == reading.require(OBJECTS)
    assert reading.value(DESCRIPTION) is None
    with pytest.raises(Skipped, match="description is neither asked nor given"):
        reading.require(DESCRIPTION)


async def test_a_required_value_that_was_refused_raises_why() -> None:
    refused = Refused("the model declined: no")
    reading = await atypicality(model_of(scripted(narration=refused))).ainvoke(PICTURE)

    with pytest.raises(Refused, match="the model declined"):
        reading.require(NARRATION)
    assert reading.value(NARRATION) is None
    assert faults(atypicality("openai:gpt-4o"), {"narration": None})
