"""Edits from a true statement to its negative: which words and parts differ, and how similar two texts are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from askance.agents.negative_writer import NegativeKind, normal, words

Sameness: TypeAlias = Literal["exact", "near", "none"]
"""`exact`: the same words in the same order; `near`: the same but for order, articles or spelling."""

CAUSAL_PREFIX = 0.3
"""Share of an explanation's words that stand before a `causal` change, at least: about its first half."""

_ARTICLES = frozenset({"a", "an", "the"})
_FRAME = frozenset({"i", "you", "we", "should", "must"})
"""Words with which an action begins: "I should"."""

_LONG: Mapping[str, str] = {
    **{f"{word}'s": f"{word} is" for word in ("it", "that", "there", "he", "she", "what", "who", "here")},
    "its": "it is",
    "theyre": "they are",
    "dont": "do not",
    "doesnt": "does not",
    "isnt": "is not",
    "won't": "will not",
    "can't": "can not",
    "cannot": "can not",
    "cant": "can not",
}
_SHORT: Mapping[str, str] = {"n't$": " not", "'re$": " are", "'ll$": " will", "'ve$": " have", "'m$": " am"}
_FILLERS = _ARTICLES | {"so", "that"}
"""Words that can be added or left out without a change of meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditLimits:
    """How much a negative of a kind may change."""

    spelling: float = 0.85
    """Similarity, from 0 to 1, from which on two words with the same beginning count as spellings of one word."""
    most_places: int = 2
    """Places that may be changed where one word or thing is exchanged."""
    most_words: int = 4
    """Words of each such place, articles left out."""
    least_kept: float = 0.25
    """Share of its words that must stay, of a reason or of a part in which one word or thing is exchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One place where the words differ, in small letters; either text may be empty."""

    replaced: str
    replacement: str
    start: int
    """Words of the true statement before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementChange:
    """What a negative changes in the statement that it was made from."""

    edits: tuple[Edit, ...]
    parts: tuple[str, ...]
    """Which parts of an action-reason changed: `action`, `reason` or both; empty where a text has no "because"."""
    only: bool | None
    """Whether only what its kind changes was changed; None if the kind names no part, or is not known."""

    @property
    def places(self) -> int:
        """How many edits differ: one that is made throughout a statement counts once."""
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


def change(true: str, negative: str, kind: NegativeKind | None, *, limits: EditLimits | None = None) -> StatementChange:
    """What was changed, and whether it is what `kind` changes.

    Articles, short forms such as "it's" and spellings do not count as changes. Of the kind `reason`, some words of the
    reason must stay. Of kinds that exchange one word or thing, no changed place may be long, and each part keeps some
    of its words: action and reason, or else the whole text.

    Args:
        true: the statement that the negative was made from.
        negative: the negative.
        kind: of the negative; None is not known.
        limits: how much may be changed.
    """
    limits = limits or EditLimits()
    before = _plain(true)
    after = _in_spelling_of(_plain(negative), before, limits.spelling)
    halves = _halves(before, after)
    parts = tuple(part for part, (one, other) in halves.items() if part != "all" and one != other)
    spans, places = edits(true, negative), _places(before, after)
    match kind:
        case "action" | "reason":
            only = None if "all" in halves else parts == (kind,)
            if only and kind == "reason":
                only = _share_kept(*halves["reason"]) >= limits.least_kept
        case "adjective" | "object" | "verb":
            short = all(max(len(one), len(other)) <= limits.most_words for one, other in places)
            similar = all(_share_kept(one, other) >= limits.least_kept for one, other in halves.values())
            only = 0 < len(places) <= limits.most_places and short and similar
        case "causal":
            only = bool(spans) and spans[0].start >= CAUSAL_PREFIX * len(words(true))
        case "statement" | "random" | None:
            only = None
    return StatementChange(edits=spans, parts=parts, only=only)


def _plain(text: str) -> list[str]:
    """The words of a text without articles, its short forms written out."""
    long = [each for word in words(text) for each in _LONG.get(word, _written_out(word)).split()]
    return [word for word in long if word not in _ARTICLES]


def _written_out(word: str) -> str:
    for short, full in _SHORT.items():
        word = re.sub(short, full, word)
    return word.replace("'", "")


def _in_spelling_of(some: Sequence[str], others: Sequence[str], near: float) -> list[str]:
    """The words of `some`, each in the spelling that `others` have for it."""
    return [
        next((other for other in (word, *others) if other in others and _is_spelling(word, other, near)), word)
        for word in some
    ]


def _halves(before: Sequence[str], after: Sequence[str]) -> Mapping[str, tuple[Sequence[str], Sequence[str]]]:
    """Action and reason before and after, where both texts say why; else all of them."""
    if not ("because" in before and "because" in after):
        return {"all": (before, after)}
    (one, why), (other, other_why) = (
        (words_of_text[:at], words_of_text[at + 1 :])
        for words_of_text in (before, after)
        for at in [words_of_text.index("because")]
    )
    return {"action": (one, other), "reason": (why, other_why)}


def _places(before: Sequence[str], after: Sequence[str]) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Each replaced text with its replacement, once; two places with one word between them count as one."""
    ends: list[list[int]] = []
    for how, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if how != "equal":
            if ends and i - ends[-1][1] <= 1:
                ends[-1][1], ends[-1][3] = j, m
            else:
                ends.append([i, j, k, m])
    return {(tuple(before[i:j]), tuple(after[k:m])) for i, j, k, m in ends}


def _share_kept(before: Sequence[str], after: Sequence[str]) -> float:
    """The share of words that stayed, without those of the frame ("I should"); 1 where there are none."""
    one, other = ([word for word in text_words if word not in _FRAME] for text_words in (before, after))
    same = sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())
    return same / max(len(one), len(other), 1) if one or other else 1.0


def similarity(one: str, other: str) -> float:
    """How similar two texts are in their words and letters, from 0 to 1: the ratio of Ratcliff and Obershelp."""
    return SequenceMatcher(None, normal(one), normal(other), autojunk=False).ratio()


def sameness(one: str, other: str, *, near: float) -> Sameness:
    """Whether two statements are the same in wording.

    Hard negatives share nearly all words with a true statement, so a high similarity alone says nothing. Two statements
    are `near` only where they differ in order, in idle words, or in spelling, word by word.

    Args:
        one: a statement.
        other: another.
        near: from this similarity on, one word is a spelling of the other.
    """
    if normal(one) == normal(other):
        return "exact"
    left, right = _content_words(one), _content_words(other)
    if sorted(left) == sorted(right):
        return "near"
    respelt = len(left) == len(right) and all(_is_spelling(*pair, near) for pair in zip(left, right, strict=True))
    return "near" if respelt else "none"


def _content_words(text: str) -> list[str]:
    return [word for word in words(text) if word not in _FILLERS]


def _is_spelling(one: str, other: str, near: float) -> bool:
    """Whether two words are spellings of one word; words with different beginnings are not ("un-", "dis-")."""
    if one == other:
        return True
    alike = SequenceMatcher(None, one, other, autojunk=False).ratio()
    return min(len(one), len(other)) > 3 and one[:2] == other[:2] and alike >= near


def nearest(text: str, others: Sequence[str]) -> tuple[int, float]:
    """The place of the most similar of `others` (at least one), and its similarity."""
    alike = [similarity(text, other) for other in others]
    place = max(range(len(alike)), key=lambda each: (alike[each], -each))
    return place, alike[place]
