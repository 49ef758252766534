"""Long texts in parts that an encoder reads whole: at the ends of sentences, else between words, else within a word.

Neighbouring sentences stay together as long as they fit; so do words where a sentence does not. No word is left out,
and none is in two parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

_SENTENCES = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。\uff01\uff1f])|\s*\n\s*")


def parts_of(text: str, fits: Callable[[str], bool]) -> tuple[str, ...]:
    """`text` in parts that fit, in order; one part where it fits as it is.

    Args:
        text: of any length.
        fits: whether an encoder reads a text whole; a single character counts as if it did.
    """
    if fits(text):
        return (text,)
    return tuple(_together(_sentences(text), fits, smaller=_by_words))


def _sentences(text: str) -> list[str]:
    cuts = [0, *(found.end() for found in _SENTENCES.finditer(text)), len(text)]
    pieces = (text[start:end].strip() for start, end in pairwise(cuts))
    return [piece for piece in pieces if piece]


def _by_words(sentence: str, fits: Callable[[str], bool]) -> Iterator[str]:
    return _together(sentence.split(), fits, smaller=_by_halves)


def _by_halves(word: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """A word that does not fit, such as an address, in pieces that do."""
    if len(word) == 1 or fits(word):
        yield word
        return
    middle = len(word) // 2
    yield from _by_halves(word[:middle], fits)
    yield from _by_halves(word[middle:], fits)


def _together(
    pieces: Sequence[str],
    fits: Callable[[str], bool],
    *,
    smaller: Callable[[str, Callable[[str], bool]], Iterator[str]],
) -> Iterator[str]:
    """As many neighbouring pieces in a part as fit; a piece that does not fit alone is made smaller."""
    held = ""
    for piece in pieces:
        longer = f"{held} {piece}" if held else piece
        if fits(longer):
            held = longer
            continue
        if held:
            yield held
        held = piece if fits(piece) else ""
        if not held:
            yield from smaller(piece, fits)
    if held:
        yield held
