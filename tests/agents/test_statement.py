from __future__ import annotations

from typing import Any

import pytest

from askance.agents import FillQuestion, fill_from_picture, fill_statement, read_filled
from askance.atypicality import RELATIONS, Relation, Statement
from askance.errors import UsageError
from askance.models import ScriptedModel
from askance.nodes import Unreadable
from tests.clock import cpu_seconds
from tests.scripted import PICTURE, model_of, scripted

BEER = Statement("TR1", "beer", "feather")
TEMPLATE = "The surface of <beer> mimics the texture of <feather>, while retaining its original structure."

READ: dict[str, tuple[str, Relation, Statement]] = {
    "the template": (TEMPLATE, "TR1", BEER),
    "other blanks and commas": (
        "the surface of <beer>\nmimics the texture of <feather> while retaining its original structure",
        "TR1",
        BEER,
    ),
    "words around it": (f"Sure!\n\n{TEMPLATE}\n\nI hope that helps, <3.", "TR1", BEER),
    "the example, then the answer": (
        f"An example output: {TEMPLATE.replace('beer', 'eleven').replace('feather', 'meat')}\nMy answer: {TEMPLATE}",
        "TR1",
        BEER,
    ),
    "the question, then the answer": (
        f"{TEMPLATE.replace('beer', 'object1').replace('feather', 'object2')}\n<beer> and <feather>",
        "TR1",
        BEER,
    ),
    "at its beginning": (
        "<potato chips> completely replaces <fire> in its usual context, assuming its function or position.",
        "OR",
        Statement("OR", "potato chips", "fire"),
    ),
    "at its end": (
        "<a cat> is visibly located within <cup>, in an unconventional manner.",
        "OIO",
        Statement("OIO", "a cat", "cup"),
    ),
    "of many": (
        "<face> appears to be composed of numerous, smaller instances of <leaves>, altering its texture.",
        "TR2",
        Statement("TR2", "face", "leaves"),
    ),
    "escaped": ("The answer is &lt;beer&gt;, &lt;feather&gt;.", "TR1", BEER),
    "bold": ("**<beer>** looks like **<feather>**", "TR1", BEER),
    "twice the same two": ("<beer> and <feather>: the <beer> is light as a <feather>", "TR1", BEER),
    "the same object twice": ("<cup> in <cup>", "OIO", Statement("OIO", "cup", "cup")),
    "labels of Listing 11": ("<object1>: beer\n<object2>: feather", "TR1", BEER),
    "labels with brackets": ("<object1>: <beer>\n<object2>: <feather>.", "TR1", BEER),
    "labels of Fig. 2": ("Primary Object: Beer\nSecondary Object: Feather", "TR1", Statement("TR1", "Beer", "Feather")),
    "labels in one line": ("Primary object: beer, secondary object: feather", "TR1", BEER),
    "end of turn": ("<beer> and <feather></s>", "TR1", BEER),
    "full width": ("\uff1cbeer\uff1e and \uff1cfeather\uff1e", "TR1", BEER),
    "JSON": ('{"primary": "beer", "secondary": "feather"}', "TR1", BEER),
    "denied before": (f"Not {TEMPLATE.replace('beer', 'cup')} But: {TEMPLATE}", "TR1", BEER),
    "no brackets": (TEMPLATE.replace("<", "").replace(">", ""), "TR1", BEER),
}


@pytest.mark.parametrize(("text", "relation", "statement"), READ.values(), ids=READ)
def test_the_objects_are_read_where_they_are_marked(text: str, relation: Relation, statement: Statement) -> None:
    assert read_filled(text, relation) == statement


