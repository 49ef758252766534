"""How near a short free answer is to the answers of the data, from 0 to 1: the comparisons of question answering.

| name | what counts | source |
|---|---|---|
| `exact` | the same text, but for case, blanks, quotes around it and a period at its end | |
| `contains` | one of the true answers stands in it, as whole words | |
| `regex` | one of the true answers is a pattern that is found in it, whatever the case | |
| `numeric` | its only number is the true one | |
| `relaxed` | its only number is at most 5 % off; else the same text | Masry and others, *ChartQA*, 2022 |
| `anls` | 1 − edit distance / length, 0 up to a half; the best of the true ones | Biten and others, *ST-VQA*, 2019 |
| `vqa` | people who gave it / 3, at most 1; the mean over each nine of ten people | Antol and others, *VQA*, 2015 |

A number may have a sign, commas between thousands, a currency or a percent sign before or behind it, and up to ten it
may be a word. An answer with several different numbers has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

from askance.amounts import many
from askance.errors import BadData, optional_library

MatchName: TypeAlias = Literal["exact", "contains", "regex", "numeric", "relaxed", "anls", "vqa"]
MATCHES: tuple[MatchName, ...] = get_args(MatchName)

PEOPLE = 10
"""Answers of people that `vqa` goes by."""
RELAXED = 0.05
"""The largest relative error that `relaxed` takes as right."""
ANLS_ABOVE = 0.5
"""The similarity above which `anls` counts."""
LONGEST = 2_000
"""Characters of an answer that a pattern is looked for in."""
PATTERN_SECONDS = 0.5
"""The longest that one pattern may take: the data may come from a stranger."""

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS: Mapping[str, str] = {**{word: str(number) for number, word in enumerate(_DIGITS)}, "none": "0"}
_ARTICLES = frozenset({"a", "an", "the"})
_CONTRACTED = re.compile(
    r"(ain|aren|can|couldn|didn|doesn|don|hadn|hasn|haven|isn|mightn|mustn|needn|shouldn|wasn|weren|won|wouldn)t"
)
_WITHIN_NUMBER = re.compile(r"(?<=\d),(?=\d)")
_PERIOD = re.compile(r"(?<!\d)\.|\.(?!\d)")
_MARKS = re.compile(r"[;/\[\]\"{}()=+\\_\-><@`,?!:*“”…]")
_NUMBER = re.compile(r"(?<![\w.])[-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|\.\d)", re.IGNORECASE)
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_DIGITS)})\b", re.IGNORECASE)


def folded(text: str) -> str:
    """`text` as it is compared: without case, extra blanks, quotes around it and a period at its end."""
    return " ".join(text.strip().strip("\"'`").rstrip(".").split()).casefold()


def same_text(answer: str, true: str) -> bool:
    """Whether two answers are the same apart from case and extra blanks."""
    return " ".join(answer.split()).casefold() == " ".join(true.split()).casefold()


def plain(text: str) -> str:
    """`text` by the rules of the evaluation of visual question answering.

    Lower case, no articles, no punctuation, digits for number words up to ten, apostrophes where contractions lost them
    (Antol and others, *VQA: Visual Question Answering*, 2015). Between digits a comma goes and a period stays.
    """
    lowered = _WITHIN_NUMBER.sub("", text.lower().replace("’", "'"))
    words = _MARKS.sub(" ", _PERIOD.sub("", lowered)).split()
    return " ".join(_NUMBERS.get(word, word) for each in words if (word := _word(each)) and word not in _ARTICLES)


def _word(word: str) -> str:
    """A word without quotes around it, and with its apostrophe."""
    bare = word.strip("'")
    return f"{bare[:-1]}'t" if _CONTRACTED.fullmatch(bare) else bare


def number_in(text: str) -> float | None:
    """The number that stands in `text`; None where there is none, and where there are several different ones."""
    numbers = {float(number.replace(",", "").replace("−", "-")) for number in _NUMBER.findall(text)}
    if not numbers:
        numbers = {float(_NUMBERS[word.lower()]) for word in _NUMBER_WORD.findall(text)}
    return numbers.pop() if len(numbers) == 1 else None


def match(name: MatchName, answer: str, true: Sequence[str]) -> float:
    """How near `answer` is to the nearest of the true answers, from 0 to 1.

    Args:
        name: the comparison.
        answer: the answer.
        true: the true answers, or the patterns of `regex`, which `check_true` has accepted.

    Raises:
        BadData: a pattern takes too long.
        MissingExtra: the library that compares is not installed.
    """
    return _MATCHES[name](answer, true)


def check_true(name: MatchName, true: Sequence[str]) -> str | None:
    """Why the true answers cannot be compared with; None where they can.

    Raises:
        MissingExtra: the library that compares is not installed.
    """
    if name == "numeric" and (wrong := [text for text in true if number_in(text) is None]):
        return f"{wrong[0]!r} is no number"
    if name == "vqa" and len(true) != PEOPLE:
        are = "is" if len(true) == 1 else "are"
        return f"there {are} {many(len(true), 'answer')} of people, and `vqa` goes by {PEOPLE}"
    if name == "regex":
        for pattern in true:
            try:
                _compiled(pattern)
            except _patterns().error as error:
                return f"{pattern!r} is no pattern: {error}"
    if name == "anls":
        _edits()
    return None


def _exact(answer: str, true: Sequence[str]) -> float:
    return float(folded(answer) in {folded(each) for each in true})


def _contains(answer: str, true: Sequence[str]) -> float:
    text = folded(answer)
    return float(any(re.search(rf"(?<!\w){re.escape(folded(each))}(?!\w)", text) for each in true))


def _regex(answer: str, true: Sequence[str]) -> float:
    text = answer[:LONGEST]
    for pattern in true:
        try:
            if _compiled(pattern).search(text, timeout=PATTERN_SECONDS):
                return 1.0
        except TimeoutError as error:
            raise BadData(
                f"The pattern {pattern!r} takes longer than {PATTERN_SECONDS} s on one answer.",
                hint="Write it without repetitions inside repetitions.",
            ) from error
    return 0.0


def _numeric(answer: str, true: Sequence[str]) -> float:
    number = number_in(answer)
    return float(number is not None and number in {number_in(each) for each in true})


def _relaxed(answer: str, true: Sequence[str]) -> float:
    return float(any(_near(answer, each) for each in true))


def _near(answer: str, true: str) -> bool:
    number, wanted = number_in(answer), number_in(true)
    if number is None or not wanted:  # of 0 nothing is a share
        return folded(answer) == folded(true) or (number is not None and number == wanted)
    return abs(number - wanted) <= RELAXED * abs(wanted)


def _anls(answer: str, true: Sequence[str]) -> float:
    best = max((_edits().normalized_similarity(_lowered(answer), _lowered(each)) for each in true), default=0.0)
    return best if best > ANLS_ABOVE else 0.0


def _lowered(text: str) -> str:
    return " ".join(text.lower().split())


def _vqa(answer: str, true: Sequence[str]) -> float:
    said, given = plain(answer), [plain(each) for each in true]
    others = [given[:place] + given[place + 1 :] for place in range(len(given))]
    return sum(min(each.count(said) / 3, 1.0) for each in others) / len(others)


_MATCHES: Mapping[MatchName, Callable[[str, Sequence[str]], float]] = {
    "exact": _exact,
    "contains": _contains,
    "regex": _regex,
    "numeric": _numeric,
    "relaxed": _relaxed,
    "anls": _anls,
    "vqa": _vqa,
}


@cache
def _compiled(pattern: str) -> Any:
    return _patterns().compile(pattern, _patterns().IGNORECASE)


def _patterns() -> Any:
    """The package `regex`, whose searches have a limit of time."""
    return optional_library("regex", "text")


def _edits() -> Any:
    """Levenshtein's distance as `rapidfuzz` has it."""
    return optional_library("rapidfuzz.distance.Levenshtein", "text")
