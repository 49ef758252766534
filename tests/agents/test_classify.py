"""The labels of an atypicality classification: the reader of replies, and the two agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from askance.agents import (
    LABELS,
    Atypicalities,
    AtypicalityLabel,
    OptionsQuestion,
    choose_statement,
    choose_statement_from_picture,
    choose_step_by_step,
    classify_atypicality,
    classify_from_picture,
    read_categories,
)
from askance.errors import UsageError
from askance.images import Image
from askance.models import Model, ScriptedModel, get_model
from askance.nodes import Unreadable
from tests.scripted import ENFORCED, PICTURE, model_of, scripted

REPLIES: dict[str, tuple[AtypicalityLabel, ...]] = {
    "[{'1': 'TR1', '2': 'OIO'}]": ("TR1", "OIO"),
    '[{"1": "OR"}]': ("OR",),
    "{'1': TR2}": ("TR2",),
    "[{'1': 'NA'}]": ("NA",),
    "[{'1': 'OIO', '2': 'NA'}]": ("OIO", "NA"),
    "[{'1': 'Texture Replacement 1', '2': 'object  replacement'}]": ("TR1", "OR"),
    "[{'1': 'Texture Replacement 1 (TR1)'}]": ("TR1",),
    "[{'1': 'OIO', '2': 'OIO'}]": ("OIO",),
    "```\n[{'1': 'TR1'}]\n```": ("TR1",),
    "Answer: TR1, OR": ("TR1", "OR"),
    "TR2": ("TR2",),
    "(1) TR1\n(3) OIO": ("TR1", "OIO"),
    "1. TR1\n2. Object Inside Object": ("TR1", "OIO"),
    "TR1 and OIO.": ("TR1", "OIO"),
    "tr1; or": ("TR1", "OR"),
    "None": ("NA",),
    # Verdicts on each.
    "TR1: No, TR2: No, OIO: Yes, OR: No": ("OIO",),
    "TR1 (no), TR2 (no), OIO (yes), OR (no)": ("OIO",),
    "TR1: 0.1, TR2: 0.2, OIO: 0.9, OR: 0.1": ("OIO",),
    "TR1: 10%, OIO: 90%": ("OIO",),
    "❌ TR1\n✅ OIO": ("OIO",),
    "TR1 ❌, OIO ✅": ("OIO",),
    "- [ ] TR1\n- [x] OIO": ("OIO",),
    "| TR1 | No |\n| OIO | Yes |": ("OIO",),
    "{'TR1': True, 'TR2': False, 'OR': True}": ("TR1", "OR"),
    "TR1: No\nTR2: No\nOIO: No\nOR: No": ("NA",),
    "There is no TR1. The answer is OIO.": ("OIO",),
    # Lists of other forms.
    '[{"1": "TR1"}, {"2": "OIO"}]': ("TR1", "OIO"),
    "- TR1\n- OIO": ("TR1", "OIO"),
    "['TR1', 'OIO']": ("TR1", "OIO"),
    '["TR1", "OIO"]': ("TR1", "OIO"),
    "OR (Object Replacement), TR2": ("OR", "TR2"),
    "[{'1': 'OIO'}]<|im_end|>": ("OIO",),
    "**OIO**": ("OIO",),
    "The image shows OIO.": ("OIO",),
    "TR1, not OIO": ("TR1",),
    "None of the categories applies.": ("NA",),
    "[{'1': 'TR1'}]\n\nExplanation: TR1 is chosen since it wears a skin. OIO does not apply.": ("TR1",),
}


@pytest.mark.parametrize(("reply", "labels"), REPLIES.items(), ids=REPLIES)
def test_labels_are_read(reply: str, labels: tuple[AtypicalityLabel, ...]) -> None:
    assert read_categories(reply).labels == labels


CONTRADICTORY = [
    "[{'1': 'TR1'}]\nActually, [{'1': 'OIO'}]",
    "TR1 (Object Inside Object)",
    "TR1 OR OIO",
    "OIO, TR1: yes, OR: no",
    "TR1, TR3",
    "[{'1': 'TR1', '2': 'TR3'}]",
    "TR1: 0.5, OIO: 0.5",
    "OIO - not present",
    "\n".join(f"{label}: An object keeps its shape." for label in LABELS[:4]),
]


@pytest.mark.parametrize("reply", CONTRADICTORY)
def test_what_contradicts_itself_is_not_read(reply: str) -> None:
    with pytest.raises(Unreadable):
        read_categories(reply)


UNREADABLE = {
    "[{}]": "no category is given; where none applies the answer is NA",
    "[]": "no category is given; where none applies the answer is NA",
    "[{'1': 'TR3'}]": "'TR3' is none of the categories TR1, TR2, OIO, OR, NA",
    "A cat or a dog": "'A cat or a dog' is none of the categories TR1, TR2, OIO, OR, NA",
    "[{'1': '1st level Atypicality Category'}]": (
        "'1st level Atypicality Category' is none of the categories TR1, TR2, OIO, OR, NA"
    ),
}


@pytest.mark.parametrize(("reply", "why"), UNREADABLE.items(), ids=UNREADABLE)
def test_what_is_no_label_is_not_guessed(reply: str, why: str) -> None:
    with pytest.raises(Unreadable) as unread:
        read_categories(reply)

    assert str(unread.value) == why


def test_labels_are_a_choice_among_the_five() -> None:
    chosen = Atypicalities.of(["OR", "TR1", "OR"])

    assert (chosen.labels, str(chosen)) == (("OR", "TR1"), "OR, TR1")
    assert Atypicalities.of(LABELS).labels == LABELS
    with pytest.raises(ValueError, match="Input should be 'TR1', 'TR2', 'OIO', 'OR' or 'NA'"):
        Atypicalities(labels=("TR3",))  # pyright: ignore[reportArgumentType]


def answering(reply: Any) -> ScriptedModel:
    return ScriptedModel([json.dumps(reply)], identity="scripted", capabilities=ENFORCED)


def test_a_described_picture_is_classified() -> None:
    script = answering({"categories": ["TR1", "NA"]})

    found = classify_atypicality(model_of(script))("A bottle of feathers.")

    assert found == Atypicalities.of(["TR1", "NA"])
    asked = script.requests[0].messages[-1].text
    assert "A bottle of feathers." in asked
    assert "\n- OR (Object Replacement): An object stands where another one usually stands" in asked


def test_a_picture_is_classified() -> None:
    script = answering({"categories": ["OIO"]})

    found = classify_from_picture(model_of(script))(PICTURE)

    assert found == Atypicalities.of(["OIO"])
    assert len(script.requests[0].messages[-1].parts) == 2


@pytest.mark.parametrize("reply", [{}, {"categories": "TR3"}, {"categories": []}, {"categories": [1]}], ids=str)
async def test_json_without_labels_is_invalid(reply: dict[str, Any]) -> None:
    script = scripted(classify_atypicality=reply)

    assert (await classify_atypicality(model_of(script)).ask("A cup.")).outcome == "invalid"


@pytest.mark.parametrize(
    ("categories", "labels"),
    [
        (["TR1: no", "OIO: yes"], ("OIO",)),
        ({"TR1": False, "OIO": True}, ("OIO",)),
        ([{"TR1": 0.2}, {"OIO": 0.8}], ("OIO",)),
        ("TR1, OIO", ("TR1", "OIO")),
    ],
    ids=repr,
)
def test_json_with_verdicts_is_read_by_them(categories: Any, labels: tuple[AtypicalityLabel, ...]) -> None:
    found = classify_atypicality(model_of(answering({"categories": categories})))("A cup.")

    assert found.labels == labels


def test_the_text_protocol_is_read() -> None:
    script = ScriptedModel(["[{'1': 'TR1'}]"], identity="scripted", capabilities=ENFORCED)

    assert classify_atypicality(paper(script))("A cup.") == Atypicalities.of(["TR1"])
    assert "at most 4 appropriate categories" in script.requests[0].messages[0].text


def paper(script: ScriptedModel) -> Model:
    return get_model(script, protocol="paper")


def test_a_classifier_takes_a_text() -> None:
    with pytest.raises(UsageError, match="description: Input should be a valid string"):
        classify_atypicality(model_of(scripted()))(5)


QUESTION = OptionsQuestion(description="A cup.", options=("a cup is brick", "a brick is a cup"), statement="left out")


def test_one_of_the_given_statements_is_chosen() -> None:
    script = answering({"statement": 2})

    assert choose_statement(model_of(script))(QUESTION).numbers == (2,)
    assert "1. a cup is brick\n2. a brick is a cup\n" in script.requests[0].messages[-1].text


def test_one_of_the_given_statements_is_chosen_from_the_picture() -> None:
    script = answering({"statement": 1})
    question = OptionsQuestion(image=Image.load(PICTURE), options=QUESTION.options)

    assert choose_statement_from_picture(model_of(script))(question).numbers == (1,)
    assert len(script.requests[0].messages[-1].parts) == 2


@pytest.mark.parametrize("number", [0, 3, None, "two and a half"], ids=repr)
async def test_a_number_beyond_the_statements_is_invalid(number: Any) -> None:
    script = scripted(detect_statement={"statement": number})

    assert (await choose_statement(model_of(script)).ask(QUESTION)).outcome == "invalid"


def test_steps_are_asked_for_and_left_out_of_the_answer() -> None:
    script = answering({"reasoning": "First 1, then 2.", "answers": [2, 1]})

    assert choose_step_by_step(model_of(script))(QUESTION).numbers == (2, 1)
    assert "Think step by step" in script.requests[0].messages[-1].text
    assert script.requests[0].response is not None
    assert [*(script.requests[0].response.schema or {})["properties"]] == ["reasoning", "answers"]
