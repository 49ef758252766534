from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.agents.choice_fields import read_numbers
from askance.agents.reply_ladder import read_answer
from askance.nodes import Unreadable
from tests.clock import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    "one and not others": ("Answer: 3 rather than 5 or 6", (3,)),
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
    "beyond": "Answer: 9",
    "zero": "Answer: 0",
    "one beyond": "Answer: 2, 14",
    "negative words": "Answer: none of the above",
    "percent": "Answer: 50% sure",
    "negative": "Answer: -1",
    "decimal": "Answer: 3.5",
    "fraction": "Answer: 1/3",
    "counting": "Answer: 5 people, 3",
    "prose takes over": "Answer: 3, 7 are right; 4, 5 are wrong",
    "some over others": "Answer: Options 3, 7, and 8 over 4, 5",
    "enumerated reasons": "I cannot decide:\n1. It shows a cup.\n2. It is red.",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_answer_is_not_read(text: str) -> None:
    with pytest.raises(Unreadable):
        read_answer(text, OPTIONS)


def test_single_takes_one_number() -> None:
    with pytest.raises(Unreadable, match=r"^2 options are chosen; choose exactly one$"):
        read_answer("Answer: 2, 3", OPTIONS, single=True)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=39, unique=True))
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
    "words": {"answers": ["the beer"]},
    "denied": {"answers": ["3: no"]},
    "another's text": {"answers": ["3. I should buy 7up because it has 3 times the fizz"]},
    "bool": {"answers": [True]},
    "float": {"answers": [1.5]},
    "beyond": {"answers": [9]},
    "null": {"answers": None},
}


@pytest.mark.parametrize("data", JSON_BAD.values(), ids=JSON_BAD)
def test_json_that_names_no_option_is_unreadable(data: dict[str, object]) -> None:
    with pytest.raises(Unreadable):
        read_numbers(data, "answers", 8, options=OPTIONS)


def test_json_numbers_keep_their_order() -> None:
    assert read_numbers({"answers": [7, 1, 7, 3]}, "answers", 8) == (7, 1, 3)


def test_json_numbers_may_rank_all_options_in_their_order() -> None:
    assert read_numbers({"answers": [*range(1, 9)]}, "answers", 8, options=OPTIONS) == tuple(range(1, 9))


@pytest.mark.parametrize(
    ("answers", "numbers"),
    [
        (["3", "7", "1"], (3, 7, 1)),
        ("3, 7", (3, 7)),
        ([f"7. {OPTIONS[6]}", f"Option 1: {OPTIONS[0]}"], (7, 1)),
        ([f"1. {OPTIONS[4]}", f"2. {OPTIONS[2]}"], (5, 3)),
        ({"1": "no", "2": "no", "3": "yes"}, (3,)),
        ({"1": False, "3": True}, (3,)),
        ([OPTIONS[4]], (5,)),
    ],
    ids=["digits", "one text", "with their texts", "ranks", "verdicts", "booleans", "texts"],
)
def test_json_may_hold_texts(answers: object, numbers: tuple[int, ...]) -> None:
    assert read_numbers({"answers": answers}, "answers", 8, options=OPTIONS) == numbers


ADS = (
    "I should drink this beer because it is light",
    "I should avoid this beer because it is heavy",
    "I should buy this soda because it has 3 times the fizz",
    "I should fly to Mars; it takes 9 months",
    "I should eat chips and salsa",
    "I should call 1-800-555",
    "I should drive a Jeep because it is strong",
    "I should not smoke because it kills",
    "I should save water because it is scarce",
    "I should wear a helmet",
    "I should read books because they open the mind",
    "I should use this cream because it is soft",
    "I should adopt a dog",
    "I should recycle",
    "I should sleep more",
)
ALL = "\n".join(f"{number}. {option}" for number, option in enumerate(ADS, start=1))

