"""The chains `explain` and `identify`: what each context asks, what is read, what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from askance.agents import Reply, answer_from_description, answer_from_picture
from askance.chains import LINKS, REPLY, Chain, about_picture, explain, identify
from askance.chains.catalog import about_described, about_seen
from askance.chains.line import line_of
from askance.chat import ChatRequest
from askance.errors import UsageError
from askance.models import Model
from tests.scripted import PICTURE, model_of, name_of, scripted

SAID: dict[str, Any] = {
    "explain_from_picture": {"explanation": "Bricks do not hold coffee."},
    "explain_from_description": {"explanation": "A wall is no cup."},
    "identify_from_picture": {"answer": "weird"},
    "identify_from_description": {"answer": "normal"},
    "answer_from_picture": {"answer": "a cup"},
    "answer_from_description": {"answer": "nothing"},
}


def asked_of(names: list[str], **answers: Any) -> Model:
    """A model that notes the names of what it is asked."""

    def noting(name: str, said: Any) -> Any:
        def reply(request: ChatRequest) -> Any:
            names.append(name_of(request))
            return said

        return reply

    table = {"caption": {"description": "A cup of bricks."}, "narration": {"description": "A cup."}, **SAID, **answers}
    return model_of(scripted(**{name: noting(name, said) for name, said in table.items()}))


@pytest.mark.parametrize(
    ("make", "context", "asked", "reply"),
    [
        (explain, "I", ["explain_from_picture"], "Bricks do not hold coffee."),
        (explain, "caption", ["caption", "explain_from_description"], "A wall is no cup."),
        (explain, "IN", ["narration", "explain_from_description"], "A wall is no cup."),
        (identify, "I", ["identify_from_picture"], "weird"),
        (identify, "caption", ["caption", "identify_from_description"], "normal"),
    ],
)
def test_a_context_is_what_is_asked(make: Any, context: str, asked: list[str], reply: str) -> None:
    names: list[str] = []

    reading = make(asked_of(names), context=context)(PICTURE)

    assert names == asked
    assert (reading.outcome, str(reading.reply.value)) == ("answered", reply)
    assert line_of(reading)["reply"] == reply


def test_t_v_is_made_by_the_model_that_reasons() -> None:
    thinking: list[str] = []

    reading = explain(model_of(scripted()), asked_of(thinking, combine={"description": "T_V."}), context="T_V")(PICTURE)

    assert thinking == ["combine", "explain_from_description"]
    assert reading.links.keys() == {link.name for link in LINKS} - {"statement", "answers"}


@pytest.mark.parametrize("said", ["not weird", "both weird and normal", "", "weird normal"])
def test_what_is_not_one_of_the_two_words_is_no_answer(said: str) -> None:
    reading = identify(asked_of([], identify_from_picture={"answer": said}))(PICTURE)

    assert (reading.outcome, line_of(reading)["reply"]) == ("invalid", None)


@pytest.mark.parametrize("said", ["weird", "Weird.", '"weird"', "Answer: weird", "**weird**", "It is weird"])
def test_the_word_may_stand_in_what_surrounds_words(said: str) -> None:
    reading = identify(asked_of([], identify_from_picture={"answer": said}))(PICTURE)

    assert reading.reply is not None
    assert reading.reply.value == Reply(text="weird") or str(reading.reply.value) == "weird"


@pytest.mark.parametrize(("context", "reply"), [("I", "a cup"), ("caption", "nothing")])
def test_each_picture_may_have_a_question_of_its_own(context: Any, reply: str) -> None:
    questions: list[str] = []

    def noting(said: Any) -> Any:
        def answer(request: ChatRequest) -> Any:
            questions.append(request.messages[-1].text)
            return said

        return answer

    answers = {name: noting(said) for name, said in SAID.items()}
    model = model_of(scripted(**answers))
    found = chain(model, context)({"image": PICTURE, "question": "What is\nit?"})

    assert str(found.reply and found.reply.value) == reply
    assert "Question: What is it?" in questions[-1]


def chain(model: Model, context: Any, **more: Any) -> Chain:
    return about_picture(
        "answer",
        target=REPLY,
        context=context,
        vlm=model,
        seen=(answer_from_picture, about_seen),
        described=(answer_from_description, about_described),
        **more,
    )


def test_what_is_given_is_not_asked() -> None:
    names: list[str] = []
    model = asked_of(names)

    found = chain(model, "caption", given=("description",))({"description": "A cup.", "question": "Why?"})

    assert (found.outcome, names) == ("answered", ["answer_from_description"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vlm": None, "llm": None, "context": "I"}, "looks at the picture"),
        ({"vlm": None, "llm": None, "context": "caption", "given": ("description",)}, "no model"),
        ({"vlm": "x", "context": "T"}, "no context 'T'"),
    ],
    ids=["nobody sees", "nobody thinks", "no context"],
)
def test_what_cannot_be_asked_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        about_picture(
            "answer",
            target=REPLY,
            seen=(answer_from_picture, about_seen),
            described=(answer_from_description, about_described),
            **options,
        )


def test_a_question_is_a_text() -> None:
    with pytest.raises(UsageError, match="3 is no question"):
        explain(asked_of([]))({"image": PICTURE, "question": 3})
