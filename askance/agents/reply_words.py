"""The words and signs of replies that choose among options, and the phrases of `answer_words.yaml` among them."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from askance.documents import read_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

DECLARED = "\ue000"
"""Stands before what a reply marks as its answer by a box or a tag."""
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Thai, Japanese, Chinese and Korean: a word may follow another without a blank, so that each sign is one."""
_LETTER = rf"[^\W_{_UNSPACED}\u2460-\u2473]"
_WORD = (
    r"\d+(?:[.:/^]\d+)*[ ]?%|\d+(?:[.:/^]\d+)+"  # 90%, 24/7: no number of an option
    rf"|[^\W\d_{_UNSPACED}](?:[.=#]{_LETTER}+|#)+"  # U.S.A, x=3, C#: no letter of an option
    rf"|{_LETTER}+(?:(?:['&+/]|(?<!\d)-|-(?!\d)){_LETTER}+)*"  # it's, best-fitting, A+B; 3-5 is a range
    rf"|[{_UNSPACED}\u2460-\u2473{DECLARED}×\u2600-\u27bf\U0001f000-\U0001faff]"
)
_ARROW = re.compile(r"[-=]+>|→")
_BULLET = re.compile(r"(?<=\n)[ \t]*[->]+(?=\s)")
_MINUS = re.compile(r"(?<=[\s:(])-$")
_SAME = str.maketrans("[]=&+|", "():,,,", " \t\r\"'`$«»{}#№•·◦‣▪●∙\\_【】《》")


class Word(NamedTuple):
    """One word of a text: digits and letters of every script and in circles as plain ones, in lower case."""

    text: str
    signs: str
    """What stands before it, without blanks, quotes and bullets, with one sign for all brackets, and one for lists."""
    capital: bool


@lru_cache(maxsize=512)
def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text; the last one is a line break and has the signs at the end of the text."""
    found: list[Word] = []
    end = 0
    text = unicodedata.normalize("NFC", f"\n{text}")
    text = text if text.isascii() else "".join(sign for sign in text if unicodedata.category(sign)[0] != "M")
    for word in re.finditer(_WORD, text):  # compiled with the first text
        found.append(
            Word(unicodedata.normalize("NFKC", word[0]).lower(), _signs(text[end : word.start()]), word[0][0].isupper())
        )
        end = word.end()
    return (*found, Word("\n", _signs(text[end:] + "\n"), capital=False))


@lru_cache(maxsize=4096)
def _signs(between: str) -> str:
    return _ARROW.sub(">", _MINUS.sub("~", _BULLET.sub("", between))).translate(_SAME)


# ---- Phrases

_LONGEST = 10
"""Words of a phrase, at most."""


def phrases_at(words: Sequence[Word], at: int) -> dict[str, int]:
    """The lists of which a phrase stands at a place of some words, each with the end of the longest one."""
    ends: dict[str, int] = {}
    phrase, sign = "", ""
    for end in range(at + 1, min(at + _LONGEST, len(words) - 1) + 1):
        phrase, sign = phrase + sign + words[end - 1].text, words[end].signs[:1] or " "
        ends |= dict.fromkeys((*phrases().get(phrase, ()), *phrases().get(phrase + sign, ())), end)
        if sign != " ":
            break
    return ends


@cache
def phrases() -> dict[str, dict[str, str]]:
    """All phrases of all lists: each with the lists that it stands in, and for which language or number it does.

    A sign at the end of a phrase must stand behind its words.
    """
    found: dict[str, dict[str, str]] = {}
    lists = read_yaml(Path(__file__).with_name("answer_words.yaml"), what="lists of words")
    entries = ((kind, *entry) for kind, entries in lists.items() for entry in entries.items())
    for kind, key, phrase in ((kind, key, phrase) for kind, key, entry in entries for phrase in entry):
        *words, last = words_of(phrase)
        found.setdefault(" ".join(word.text for word in words) + last.signs.strip("\n"), {})[kind] = key
    return found
