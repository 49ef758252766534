"""Comparisons of short answers: each beside what its source says, and what it must not take as right."""

from __future__ import annotations

import pytest

from askance.errors import BadData
from askance.evals.suite.answer_match import PEOPLE, MatchName, check_true, match, number_in

CASES: list[tuple[MatchName, str, list[str], float]] = [
    ("exact", " A  Cat. ", ["a cat"], 1),
    ("exact", "a cat on a mat", ["a cat"], 0),
    ("contains", "It is a Cat, I think.", ["dog", "cat"], 1),
    ("contains", "a category", ["cat"], 0),
    ("contains", "C++ and more", ["c++"], 1),
    ("regex", "Made in 1987", [r"\b19\d\d\b"], 1),
    ("regex", "Made in 2087", [r"\b19\d\d\b"], 0),
    ("numeric", "There are 1,200 people.", ["1200"], 1),
    ("numeric", "about −3.5 °C", ["-3.5"], 1),
    ("numeric", "three", ["3"], 1),
    ("numeric", "3 or 4", ["3"], 0),
    ("numeric", "12.5", ["12"], 0),
    ("relaxed", "104", ["100"], 1),
    ("relaxed", "105.1", ["100"], 0),
    ("relaxed", "0", ["0"], 1),
    ("relaxed", "0.01", ["0"], 0),
    ("relaxed", "Blue", ["blue"], 1),
    ("anls", "kitten", ["sitting"], 4 / 7),  # three edits in seven letters
    ("anls", "abcd", ["abef"], 0),  # half of it is no more than half
    ("anls", "Solid  Start", ["solid start"], 1),
    ("vqa", "The Two!", ["2"] * 3 + ["three"] * 7, (3 * (2 / 3) + 7) / PEOPLE),
    ("vqa", "2", ["2"] * 4 + ["three"] * 6, 1),
    ("vqa", "2", ["2"] + ["three"] * 9, (9 / 3) / PEOPLE),
]


@pytest.mark.parametrize(("name", "answer", "true", "value"), CASES)
def test_an_answer_is_as_near_as_its_source_says(name: MatchName, answer: str, true: list[str], value: float) -> None:
    assert check_true(name, true) is None
    assert match(name, answer, true) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "number"),
    [("5%", 5), ("$1,250.50", 1250.5), ("1e3", 1000), ("v2.1.3", None), ("none", None), ("ten men, 10 in all", 10)],
)
def test_the_number_of_a_text_is_its_only_one(text: str, number: float | None) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize(
    ("name", "true", "why"),
    [
        ("numeric", ["many"], "'many' is no number"),
        ("vqa", ["a", "b"], "there are 2 answers of people, and `vqa` goes by 10"),
        ("regex", ["(a"], "'(a' is no pattern"),
    ],
)
def test_what_cannot_be_compared_with_is_said(name: MatchName, true: list[str], why: str) -> None:
    assert (check_true(name, true) or "").startswith(why)


def test_a_pattern_that_takes_too_long_is_refused() -> None:
    with pytest.raises(BadData, match=r"takes longer than 0\.5 s"):
        match("regex", "a" * 40 + "!", [r"(a|aa)+$"])
