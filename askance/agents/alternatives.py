"""What a reply may choose from: options with their numbers, letters and texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from askance.agents.reply_words import folded
from askance.nodes.reply import plain_text
from askance.prompts.fence import LETTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

WORD = re.compile(r"([^\W_]+(?:'[^\W_]+)*)")
_FURTHER_WORD = re.compile(rf"(?:[^\w\n]|_){{1,9}}{WORD.pattern}")
_OWN_LETTER = re.compile(r"\s*\(?([a-z])[).:]\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class Alternatives:
    """What a reply may choose from. Each alternative has one or more names; places count from 1.

    Args:
        names: the names of each alternative; case and punctuation do not matter.
        numbered: whether a number chooses the alternative at that place; otherwise numbers are ranks.
        lettered: whether they were shown with letters, A for the first; a letter then chooses, and a number does not.
    """

    names: tuple[tuple[str, ...], ...]
    numbered: bool = True
    lettered: bool = False
    letters: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """The letters that choose, in lower case, each with its place; empty where no letters were shown."""
    _tree: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """The words of all names as a tree; the empty word leads to the place of the name that ends there, and its end."""

    def __post_init__(self) -> None:
        tree: dict[Any, Any] = {}
        places = range(1, len(self.names) + 1)
        letters = dict(zip(LETTERS.lower(), places, strict=False)) if self.lettered else {}
        for place, name in ((n, folded(plain_text(name))) for n in places for name in self.names[n - 1]):
            own = _OWN_LETTER.match(name) if self.numbered and not self.lettered else None
            if own and ord(own[1]) - ord("a") + 1 == place:
                letters[own[1]] = place
                _plant(tree, name[own.end() :], place)
            is_label = name in letters if self.lettered else self.numbered and name.isdecimal()
            if not is_label:
                _plant(tree, name, place)
        object.__setattr__(self, "_tree", tree)
        object.__setattr__(self, "letters", letters if len(letters) == len(self.names) or self.lettered else {})

    @property
    def ranked(self) -> bool:
        """Whether a number before an alternative is its rank, since it names none."""
        return self.lettered or not self.numbered

    def named(self, text: str, at: int) -> tuple[int, int] | None:
        """The alternative that a folded text names at a place, and where its name ends; the longest name wins."""
        node: Mapping[str, Any] = self._tree
        found: tuple[int, int] | None = None
        word = WORD.match(text, at)
        while word is not None and word[1] in node:
            node, end = node[word[1]], word.end()
            if "" in node:
                place, ending = node[""]
                found = place, end + len(ending) * text.startswith(ending, end)
            word = _FURTHER_WORD.match(text, end)
        return found

    def sign(self, place: int) -> str:
        """What the alternative at a place is called by: its letter or its number."""
        return LETTERS[place - 1] if self.lettered and place <= len(LETTERS) else str(place)


def _plant(tree: dict[Any, Any], name: str, place: int) -> None:
    """Adds a folded name to a tree of words, with the signs at its end."""
    found = [*WORD.finditer(name)]
    for word in found:
        tree = tree.setdefault(word[0], {})
    if found:
        tree.setdefault("", (place, name[found[-1].end() :].rstrip()))


@lru_cache(maxsize=64)
def alternatives_of(options: tuple[str, ...], *, lettered: bool = False) -> Alternatives:
    """The alternatives that `options` are; made once, since many pictures have the same."""
    return Alternatives(tuple((option,) for option in options), lettered=lettered)