HOSTILE = [
    "<" * 50_000,
    "object1: " * 10_000,
    "primary object = " * 5_000,
    " ,." * 30_000,
    "<a>" * 20_000,
    "The surface of " * 9_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=["brackets", "labels", "roles", "blanks", "names", "heads"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_long_reply_is_read_in_no_time(text: str, relation: Relation) -> None:
    def read() -> None:
        with pytest.raises(Unreadable):
            read_filled(text, relation)

    assert cpu_seconds(read) < 1


MARKED = "the two objects have to stand in angular brackets, such as <eleven> and <meat>"
NAMELESS = "the primary object has no name"
UNREADABLE = {
    "none": ("<none> and <none>", NAMELESS),
    "none with labels": ("<object1>: None\n<object2>: n/a", NAMELESS),
    "the example alone": (TEMPLATE.replace("beer", "eleven").replace("feather", "meat"), MARKED),
    "two answers": (
        f"{TEMPLATE}\nActually: {TEMPLATE.replace('beer', 'cup')}",
        "the template is filled in differently; fill it in once",
    ),
    "another relation in brackets": (
        "<cat> is visibly located within <cup>, in an unconventional manner.",
        "the statement is of Object Inside Object, and one of Texture Replacement 1 was asked for",
    ),
    "prose": ("I cannot tell what this is.", MARKED),
    "one object": ("It is <beer>.", MARKED),
    "three objects": ("<beer>, <feather> and <foam>", MARKED),
    "nothing filled in": ("The surface of <object1> mimics the texture of <object2>.", MARKED),
    "a blank": ("< > and <feather>", "the primary object has no name"),
    "a place for a name": (
        "<object1>: object1\n<object2>: object2",
        "the primary object has no name",
    ),
    "another relation": (
        "cat is visibly located within cup, in an unconventional manner.",
        "the statement is of Object Inside Object, and one of Texture Replacement 1 was asked for",
    ),
    "a whole sentence": (
        f"<{'a beer ' * 20}> and <feather>",
        "'a beer a beer a beer a beer a beer a bee'… is no name of an object; name it in at most 80 characters",
    ),
}


@pytest.mark.parametrize(("text", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_names_no_two_objects_is_no_answer(text: str, message: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_filled(text, "TR1")
    assert str(caught.value) == message


@pytest.mark.parametrize("relation", RELATIONS)
async def test_a_picture_is_shown_with_the_template_of_its_relation(relation: Relation) -> None:
    script = ScriptedModel(["<beer> … <feather>"], identity="scripted")
    question = FillQuestion(relation=relation, image=PICTURE)  # pyright: ignore[reportArgumentType]  # a path

    result = await fill_from_picture(model_of(script, protocol="paper")).ask(question)

    (request,) = script.requests
    assert result.value == Statement(relation, "beer", "feather")
    assert len(request.images) == 1
    assert Statement(relation, "<object1>", "<object2>").text in request.messages[-1].text
    assert f"An example output: {Statement(relation, '<eleven>', '<meat>').text}" in request.messages[-1].text


async def test_a_description_is_quoted_and_the_answer_is_json() -> None:
    script = scripted(fill_statement={"primary": "<beer>", "secondary": " feather. "})

    result = await fill_statement(model_of(script)).ask({"relation": "TR1", "description": "Light beer."})

    (request,) = script.requests
    assert (result.value, request.images) == (BEER, ())
    assert "Light beer." in request.messages[-1].text


@pytest.mark.parametrize(
    "reply",
    [{"primary": "beer"}, {"primary": "beer", "secondary": " "}, {"primary": 1, "secondary": "feather"}],
    ids=["one", "blank", "a number"],
)
async def test_json_without_two_names_is_invalid(reply: dict[str, Any]) -> None:
    node = fill_statement(model_of(scripted(fill_statement=reply)))

    result = await node.ask(FillQuestion(relation="TR1", description="Light beer."))

    assert (result.outcome, len(result.calls)) == ("invalid", 2)


def test_an_unknown_relation_is_refused() -> None:
    with pytest.raises(UsageError, match="is no FillQuestion: relation: Input should be 'TR1', 'TR2', 'OIO' or 'OR'"):
        fill_statement(model_of(ScriptedModel([]))).accept({"relation": "XX", "description": ""})