SAID: dict[str, tuple[tuple[int, ...] | None, tuple[int, ...] | None]] = {
    # Reply: as several, as one; None is unreadable.
    f"1. {ADS[4]}\n2. {ADS[8]}\n3. {ADS[10]}": ((5, 9, 11), None),
    f'Answer: 5. "{ADS[4]}"': ((5,), (5,)),
    f"5: “{ADS[4]}”": ((5,), (5,)),
    "Answer: 3 best statements are 1, 4, 9": ((1, 4, 9), None),
    "Answer: 3, 7, 12. The wrong answers are 4 and 5.": ((3, 7, 12), None),
    "Answer: 3 is wrong, 7 is wrong, so 12": (None, None),
    "Answer: 5\nActually, 3.": (None, None),
    "Answer: 3, 7, 12</s>": ((3, 7, 12), None),
    "$3, 7, 12$": ((3, 7, 12), None),
    "Answer: 3\nAnswer: 7\nAnswer: 12": (None, None),
    "Answer: 3, 5 or 7": (None, None),
    'Not {"answers": [5]} but {"answers": [3]}': (None, None),
    '["3", "7", "12"]': ((3, 7, 12), None),
    # Several statements.
    "Answer: 5. Wait, 3.": (None, None),
    "Answer: 5, no, 3": (None, None),
    "Answer: 5? No, 3.": (None, None),
    "Answer: 5, or rather 3": (None, None),
    "Answer: 5. On second thought, 3 is better.": (None, None),
    "Sorry, I meant option 3. Answer: 3": ((3,), (3,)),
    "Answer: 1, 2, 3\nAnswer: 4, 5, 6": (None, None),
    "Answer: 5\nFinal answer: 3": ((3,), (3,)),
    "Answer: 5\nAnswer: 3": (None, None),
    "Answer: 5\nThat is wrong.\nAnswer: 3": ((3,), (3,)),
    "Initial answer: 5. Answer: 3": ((3,), (3,)),
    "If the answer is 5, the image shows chips. The answer is 3.": ((3,), (3,)),
    "Options 3 and 5 look right at first.\nAnswer: 7": ((7,), (7,)),
    "Answer: 3, 7, 12. Actually, 5 is wrong as well.": (None, None),
    "Answer: 3, 7, 12. Options 4 and 5 are also plausible.": ((3, 7, 12), None),
    f"{ALL}\nAnswer: 3": ((3,), (3,)),
    ALL: (None, None),
    # What is denied, and what is open.
    "Answer: not 3": (None, None),
    "Option 3 is incorrect.": (None, None),
    "3 does not fit.": (None, None),
    "3 doesn't fit.": (None, None),
    "3 doesn’t fit. 5 does.": (None, None),
    "5 can't be right, so 3.": (None, None),
    "5 isn't it. 3.": (None, None),
    "Option 3. Option 5 doesn't fit.": (None, None),
    "It is not 5. It is 3.": (None, None),
    "The answer is not 5 but 3.": (None, None),
    "Answer: 3, 7, 12, not 4": ((3, 7, 12), None),
    "I choose 3 over 5.": (None, None),
    "Neither 3 nor 5": (None, None),
    "All except 3": (None, None),
    "~~5~~ 3": ((3,), (3,)),
    "I cannot choose between 3 and 5.": (None, None),
    "Answer: 3 (or 5)": (None, None),
    "Answer: 3, maybe 5": (None, None),
    "1: No\n2: No\n3: Yes\n4: No": ((3,), (3,)),
    "1 ❌\n2 ❌\n3 ✅": ((3,), (3,)),
    "- [ ] 2\n- [x] 3": ((3,), (3,)),
    # An index, its text, and ranks.
    f"Answer: 3. {ADS[4]}": (None, None),
    f"Answer: 5\n{ADS[2]}": (None, None),
    f"{ADS[4]} (5)": ((5,), (5,)),
    f"{ADS[4]} (3)": (None, None),
    f"- {ADS[4]}\n- {ADS[8]}": ((5, 9), None),
    ADS[4]: ((5,), (5,)),
    "1. 5\n2. 9\n3. 11": ((5, 9, 11), None),
    "First: 5\nSecond: 9\nThird: 11": ((5, 9, 11), None),
    "| Rank | Index |\n|---|---|\n| 1 | 5 |\n| 2 | 9 |": ((5, 9), None),
    "Top 3: 5, 9, 11": ((5, 9, 11), None),
    "The third option is the best.": ((3,), (3,)),
    "1. I should eat the crisps\n2. I should save water now": (None, None),
    "3. I should buy the soda\n7. I should drive the car": (None, None),
    # No answers.
    "Answer: 3 of 15": (None, None),
    "Answer: 3, 7, 16": (None, None),
    "Answer: 3, banana": (None, None),
    "None of the above": (None, None),
    "<think>Answer: 3": (None, None),
    "<think>Answer: 5</think>\nAnswer: 3": ((3,), (3,)),
    "Answer: 5\n</think>\nAnswer: 3": ((3,), (3,)),
}


@pytest.mark.parametrize(("text", "several", "one"), [(text, *read) for text, read in SAID.items()], ids=SAID)
def test_a_reply_is_read_as_it_means_or_not_at_all(
    text: str, several: tuple[int, ...] | None, one: tuple[int, ...] | None
) -> None:
    for single, numbers in ((False, several), (True, one)):
        try:
            read = read_answer(text, ADS, single=single)
        except Unreadable:
            read = None
        assert read == numbers


def _joined(numbers: Sequence[int], between: str = ", ", form: str = "{}") -> str:
    return between.join(form.format(number, text=ADS[number - 1]) for number in numbers)


def _ranked(numbers: Sequence[int], form: str) -> str:
    """Each after its rank; one alone has none."""
    if len(numbers) == 1:
        form = form[form.index(" ") + 1 :]
    return "\n".join(form.format(rank, number, text=ADS[number - 1]) for rank, number in enumerate(numbers, start=1))


