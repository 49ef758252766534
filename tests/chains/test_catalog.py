"""The chains `explain` and `identify`: what each context asks, what is read, what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from askance.chains import LINKS, explain, identify
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
    assert reading.to_dict()["reply"] == reply


def test_t_v_is_made_by_the_model_that_reasons() -> None:
    thinking: list[str] = []

    reading = explain(model_of(scripted()), asked_of(thinking, combine={"description": "T_V."}), context="T_V")(PICTURE)

    assert thinking == ["combine", "explain_from_description"]
    assert reading.links.keys() == {link.name for link in LINKS} - {"statement", "answers"}


@pytest.mark.parametrize("said", ["not weird", "both weird and normal", "", "weird normal"])
def test_what_is_not_one_of_the_two_words_is_no_answer(said: str) -> None:
    reading = identify(asked_of([], identify_from_picture={"answer": said}))(PICTURE)

    assert (reading.outcome, reading.to_dict()["reply"]) == ("invalid", None)


@pytest.mark.parametrize("said", ["weird", "Weird.", '"weird"', "Answer: weird", "**weird**", "It is weird"])
def test_the_word_may_stand_in_what_surrounds_words(said: str) -> None:
    reading = identify(asked_of([], identify_from_picture={"answer": said}))(PICTURE)

    assert reading.reply is not None
    assert str(reading.reply.value) == "weird"


@pytest.mark.parametrize("context", ["I", "caption"])
def test_each_picture_may_have_a_question_of_its_own(context: Any) -> None:
    questions: list[Any] = []

    def node(subject: Any) -> str:
        questions.append(subject)
        return "nothing"

    explain(asked_of([]), context=context).with_nodes(reply=node)({"image": PICTURE, "question": "What is\nit?"})

    assert [subject.question for subject in questions] == ["What is\nit?"]


def test_what_is_given_is_not_asked() -> None:
    names: list[str] = []

    found = explain(asked_of(names), context="caption")({"description": "A cup."})

    assert (found.outcome, names) == ("answered", ["explain_from_description"])


def test_an_unknown_context_is_refused() -> None:
    unknown: Any = "T"
    with pytest.raises(UsageError, match="no context 'T'"):
        explain(asked_of([]), context=unknown)


def test_a_question_is_a_text() -> None:
    with pytest.raises(UsageError, match="3 is no question"):
        explain(asked_of([]))({"image": PICTURE, "question": 3})
