"""Short answers made comparable, by the rules of the evaluation of visual question answering.

Lower case, no articles, no punctuation, digits for number words up to ten, apostrophes where contractions lost them
(Antol and others, *VQA: Visual Question Answering*, 2015). Between digits a comma goes and a period stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS: Mapping[str, str] = {**{word: str(number) for number, word in enumerate(_DIGITS)}, "none": "0"}
_ARTICLES = frozenset({"a", "an", "the"})
_CONTRACTED = re.compile(
    r"(ain|aren|can|couldn|didn|doesn|don|hadn|hasn|haven|isn|mightn|mustn|needn|shouldn|wasn|weren|won|wouldn)t"
)
_WITHIN_NUMBER = re.compile(r"(?<=\d),(?=\d)")
_PERIOD = re.compile(r"(?<!\d)\.|\.(?!\d)")
_MARKS = re.compile(r"[;/\[\]\"{}()=+\\_\-><@`,?!:*“”…]")


def plain(text: str) -> str:
    """An answer as it is compared in an exact match."""
    lowered = _WITHIN_NUMBER.sub("", text.lower().replace("’", "'"))
    words = _MARKS.sub(" ", _PERIOD.sub("", lowered)).split()
    kept = [_NUMBERS.get(word, word) for word in (_word(each) for each in words) if word and word not in _ARTICLES]
    return " ".join(kept)


def same_text(said: str, true: str) -> bool:
    """Whether two answers are the same but for case and superfluous blanks."""
    return " ".join(said.split()).casefold() == " ".join(true.split()).casefold()


def _word(word: str) -> str:
    """A word without quotes around it, and with its apostrophe."""
    bare = word.strip("'")
    return f"{bare[:-1]}'t" if _CONTRACTED.fullmatch(bare) else bare
