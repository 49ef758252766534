"""Two statements held against each other word by word: what was changed, and how alike they are."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.agents.negatives import normal, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from askance.agents.negatives import NegativeKind

Sameness: TypeAlias = Literal["exact", "near", "none"]
"""`exact`: the same words in the same order; `near`: the same but for order, articles or spelling."""

CAUSAL_PREFIX = 0.3
"""Share of an explanation's words that stand before what `causal` changes: its first half, give or take."""

_IDLE = frozenset({"a", "an", "the", "so", "that"})
"""Words whose coming or going changes no meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One place where the words differ, in small letters; one of the two may be empty."""

    replaced: str
    replacement: str
    start: int
    """Words of the true statement before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a negative changes in the statement that it was made from."""

    edits: tuple[Edit, ...]
    parts: tuple[str, ...]
    """Of an action-reason, `action`, `reason` or both; empty where either text has no "because"."""
    only: bool | None
    """Whether only that was changed which its kind changes; None where the kind does not say, or is not known."""

    @property
    def places(self) -> int:
        """Different edits: one that is made throughout a statement counts once."""
        return len({(edit.replaced, edit.replacement) for edit in self.edits})


def edits(true: str, negative: str) -> tuple[Edit, ...]:
    """Where the words of two statements differ."""
    before, after = words(true), words(negative)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return tuple(
        Edit(replaced=" ".join(before[i:j]), replacement=" ".join(after[k:m]), start=i)
        for how, i, j, k, m in matcher.get_opcodes()
        if how != "equal"
    )


def change(true: str, negative: str, kind: NegativeKind | None, *, most_places: int = 1) -> Change:
    """What was changed, and whether it is what `kind` changes.

    Args:
        true: the statement that the negative was made from.
        negative: the negative.
        kind: of the negative; None is not known.
        most_places: different places that may be changed where one word or thing is exchanged.
    """
    found = edits(true, negative)
    parts = _parts(true, negative)
    changed = Change(edits=found, parts=parts, only=None)
    match kind:
        case "action" | "reason":
            only = parts == (kind,) if parts or _both_say_why(true, negative) else None
        case "adjective" | "object" | "verb":
            only = 0 < changed.places <= most_places
        case "causal":
            only = bool(found) and found[0].start >= CAUSAL_PREFIX * len(words(true))
        case "statement" | "random" | None:
            only = None
    return Change(edits=found, parts=parts, only=only)


def _parts(true: str, negative: str) -> tuple[str, ...]:
    if not _both_say_why(true, negative):
        return ()
    (action, reason), (other_action, other_reason) = _split(true), _split(negative)
    changed = {"action": action != other_action, "reason": reason != other_reason}
    return tuple(part for part, differs in changed.items() if differs)


def _both_say_why(*texts: str) -> bool:
    return all("because" in words(text) for text in texts)


def _split(text: str) -> tuple[list[str], list[str]]:
    """The words before the first "because", and those after it."""
    found = words(text)
    place = found.index("because")
    return found[:place], found[place + 1 :]


def similarity(one: str, other: str) -> float:
    """How alike two texts are in their words and letters, from 0 to 1: the ratio of Ratcliff and Obershelp."""
    return SequenceMatcher(None, normal(one), normal(other), autojunk=False).ratio()


def sameness(one: str, other: str, *, near: float) -> Sameness:
    """Whether two statements are the same in wording.

    Hard negatives share nearly all words with a true statement, so that a high similarity alone says nothing: `near`
    is only what differs in order, in idle words, or in the spelling of words that stay as long.

    Args:
        one: a statement.
        other: another.
        near: the similarity of two words from which on one is a spelling of the other.
    """
    if normal(one) == normal(other):
        return "exact"
    left, right = _weighty(one), _weighty(other)
    if sorted(left) == sorted(right):
        return "near"
    respelt = len(left) == len(right) and all(_spelt(*pair, near) for pair in zip(left, right, strict=True))
    return "near" if respelt else "none"


def _weighty(text: str) -> list[str]:
    return [word for word in words(text) if word not in _IDLE]


def _spelt(one: str, other: str, near: float) -> bool:
    """Whether two words are one in two spellings; how a word begins tells it from its opposite ("un-", "dis-")."""
    if one == other:
        return True
    alike = SequenceMatcher(None, one, other, autojunk=False).ratio()
    return min(len(one), len(other)) > 3 and one[:2] == other[:2] and alike >= near


def nearest(text: str, others: Sequence[str]) -> tuple[int, float]:
    """The place of the most similar of `others`, which are at least one, and how similar it is."""
    alike = [similarity(text, other) for other in others]
    place = max(range(len(alike)), key=lambda each: (alike[each], -each))
    return place, alike[place]
