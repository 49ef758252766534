"""Answers of examples, as packaged prompts write them: an agent reads them as it reads a model's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest

from askance import agents, tools
from askance.agents.explain import CaptionWriter
from askance.atypicality import Statement
from askance.images import Image
from askance.models import Config, Engine, ScriptedModel, get_model
from askance.models.settings import OutputMode
from askance.nodes import Example, Node
from askance.nodes.reply import json_object
from askance.prompts import PromptLibrary
from askance.replay import MemoryStore
from tests.scripted import PICTURE as FILE

PICTURE = Image.from_path(FILE)

OPTIONS = ("I should fly", "I should sleep", "I should drink tea", "I should run")
SAID = {"description": "A cup with wings."}
MULTI = agents.choose_action_reasons, {"options": OPTIONS}, "3, 1, 4", (3, 1, 4)
ODD = 'It has wings, and "cups" do not.'

CASES: dict[str, tuple[Callable[..., Node[Any, Any]], dict[str, Any], Any, Any]] = {
    "action-reasons": MULTI,
    "one action-reason": (partial(agents.choose_action_reasons, mode="single"), {"options": OPTIONS}, 3, (3,)),
    "statement": (agents.choose_statement, {"options": OPTIONS}, 4, (4,)),
    "caption of two": (partial(agents.choose_caption, mode="single"), {"options": OPTIONS[:2]}, 2, (2,)),
    "explanation": (partial(agents.choose_explanation, mode="single"), {"options": OPTIONS}, 1, (1,)),
    "categories": (agents.classify_atypicality, {}, ("OIO", "TR1"), ("OIO", "TR1")),
    "no category": (agents.classify_atypicality, {}, ("NA",), ("NA",)),
    "objects": (
        agents.fill_statement,
        {"relation": "TR1", "primary": "tea cup", "secondary": "feather"},
        None,
        Statement("TR1", "tea cup", "feather"),
    ),
    "what is unusual": (agents.explain_from_description, {}, ODD, ODD),
    "weird": (agents.identify_from_description, {}, "weird", "weird"),
    "an answer": (agents.answer_from_description, {"question": "What has it?"}, "two wings", "two wings"),
    "a caption": (agents.caption_from_description, {}, "A cup flies.", "A cup flies."),
}
"""By what is answered: the agent, the values of the example beside its picture, its answer, and what is read of it."""


def value_of(found: Any) -> Any:
    for name in ("numbers", "labels", "text"):
        if hasattr(found, name) and not isinstance(found, Statement):
            return getattr(found, name)
    return found


@pytest.mark.parametrize("family", [None, "vicuna", "blip", "minigpt-4"])
@pytest.mark.parametrize("mode", ["json_schema", "paper"])
@pytest.mark.parametrize("sees", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_an_example_is_answered_as_a_model_should_answer(
    case: str, sees: bool, mode: OutputMode, family: str | None
) -> None:
    make, values, answer, expected = CASES[case]
    settings: dict[str, Any] = {"protocol": mode} | ({"family": family} if family else {})
    model = get_model(ScriptedModel([]), engine=Engine(records=MemoryStore()), config=Config(), **settings)
    node = make(model, sees=sees, prompts=PromptLibrary([]))
    shown = {"image": PICTURE} if sees else SAID
    example = Example(values={**values, **({} if sees else SAID)}, answer=answer, image=PICTURE if sees else None)
    asked = {name: value for name, value in values.items() if name not in {"primary", "secondary"}}
    plain = node.request(node.accept({**asked, **shown}), mode)
    subject = node.accept({**asked, **shown, "examples": [example]})

    request = node.request(subject, mode)

    said = request.messages[-2].text
    read = node.read_text(said, subject) if mode == "paper" else node.read_json(json_object(said, ()), subject)
    assert value_of(read) == expected
    assert (request.messages[: len(plain.messages) - 1], request.messages[-1]) == (
        plain.messages[:-1],
        plain.messages[-1],
    )


def test_a_caption_writer_that_sees_asks_as_the_tool_does() -> None:
    model = get_model(ScriptedModel([]), engine=Engine(records=MemoryStore()), config=Config())
    writer, tool = CaptionWriter(model, sees=True), tools.caption(model)

    for mode in get_args(OutputMode):
        assert writer.request(writer.accept(PICTURE), mode).key == tool.request(tool.accept(PICTURE), mode).key
