"""Which options a reply chooses: the reader of `Answer: 3, 7, 12` and of its JSON form.

A number counts only where an answer is given. Digits inside the options ("buy 7up"), inside reasoning before the
answer, and inside the text that a model repeats after an index are no answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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
_OPTION = "\x00"
"""Stands in a reply for the wording of an option that the model repeats."""
_SEPARATOR = re.compile(r"(?:[\s,;&]|\b(?:and|then)\b)*", re.IGNORECASE)
_ITEM = re.compile(
    r"(?:[-*•]\s+)?(?:(?:option|statement|number|no\.?|index)s?\s*)?[#(\[{$]*"
    rf"(?P<number>{_NUMBER})(?![\w%°]|\.\d|\s*/\s*\d)[)\]}}]*",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"\s*(?:-|–|—|to\b|through\b)\s*(?P<end>{_NUMBER})(?![\w%°.]\d)\b[)\]}}]*", re.IGNORECASE)
_ENUMERATED = re.compile(rf"\s*[.):\-–—]?\s*{_OPTION}|\s*[.):\-–—]\s*[^\w\s]*[^\W\d]")
_END = re.compile(r"\s*(?:\([^()]*\)\s*)?(?:[.!]\s*)?(?=$|[,;&]|and\b|then\b)", re.IGNORECASE)
_REASON = re.compile(
    r"\s+(?:as|are|because|best|both|due|fits?|for|if|instead|is|most|only|over|rather|seems?|since|that|which|would)\b",
    re.IGNORECASE,
)
"""Words that go on about a chosen option; before any other word a number counts something ("3 times the fizz")."""
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
    elif _is_list(plain):
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


def _without_options(text: str, options: Sequence[str]) -> str:
    """`text` with a mark in place of every option that it repeats word for word, the longest first."""
    for option in sorted({option.strip() for option in options}, key=len, reverse=True):
        if len(option) > 3 and option.lower() not in _WORDS and re.search(r"[^\W\d]", option):  # a number stays
            text = re.sub(re.escape(option), _OPTION, text, flags=re.IGNORECASE)
    return text


@dataclass(frozen=True, slots=True)
class _Line:
    """What one line of a reply chooses."""

    numbers: tuple[int, ...]
    enumerated: bool
    """Whether it is an index that the text of an option follows."""
    whole: bool
    """Whether it says nothing else."""


def _line(text: str) -> _Line:
    """The indexes at the beginning of a line, up to the first word that is none."""
    numbers: list[int] = []
    enumerated = False
    place = _SEPARATOR.match(text).end()  # pyright: ignore[reportOptionalMemberAccess]  # matches anything
    while item := _ITEM.match(text, place):
        found, after = _expanded(item, text)
        follows = _ENUMERATED.match(text, after)
        ends = _END.match(text, after)
        if not (follows or ends or _REASON.match(text, after)):
            break
        numbers += found
        enumerated = enumerated or follows is not None
        stop = follows.end() if follows else ends.end() if ends else len(text)
        if not ends and not (follows and text[stop - 1] == _OPTION):
            return _Line(tuple(numbers), enumerated, whole=False)
        place = _SEPARATOR.match(text, stop).end()  # pyright: ignore[reportOptionalMemberAccess]
    return _Line(tuple(numbers), enumerated, whole=not text[place:].strip(" .!" + _OPTION))


def _expanded(item: re.Match[str], text: str) -> tuple[list[int], int]:
    """The numbers of one item, a range written out, and where it ends."""
    start = _value(item["number"])
    ranged = _RANGE.match(text, item.end())
    if ranged is None:
        return [start], item.end()
    end = _value(ranged["end"])
    return [*range(start, end + 1)] if start <= end <= start + 1000 else [start, end], ranged.end()


def _numbers(tail: str) -> list[int]:
    """The indexes in what follows an answer marker: its first line, and those after it that go on in the same way."""
    lines = [_line(line) for line in tail.strip().splitlines() if line.strip()]
    numbers: list[int] = []
    for line in lines:
        same = not numbers or line.enumerated == lines[0].enumerated
        if not line.numbers or not same or (numbers and not (line.whole or line.enumerated)):
            break
        numbers.extend(line.numbers)
        if not (line.whole or line.enumerated):
            break
    return numbers


def _is_list(text: str) -> bool:
    """Whether every line of `text` is indexes, or one index and its option: the reply is the answer itself."""
    lines = [_line(line) for line in text.splitlines() if line.strip()]
    return bool(lines) and all(line.numbers and (line.whole or line.enumerated) for line in lines)


def _value(number: str) -> int:
    return int(number) if number.isdigit() else _WORDS[number.lower()]
