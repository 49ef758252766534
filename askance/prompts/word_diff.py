"""Two texts word by word: which words stayed, which went, and which came."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

Sign: TypeAlias = Literal["same", "old", "new"]

LEAST_ALIKE = 0.4
"""Share of the words that two texts must have in common to be shown word by word; others are shown as a whole."""
MOST_PIECES = 4_000
"""Words and signs of a text; longer ones are compared line by line."""

_PIECE = re.compile(r"\s+|\w+|[^\s\w]")
_TORN_END, _TORN_START = re.compile(r"\w+$"), re.compile(r"^\w+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of text that is in both texts, or in one of them."""

    sign: Sign
    text: str


def word_diff(old: str, new: str) -> list[Stretch]:
    """The stretches of two texts in their order; texts with little in common give one stretch each.

    Args:
        old: the one text.
        new: the other.
    """
    if old == new:
        return [Stretch("same", old)] if old else []
    a, b = _pieces(old), _pieces(new)
    if max(len(a), len(b)) > MOST_PIECES:
        a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
        if max(len(a), len(b)) > MOST_PIECES:
            return _whole(old, new)
    matched = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    alike = sum(_words(a[start:end]) for tag, start, end, _, _ in matched if tag == "equal")
    most, least = max(_words(a), _words(b)), min(_words(a), _words(b))
    if alike < least and alike < LEAST_ALIKE * most:  # words of both are changed, and few are not
        return _whole(old, new)
    return [*_stretches(a, b, matched)]


def excerpt(stretches: Sequence[Stretch], *, around: int = 40) -> list[Stretch]:
    """The stretches with what both texts have in common cut to so many characters before and after a change."""
    last = len(stretches) - 1

    def cut(place: int, each: Stretch) -> Stretch:
        return replace(each, text=_cut(each.text, around, first=place == 0, last=place == last))

    return [cut(place, each) if each.sign == "same" else each for place, each in enumerate(stretches)]


def _cut(text: str, around: int, *, first: bool, last: bool) -> str:
    """The ends of a text that stand beside a change, in whole words."""
    head = "" if first else text[:around]
    tail = "" if last else text[-around:]
    if len(text) <= len(head) + len(tail) + 3:
        return text
    head, line_end, _ = head.partition("\n")
    _, line_start, tail = tail.rpartition("\n")
    if line_end or line_start:  # the lines of a change are enough
        return f"{head}{line_end}…{line_start}{tail}"
    return f"{_TORN_END.sub('', head)}…{_TORN_START.sub('', tail)}"


def marked(stretches: Sequence[Stretch]) -> str:
    """The stretches in a line: `[-word that went-]` and `{+word that came+}`."""
    marks = {"same": ("", ""), "old": ("[-", "-]"), "new": ("{+", "+}")}
    return " ".join("".join(f"{marks[each.sign][0]}{each.text}{marks[each.sign][1]}" for each in stretches).split())


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def _words(pieces: Sequence[str]) -> int:
    return sum(any(map(str.isalnum, piece)) for piece in pieces)


def _whole(old: str, new: str) -> list[Stretch]:
    return [Stretch("old", old), Stretch("new", new)]


def _stretches(
    a: Sequence[str], b: Sequence[str], matched: Sequence[tuple[str, int, int, int, int]]
) -> Iterator[Stretch]:
    """The stretches; blanks alone between two changes are a part of both."""
    old = new = ""
    for place, (tag, a_start, a_end, b_start, b_end) in enumerate(matched):
        before, after = "".join(a[a_start:a_end]), "".join(b[b_start:b_end])
        if tag != "equal" or (before.isspace() and "\n" not in before and 0 < place < len(matched) - 1):
            old, new = old + before, new + after
            continue
        yield from _changed(old, new)
        old = new = ""
        yield Stretch("same", before)
    yield from _changed(old, new)


def _changed(old: str, new: str) -> Iterator[Stretch]:
    if old:
        yield Stretch("old", old)
    if new:
        yield Stretch("new", new)
