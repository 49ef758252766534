"""The words by which replies that choose among options are read, as patterns: the lists of `answer_words.yaml`."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from askance.documents import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD_KINDS = ("name", "ranking", "option", "praise", "comparative", "final", "choose", "shown", "lead")
"""Kinds of the words that may stand before an answer."""
UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Thai, Japanese, Chinese and Korean: a word may follow another without a blank."""
_LETTER = rf"[^\W_{UNSPACED}]"


@cache
def word_list(kind: str) -> tuple[str, ...]:
    """The words of one list, folded, of all languages."""
    found = _word_lists()[kind]
    return tuple(map(folded, found if isinstance(found, list) else chain.from_iterable(found.values())))


@cache
def any_word(*kinds: str) -> re.Pattern[str]:
    """A pattern for the words of some lists, the longest first.

    No letter stands before or behind a word of a script that sets blanks.
    """
    words = sorted({word for kind in kinds for word in word_list(kind)}, key=len, reverse=True)
    return re.compile("|".join(map(_apart, words)))


@cache
def kinds_of(word: str) -> frozenset[str]:
    """The lists of words before an answer that a folded word stands in."""
    return frozenset(kind for kind in HEAD_KINDS if word in word_list(kind))


def place_in(kind: str, word: str) -> int:
    """The place of a word, from 1, in a list in which order matters: 3 for "three" in `numbers`, "3rd" in `ranks`."""
    found = _word_lists()[kind]
    if isinstance(found, list):
        return word_list(kind).index(word) + 1
    return next(place for place, words in enumerate(found.values(), start=1) if word in words)


def folded(text: str) -> str:
    """`text` in lower case, with digits and letters of every script and in circles as plain ones."""
    return "".join(map(_plain_sign, text)) if not text.isascii() else text.lower()


@cache
def _word_lists() -> Mapping[str, list[str] | Mapping[str, list[str]]]:
    return read_yaml(Path(__file__).with_name("answer_words.yaml"), what="lists of words")


def _apart(word: str) -> str:
    before = f"(?<!{_LETTER})" if re.match(_LETTER, word[0]) else ""
    behind = f"(?!-?{_LETTER})" if re.match(_LETTER, word[-1]) else ""
    return before + re.escape(word).replace(r"\ ", "[ ]+") + behind


@lru_cache(maxsize=4096)
def _plain_sign(sign: str) -> str:
    digit = unicodedata.decimal(sign, None)
    if digit is not None:
        return str(digit)
    if unicodedata.decomposition(sign).startswith("<circle>"):
        return unicodedata.normalize("NFKC", sign).lower()
    return sign.lower()
