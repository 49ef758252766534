"""Typed answers hold, validate and serialize; the schema that is sent is our own, whatever pydantic is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from askance import agents, tools
from askance.agents import Atypicalities, Choice, Identification, Negative, Negatives, PositionVerdict, Reply, Verdict
from askance.errors import UsageError
from askance.models import ScriptedModel
from askance.nodes import TypedAnswer
from askance.tools import Caption, Objects, RecognizedText, SceneText, TextBox
from tests.scripted import PICTURE, model_of

SCHEMAS = Path(__file__).with_name("schemas.json")
"""What is sent with each question, as users have it on record: it changes with no version of any package."""

ANSWERS: dict[str, TypedAnswer] = {
    "objects": Objects(names=("cup", "brick")),
    "scene text": SceneText(lines=()),
    "recognized text": RecognizedText(
        lines=("BUY",),
        boxes=(TextBox(text="BUY", confidence=0.9, box=((0.0, 0.0), (3.5, 0.0), (3.5, 1.0), (0.0, 1.0))),),
    ),
    "caption": Caption(text="A cup, ☕."),
    "choice": Choice(numbers=(3, 1)),
    "atypicalities": Atypicalities(labels=("NA", "TR1")),
    "identification": Identification(text="weird"),
    "negatives": Negatives(items=(Negative(text="I should not.", replaced="", replacement="not"),)),
    "verdict": Verdict(value="unclear", reason="Both may be.", calls=("a" * 64,)),
    "no verdict": Verdict(outcome="refused", reason="No."),
    "position": PositionVerdict(value="same"),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_comes_back_from_its_json(answer: TypedAnswer) -> None:
    assert type(answer).model_validate_json(answer.model_dump_json()) == answer


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_does_not_change(answer: TypedAnswer) -> None:
    name = next(iter(type(answer).model_fields))

    with pytest.raises(ValidationError, match="frozen"):
        setattr(answer, name, getattr(answer, name))
    assert hash(answer) == hash(answer.model_copy())


WRONG: dict[str, tuple[type[TypedAnswer], dict[str, Any], str]] = {
    "a number as text": (Choice, {"numbers": ("3",)}, "valid integer"),
    "a truth value as number": (Choice, {"numbers": (True,)}, "valid integer"),
    "one text for a list": (Objects, {"names": "cup"}, "valid tuple"),
    "bytes for a text": (Reply, {"text": b"cup"}, "valid string"),
    "another word": (Identification, {"text": "odd"}, "'weird' or 'normal'"),
    "a field too many": (Reply, {"text": "cup", "tone": "dry"}, "tone"),
    "a field too few": (Negative, {}, "text"),
    "beyond the labels": (Atypicalities, {"labels": ("TR3",)}, "'OR' or 'NA'"),
}


@pytest.mark.parametrize(("kind", "fields", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_answer_is_refused(kind: type[TypedAnswer], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        kind(**fields)


MODEL = model_of(ScriptedModel([], identity="scripted"))
TEXTS = ("I should drink tea.", "I should buy bricks.", "I should fly.", "I should sleep.")
DESCRIBED = {"description": "A cup.", "options": TEXTS}
SHOWN = {"image": PICTURE, "options": TEXTS}
PAIR = {"reference": "A cup.", "candidate": "A mug."}

NODES: dict[str, tuple[Callable[..., Any], Any, dict[str, Any]]] = {
    **{
        name: (getattr(tools, name), PICTURE, {})
        for name in ("objects", "scene_text", "narration", "unusual", "caption")
    },
    "combine": (agents.combine, {"narration": "A cup."}, {}),
    "detect_statement": (agents.detect_statement, {"description": "A cup.", "objects": ["cup", "brick"]}, {}),
    "choose_statement": (agents.choose_statement, DESCRIBED, {}),
    "choose_action_reasons": (agents.choose_action_reasons, DESCRIBED, {}),
    "choose_action_reasons, five": (agents.choose_action_reasons, DESCRIBED, {"count": 5}),
    "choose_action_reasons, single": (agents.choose_action_reasons, DESCRIBED, {"mode": "single"}),
    "choose_step_by_step": (agents.choose_step_by_step, DESCRIBED, {}),
    "choose_from_picture": (agents.choose_from_picture, SHOWN, {}),
    "choose_blind": (agents.choose_blind, TEXTS, {}),
    "classify_atypicality": (agents.classify_atypicality, "A cup.", {}),
    "fill_statement": (agents.fill_statement, {"relation": "OR", "description": "A cup."}, {}),
    "explain_from_picture": (agents.explain_from_picture, PICTURE, {}),
    "identify_from_description": (agents.identify_from_description, "A cup.", {}),
    "answer_from_description": (agents.answer_from_description, "A cup.", {}),
    "caption_from_description": (agents.caption_from_description, "A cup.", {}),
    "ask_about_picture": (agents.ask_about_picture, PICTURE, {}),
    "ask_about_picture with labels": (agents.ask_about_picture, PICTURE, {"labels": ["red", "blue"]}),
    "ask_about_picture, several": (agents.ask_about_picture, PICTURE, {"labels": ["red", "blue"], "several": True}),
    "find_candidates": (agents.find_candidates, "A cat sits on a cup.", {}),
    "guess_action_reasons": (agents.guess_action_reasons, "A cup stands on a wall.", {}),
    "write_question": (agents.write_question, {"caption": "A cat.", "answer": "a cat"}, {}),
    "write_negative, two": (agents.write_negative, "I should drink tea.", {"kind": "action", "count": 2}),
    "judge_equivalence": (agents.judge_equivalence, PAIR, {}),
    "judge_equivalence, short": (agents.judge_equivalence, PAIR, {"form": "short"}),
}


@pytest.mark.parametrize("name", NODES)
def test_the_schema_that_is_sent_stays_as_it_is(name: str) -> None:
    make, given, options = NODES[name]
    node = make(MODEL, **options)

    sent = node.schema(node.accept(given))

    kept = json.loads(SCHEMAS.read_text(encoding="utf-8"))
    assert sorted(kept) == sorted(NODES)
    assert json.dumps(sent) == json.dumps(kept[name]), f"{SCHEMAS} has another schema for {name!r}"


ASKED_WITHOUT: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "no image": (agents.explain_from_picture, {"description": "A cup."}, "without the picture's image"),
    "no description": (agents.explain_from_description, {"image": PICTURE}, "without the picture's description"),
    "another field": (agents.explain_from_description, {"tone": "dry"}, "tone: Extra inputs are not permitted"),
}


@pytest.mark.parametrize(("make", "given", "message"), ASKED_WITHOUT.values(), ids=ASKED_WITHOUT)
def test_an_agent_says_what_it_is_asked_without(make: Callable[..., Any], given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(MODEL).accept(given)


def test_an_agent_of_descriptions_sees_nothing() -> None:
    with pytest.raises(UsageError, match="`choose_blind` is asked about no picture that is seen"):
        agents.choose_blind(MODEL, sees=True)