STYLES: dict[str, Callable[[Sequence[int]], str]] = {
    "protocol": lambda n: f"Answer: {_joined(n)}",
    "braces": lambda n: f"Answer: ${{{_joined(n)}}}",
    "bold": lambda n: f"**Answer:** {_joined(n, form='**{}**')}",
    "heading": lambda n: f"### Final Answer\n\n{_joined(n)}",
    "fence": lambda n: f"```\nAnswer: {_joined(n)}\n```",
    "boxed": lambda n: f"So the final answer is $\\boxed{{{_joined(n)}}}$.",
    "full width": lambda n: f"Answer: {_joined(n, ',')}".translate({k: 0xFEE0 + k for k in b"0123456789,:"}),
    "end of turn": lambda n: f"Answer: {_joined(n)}<|im_end|>\n<|im_start|>user\nAnswer: 4",
    "thinking": lambda n: f"<think>Maybe 4 or 13? Answer: 4</think>\n\nAnswer: {_joined(n)}",
    "JSON": lambda n: f'{{"answers": [{_joined(n)}]}}',
    "list": lambda n: f"[{_joined(n)}]",
    "lines": lambda n: f"Answer:\n{_joined(n, chr(10), '- {}')}",
    "options": lambda n: f"I would choose {_joined(n, ', ', 'option {}')}, because they fit.",
    "ordered": lambda n: f"Answer: {_joined(n, ' > ')}",
    "texts": lambda n: f"Answer:\n{_joined(n, chr(10), '{}. {text}')}",
    "quoted texts": lambda n: _joined(n, "\n", "({}) “{text}”."),
    "texts alone": lambda n: _joined(n, "\n", "* {text}"),
    "ranks": lambda n: _ranked(n, "#{0}: {1}"),
    "ranks and options": lambda n: _ranked(n, "{0}. Option {1}"),
    "bare texts ranked": lambda n: _ranked(n, "{0}. **{text}**"),
    "sentence": lambda n: f"The best statements are {_joined(n)}. The others do not fit.",
    "explained": lambda n: f"Answer: {_joined(n)}\n\n" + _joined(n, "\n", "- Option {}: it shows 2 cups, which fits."),
    "denied others": lambda n: f"Answer: {_joined(n)}. The wrong answers are 4 and 13.",
    "verdicts": lambda n: "\n".join(f"{k}: {'Yes' if k in n else 'No'}" for k in [*n, 4, 13]),
}


@given(st.lists(st.integers(1, 15).filter(lambda n: n not in {4, 13}), min_size=2, max_size=5, unique=True))
def test_what_is_said_in_any_style_is_read_back(numbers: list[int]) -> None:
    for name, style in STYLES.items():
        for said in (numbers, numbers[:1]):
            try:
                assert read_answer(style(said), ADS, single=len(said) == 1) == tuple(said), name
            except Unreadable as error:
                raise AssertionError(name, style(said)) from error


def test_options_with_letters_are_chosen_by_them() -> None:
    lettered = [f"{letter}. {option}" for letter, option in zip("ABCD", ADS, strict=False)]

    assert read_answer("Answer: B, D", lettered) == (2, 4)
    assert read_answer("(C)", lettered, single=True) == (3,)
    assert read_answer(f"Answer: B) {ADS[1]}", lettered) == (2,)
    assert read_answer(f"A reason is given. The answer is {lettered[3]}", lettered) == (4,)
    with pytest.raises(Unreadable):
        read_answer(f"Answer: B) {ADS[2]}", lettered)
    with pytest.raises(Unreadable):
        read_answer("Answer: B", ADS)


HOSTILE = (
    "Answer: ", "Answer: 3, ", "3:", "3(", "((3)", "3-", "----", "(", "3. ", "1/", "| 3 |\n", "A is ", "wait, wrong ",
    "<think>", "</s>", "~~", "\\boxed{", "not 3 ", "I should drink ", "maybe ", "1st: 3, ", '{"a":', "[", "…", "&lt;",
)  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_time_of_a_reading_grows_with_the_length(unit: str) -> None:
    def read(length: int) -> None:
        with suppress(Unreadable):
            read_answer(unit * (length // len(unit)), ADS)

    took = [cpu_seconds(partial(read, length)) for length in (2_500, 20_000)]

    assert took[1] < 0.03 + 24 * took[0]  # 64 times where it grew with the square


@pytest.mark.parametrize(
    "end", [" - This caption does not fit the sce", " - This cap", " - This caption does not fit the scene."]
)
def test_a_first_option_that_is_denied_or_breaks_off_is_not_chosen(end: str) -> None:
    options = ["Nobody is late.", "The cat did it.", "It is a Monday."]
    text = f'A) "{options[0]}"{end}'
    with pytest.raises(Unreadable):
        read_answer(text, options, single=True, lettered=True)
    assert read_answer(f'A) "{options[0]}" - This caption fits.', options, single=True, lettered=True) == (1,)
