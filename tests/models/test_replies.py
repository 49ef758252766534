from __future__ import annotations

import pytest

from askance.chat import FINISHES as ALL
from askance.errors import MalformedReply, UnknownFinish
from askance.models.replies import FINISHES, GIVEN_UP, finish_of, incomplete


@pytest.mark.parametrize(
    ("words", "finish"),
    [
        ([], "stop"),
        (["", ""], "stop"),
        (["STOP"], "stop"),
        (["stop", "max_tokens"], "length"),
        (["stop", "a stop sequence of the caller's"], "stop"),
    ],
)
def test_words_of_one_reply(words: list[str], finish: str) -> None:
    assert finish_of(words, refused=False, called=False) == finish


@pytest.mark.parametrize(
    ("word", "refused", "called", "finish"),
    [
        ("stop", True, True, "refusal"),
        ("something new", True, False, "refusal"),
        ("stop", False, True, "tool_calls"),
        ("length", False, True, "length"),
    ],
)
def test_what_the_answer_holds_goes_before_stop(word: str, refused: bool, called: bool, finish: str) -> None:
    assert finish_of([word], refused=refused, called=called) == finish


def test_an_unknown_word_is_named_and_not_asked_again() -> None:
    with pytest.raises(UnknownFinish) as caught:
        finish_of(["tired" * 50], refused=False, called=False)
    assert str(caught.value) == f"It ended for a reason that is not known: {'tired' * 12!r}."
    assert (caught.value.retryable, caught.value.outcome) == (False, "failed")


def test_an_answer_that_was_given_up_is_asked_again() -> None:
    with pytest.raises(MalformedReply) as caught:
        finish_of(["Network_Error"], refused=False, called=False)
    assert str(caught.value) == "The server gave the answer up (finish reason 'Network_Error')."
    assert caught.value.retryable


def test_the_table() -> None:
    assert set(FINISHES.values()) == set(ALL)
    assert not GIVEN_UP & FINISHES.keys()
    assert all(word == word.lower() for word in GIVEN_UP | FINISHES.keys())


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("new", "length")]
)
def test_incomplete_answers(reason: str, finish: str) -> None:
    assert incomplete(reason) == finish
