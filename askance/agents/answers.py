"""Which options a reply chooses: the reader of `Answer: 3, 7, 12` and of its JSON form.

A number counts only where an answer is given. Digits inside the options ("buy 7up"), inside reasoning before the
answer, and inside the text that a model repeats after an index are no answers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from askance.nodes import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MARKER = re.compile(r"\b(?:final\s+)?(?:answers?|indices|index(?:es)?)\b\s*(?:(?:is|are)\b\s*:?|[:=])", re.IGNORECASE)
_WORDS = {
    word: number
    for number, word in enumerate(
        [
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ],
        start=1,
    )
}
_NUMBER = r"(?:\d{1,6}|" + "|".join(sorted(_WORDS, key=len, reverse=True)) + r")"
_INDEX = r"(?:(?:option|statement|number|no\.?|index)s?\s*)?[#(\[{$]*(?P<number>" + _NUMBER + r")(?![\w%°])[)\]}]*"
_ITEM = re.compile(r"\s*[-*•]?\s*" + _INDEX + r"(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_RANGE = re.compile(rf"^\s*(?:-|–|—|to\b|through\b)\s*(?P<end>{_NUMBER})\b", re.IGNORECASE)
_SPLIT = re.compile(r"[,;&\n]|\band\b|\bthen\b", re.IGNORECASE)
_REPEATED_TEXT = re.compile(r"^\s*[.):\-–—]\s*\S*[^\W\d]")
_MARKUP = re.compile(r"[*_`]+|\\(?:boxed|text)\b")


def read_answer(text: str, options: Sequence[str], *, single: bool = False) -> tuple[int, ...]:
    """The numbers of the options that `text` chooses, from 1, best first, each once.

    The last answer marker (`Answer:`) counts; without one the whole reply must be a list of numbers, or lines that
    begin with one. Ranges (`3-5`) and words (`three`) are read.

    Args:
        text: the model's reply.
        options: the options as they were shown, so that their own text is not read as an answer.
        single: whether exactly one number was asked for.

    Raises:
        Unreadable: no answer, one beyond the options, or several where one was asked for.
    """
    plain = _without_options(_MARKUP.sub("", text).strip(), options)
    markers = [*_MARKER.finditer(plain)]
    if markers:
        numbers = _numbers(plain[markers[-1].end() :])
    elif _begins_with_index(plain):
        numbers = _numbers(plain)
    else:
        numbers = []
    if not numbers:
        raise Unreadable("no answer of the form `Answer: 3, 7` is given")
    return check_numbers(numbers, len(options), single=single)


def read_numbers(data: Mapping[str, Any], field: str, count: int, *, single: bool = False) -> tuple[int, ...]:
    """The chosen numbers in field `field` of a JSON reply; whole numbers only, from 1 to `count`.

    Raises:
        Unreadable: as `read_answer`.
    """
    found: Any = data.get(field)
    numbers: list[Any] = found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]
    if not numbers:
        raise Unreadable(f"`{field}` is empty; choose at least one option")
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise Unreadable(f"`{field}` must hold numbers of options, from 1 to {count}")
    return check_numbers(numbers, count, single=single)


def check_numbers(numbers: Sequence[int], count: int, *, single: bool) -> tuple[int, ...]:
    """`numbers` in order, each once.

    Raises:
        Unreadable: one is beyond 1 … `count`, or there are several where `single` is asked for.
    """
    beyond = [number for number in numbers if not 1 <= number <= count]
    if beyond:
        raise Unreadable(f"{', '.join(map(str, beyond))} is not among the options 1 to {count}")
    chosen = tuple(dict.fromkeys(numbers))
    if single and len(chosen) > 1:
        raise Unreadable(f"{len(chosen)} options are chosen; choose exactly one")
    return chosen


def _begins_with_index(text: str) -> bool:
    """Whether every line of `text` begins with an index, so that the reply is the answer itself."""
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(_ITEM.fullmatch(line) and _is_answer_line(line) for line in lines)


def _is_answer_line(line: str) -> bool:
    """A line that is indexes alone, or one index followed by the text of its option."""
    item = _ITEM.fullmatch(line)
    if item is None:
        return False
    rest = item["rest"]
    return bool(_REPEATED_TEXT.match(rest)) or not re.search(r"[^\W\d]", re.sub(_NUMBER + r"|and|to|&", "", rest))


def _without_options(text: str, options: Sequence[str]) -> str:
    """`text` with the options' own wording blanked, so that only indexes are left of a repeated option."""
    for option in sorted({option.strip() for option in options}, key=len, reverse=True):
        if len(option) > 3 and option.lower() not in _WORDS and re.search(r"[^\W\d]", option):  # never blank a number
            text = re.sub(re.escape(option), " ", text, flags=re.IGNORECASE)
    return text


def _numbers(tail: str) -> list[int]:
    """The indexes in what follows an answer marker; stops at the first line that is prose."""
    numbers: list[int] = []
    for line in tail.strip().splitlines():
        if not line.strip():
            if numbers:
                break
            continue
        found = _line_numbers(line, first=not numbers)
        if not found and numbers:
            break
        numbers.extend(found)
    return numbers


def _line_numbers(line: str, *, first: bool) -> list[int]:
    item = _ITEM.match(line)
    if item and _REPEATED_TEXT.match(item["rest"]):  # "1. buy 7up": one index, then its option
        return [_value(item["number"])]
    numbers: list[int] = []
    for piece in _SPLIT.split(line):
        item = _ITEM.match(piece)
        if item is None:
            continue
        if re.match(r"\s*[^\W\d]", item["rest"]) and not _RANGE.match(item["rest"]) and not (first and not numbers):
            continue  # "3 times better": the number belongs to prose
        numbers.extend(_expanded(_value(item["number"]), item["rest"]))
    return numbers


def _expanded(start: int, rest: str) -> list[int]:
    ranged = _RANGE.match(rest)
    if ranged is None:
        return [start]
    end = _value(ranged["end"])
    return [*range(start, end + 1)] if start <= end <= start + 1000 else [start, end]


def _value(number: str) -> int:
    return int(number) if number.isdigit() else _WORDS[number.lower()]
