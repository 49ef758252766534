from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.agents.answers import read_answer, read_numbers
from askance.nodes import Unreadable

OPTIONS = (
    "I should buy 7up because it has 3 times the fizz",
    "I should drink beer because it is light",
    "I should avoid beer, because 2 glasses are too many",
    "12",
    "I should fly to Mars; it takes 9 months and 5 days",
    "I should call 1-800-555",
    "I should eat chips and salsa",
    "I should answer: 4, because it is even",
)

READ = {
    "plain list": ("Answer: 3, 7, 1", (3, 7, 1)),
    "order is rank": ("Answer: 7,1,3", (7, 1, 3)),
    "braces of the protocol": ("Answer: ${2, 5}", (2, 5)),
    "brackets": ("Answer: [2, 5, 1]", (2, 5, 1)),
    "bold marker": ("**Answer:** 2", (2,)),
    "lower case": ("answer: 2", (2,)),
    "is": ("The final answer is 4.", (4,)),
    "and": ("Answer: 1, 2 and 5", (1, 2, 5)),
    "repeated": ("Answer: 2, 2, 5, 2", (2, 5)),
    "words": ("Answer: three, seven", (3, 7)),
    "range": ("Answer: 3-5", (3, 4, 5)),
    "range in words": ("Answer: 2 to 4", (2, 3, 4)),
    "en dash": ("Answer: 6–8", (6, 7, 8)),
    "an index with its option": ("Answer: 1. I should buy 7up because it has 3 times the fizz", (1,)),
    "an index with another wording": ("Answer: 1. buy 7up", (1,)),
    "lines with options": (
        f"Answer:\n1. {OPTIONS[0]}\n5. {OPTIONS[4]}",
        (1, 5),
    ),
    "options in one line": (
        "Answer: 3. I should avoid beer, because 2 glasses are too many, 7. I should eat chips and salsa",
        (3, 7),
    ),
    "reasoning before": ("There are 6 cups and option 2 mentions 9 of them.\nSo 1 or 2?\nAnswer: 5", (5,)),
    "the last answer counts": ("Answer: 1\nWait, that is wrong.\nAnswer: 6", (6,)),
    "prose after": ("Answer: 2\nBecause 3 glasses are 1 too many.", (2,)),
    "prose on the line": ("Answer: 2, because 3 times the fizz is 4 too many", (2,)),
    "next line": ("Answer:\n\n4, 5", (4, 5)),
    "bare list": ("3, 7, 1", (3, 7, 1)),
    "bare number": ("5", (5,)),
    "bare bullets": ("- 3\n- 1", (3, 1)),
    "hash": ("Answer: #3, #1", (3, 1)),
    "option words": ("Answer: Option 3 and option 6", (3, 6)),
    "boxed": ("Answer: \\boxed{3}", (3,)),
    "sentence after": ("Answer: 3, 7. The other options (1, 2, 5) do not fit.", (3, 7)),
    "prose takes over": ("Answer: 3, 7 are right; 4, 5 are wrong", (3, 7)),
    "one over others": ("Answer: 3 rather than 5, 6", (3,)),
    "some over others": ("Answer: Options 3, 7, and 8 over 4, 5", (3, 7, 8)),
    "reasons that are numbered": ("Answer: 3\n1. It shows a cup.\n2. It is red.", (3,)),
    "lines": ("Answer:\n3\n7", (3, 7)),
    "a remark": ("Answer: 7 (best), 3", (7, 3)),
    "an option that speaks of answers": ("Answer: 8. I should answer: 4, because it is even", (8,)),
}


@pytest.mark.parametrize(("text", "numbers"), READ.values(), ids=READ)
def test_numbers_are_read_where_an_answer_is_given(text: str, numbers: tuple[int, ...]) -> None:
    assert read_answer(text, OPTIONS) == numbers


UNREADABLE = {
    "empty": "",
    "no answer": "I cannot tell which one is best.",
    "digits in prose": "There are 3 cups in the picture and 2 spoons.",
    "only an option": "I should buy 7up because it has 3 times the fizz",
    "beyond": "Answer: 9",
    "zero": "Answer: 0",
    "one beyond": "Answer: 2, 14",
    "negative words": "Answer: none of the above",
    "percent": "Answer: 50% sure",
    "negative": "Answer: -1",
    "decimal": "Answer: 3.5",
    "fraction": "Answer: 1/3",
    "counting": "Answer: 5 people, 3",
    "enumerated reasons": "I cannot decide:\n1. It shows a cup.\n2. It is red.",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_answer_is_not_read(text: str) -> None:
    with pytest.raises(Unreadable):
        read_answer(text, OPTIONS)


def test_single_takes_one_number() -> None:
    with pytest.raises(Unreadable, match=r"^2 options are chosen; choose exactly one$"):
        read_answer("Answer: 2, 3", OPTIONS, single=True)


@given(st.lists(st.integers(1, 40), min_size=1, unique=True))
def test_any_list_in_the_protocol_form_is_read_in_order(numbers: list[int]) -> None:
    text = f"Answer: {', '.join(map(str, numbers))}"
    assert read_answer(text, [f"option number {n}" for n in range(40)]) == tuple(numbers)


@given(st.text())
def test_any_text_is_read_or_unreadable(text: str) -> None:
    try:
        numbers = read_answer(text, OPTIONS)
    except Unreadable:
        return
    assert all(1 <= number <= len(OPTIONS) for number in numbers)


JSON_BAD: dict[str, dict[str, object]] = {
    "missing": {},
    "empty": {"answers": []},
    "text": {"answers": ["3"]},
    "bool": {"answers": [True]},
    "float": {"answers": [1.5]},
    "beyond": {"answers": [9]},
    "null": {"answers": None},
}


@pytest.mark.parametrize("data", JSON_BAD.values(), ids=JSON_BAD)
def test_json_that_names_no_option_is_unreadable(data: dict[str, object]) -> None:
    with pytest.raises(Unreadable):
        read_numbers(data, "answers", 8)


def test_json_numbers_keep_their_order() -> None:
    assert read_numbers({"answers": [7, 1, 7, 3]}, "answers", 8) == (7, 1, 3)
