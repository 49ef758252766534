"""What surrounds an answer is taken away, and the JSON in a reply is found."""

from __future__ import annotations

from functools import partial

import pytest

from askance.nodes import Unreadable
from askance.nodes.reply import (
    READERS,
    answer_lines,
    final_text,
    is_refusal,
    json_object,
    plain_text,
    says_none,
    strip_turn_end,
)
from tests.clock import cpu_seconds

SPOKEN = {
    "<think>5?</think>\n3": "3",
    "so 5?\n</think>\n3": "3",
    "<think>5": "",
    "Sure. <thinking>5</thinking>3": "Sure. 3",
    "◁think▷5◁/think▷3": "3",
    "3</s>": "3",
    "3<|im_end|>\n<|im_start|>user\n5": "3",
    "<s>3<end_of_turn>": "3",
    "3<|eot_id|>": "3",
    "3 < 5 <cup>": "3 < 5 <cup>",
}


@pytest.mark.parametrize(("text", "said"), SPOKEN.items(), ids=SPOKEN)
def test_thinking_and_ends_of_turns_are_no_part_of_an_answer(text: str, said: str) -> None:
    assert final_text(text).strip() == said


PLAIN = {
    "**Answer:** _3_": "Answer: 3",
    "### 3": "3",
    "```json\n3\n```": "3",
    "“\uff13”": '"3"',
    "3️⃣": "3",
    "~~5~~ 3": "3",
    "3<br>7": "3\n7",
    "<b>3</b> &amp; <beer>": "3 & <beer>",
    "snake_case": "snake_case",
}


@pytest.mark.parametrize(("text", "said"), PLAIN.items(), ids=PLAIN)
def test_signs_are_made_simple(text: str, said: str) -> None:
    assert plain_text(text) == said


def test_an_end_of_turn_within_a_verdict_stays() -> None:
    assert strip_turn_end("true</s>\n<|im_end|>\n") == "true"
    assert strip_turn_end("</s> true") == "</s> true"


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Not {"a": 5} but {"a": 3}', {"a": 3}),
        ('{"a": {"b": 2}} as said', {"a": {"b": 2}}),
        ('{"a": 3} Note: {"b": 1}', {"a": 3}),
        ('```json\n{"a": 3}\n```', {"a": 3}),
        ('{like this} {"a": 3}', {"a": 3}),
        ('["x"]', {"a": ["x"]}),
        ('<think>{"a": 5}</think>{"a": 3}', {"a": 3}),
    ],
    ids=repr,
)
def test_the_last_object_with_the_field_counts(text: str, data: object) -> None:
    assert json_object(text, ["a"]) == data


@pytest.mark.parametrize("unit", ["{", '{"a":', '{"a": "', "[", "<think>", "{ "])
def test_what_begins_like_json_without_end_is_given_up(unit: str) -> None:
    def read() -> None:
        with pytest.raises(Unreadable, match=r"^the reply is not one JSON object$"):
            json_object(unit * (100_000 // len(unit)), ["a"])

    assert cpu_seconds(read) < 1


def test_refusals_and_nothing_are_told_from_what_only_looks_so() -> None:
    assert is_refusal("I'm sorry, I can't assist with that.")
    assert not is_refusal("Sorry, we're closed")
    assert says_none("There isn't any text here.", {"text", "here"})
    assert not says_none("No text while driving", {"text"})


def test_the_readers_have_a_version() -> None:
    assert READERS >= 2


LOOSE = {
    "{'a': ['x', \"it's\"],}": {"a": ["x", "it's"]},
    '{"a": [1, 2,]}': {"a": [1, 2]},
    "{'a': None}": {"a": None},
    '{"a": 1, "a": 1}': {"a": 1},
    'The form is {"a": 0}.\n{"a": 1}': {"a": 1},
    '{"a": 1}\n{"a": 1}': {"a": 1},
}


@pytest.mark.parametrize(("text", "data"), LOOSE.items(), ids=LOOSE)
def test_json_is_read_that_is_not_strict(text: str, data: object) -> None:
    assert json_object(text, ["a"]) == data


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"a": 1}\n{"a": 2}', '{"a": 1} or {"a": 2}', 'Not {"a": 1}', '{"a": 1}\nActually, 2.']
)
def test_different_objects_or_one_that_is_taken_back_are_none(text: str) -> None:
    with pytest.raises(Unreadable):
        json_object(text, ["a"])


@pytest.mark.parametrize(
    "unit", ["$", " ", "*a", "a (b ", "\"'", "- ", "`", "a, ", "\n \n", "\\boxed{", "|a|\n", "_", "1. "]
)
def test_the_time_of_taking_lines_grows_with_their_length(unit: str) -> None:
    texts = [f"a{unit * (length // len(unit))}b" for length in (2_500, 20_000)]

    took = [cpu_seconds(partial(answer_lines, text, ())) for text in texts]

    assert took[1] < 0.03 + 24 * took[0]  # 64 times where it grew with the square
