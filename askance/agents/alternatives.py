"""What a reply may choose from: options with their numbers, letters and texts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from askance.agents.reply_words import words_of
from askance.nodes.reply import plain_text
from askance.prompts.fence import LETTERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.agents.reply_words import Word

_OWN_LETTER = re.compile(r"\s*\(?([A-Z])[).:]\s+(?=\S)", re.IGNORECASE)


class Alternatives:
    """What a reply may choose from. Each alternative has one or more names; places count from 1.

    Args:
        names: the names of each alternative; case and punctuation do not matter.
        numbered: whether a number chooses the alternative at that place; otherwise numbers are ranks.
        lettered: whether they were shown with letters, A for the first; a letter then chooses, and a number does not.

    Attributes:
        letters: the letters that choose, in lower case, each with its place; empty where no letters were shown.
        endings: the signs at the ends of names, the longest first.
    """

    def __init__(self, names: Sequence[Sequence[str]], *, numbered: bool = True, lettered: bool = False) -> None:
        self.names, self.numbered, self.lettered = names, numbered, lettered
        self.letters = dict(zip(LETTERS.lower(), range(1, len(names) + 1), strict=False)) if lettered else {}
        self._tree: dict[Any, Any] = {}  # words of names; the empty word leads to the place of the name that ends there
        endings: set[str] = set()
        for place, name in ((n, plain_text(name)) for n, named in enumerate(names, start=1) for name in named):
            own = _OWN_LETTER.match(name) if numbered and not lettered else None
            if own and ord(own[1].lower()) - ord("a") + 1 == place:
                self.letters[own[1].lower()] = place
                self._plant(name[own.end() :], place)
            if not (name.lower() in self.letters if lettered else numbered and name.isdecimal()):
                self._plant(name, place)
            endings.add(words_of(name)[-1].signs.strip("\n()"))
        self.endings = sorted(endings - {""}, key=len, reverse=True)
        self.letters = self.letters if lettered or len(self.letters) == len(names) else {}

    def _plant(self, name: str, place: int) -> None:
        """Adds a name to the tree of words."""
        tree = self._tree
        for word in words_of(name)[:-1]:
            tree = tree.setdefault(word.text, {})
        if tree is not self._tree:
            tree.setdefault("", place)

    @property
    def ranked(self) -> bool:
        """Whether a number before an alternative is its rank, since it names none."""
        return self.lettered or not self.numbered

    def named(self, words: Sequence[Word], at: int) -> tuple[int, int] | None:
        """The alternative that the words from a place on name, and where its name ends; the longest name wins."""
        node: Mapping[str, Any] = self._tree
        found: tuple[int, int] | None = None
        for end in range(at, len(words)):
            if words[end].text not in node or (end > at and "\n" in words[end].signs):
                break
            node = node[words[end].text]
            found = (node[""], end + 1) if "" in node else found
        return found

    def sign(self, place: int) -> str:
        """What the alternative at a place is called by: its letter or its number."""
        return LETTERS[place - 1] if self.lettered and place <= len(LETTERS) else str(place)


@lru_cache(maxsize=64)
def alternatives_of(options: tuple[str, ...], *, lettered: bool = False) -> Alternatives:
    """The alternatives that `options` are; made once, since many pictures have the same."""
    return Alternatives(tuple((option,) for option in options), lettered=lettered)
