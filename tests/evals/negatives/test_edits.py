from __future__ import annotations

from typing import Any

import pytest

from askance.evals.negatives.edits import Edit, change, edits, nearest, sameness

TEA = "I should drink tea Because it is hot"
FISH = "Fish live in water, so a fish would not sit in a tree."


def test_edits_are_the_words_that_differ() -> None:
    assert edits(TEA, "I should never drink tea because it is cold!") == (
        Edit(replaced="", replacement="never", start=2),
        Edit(replaced="hot", replacement="cold", start=7),
    )
    assert edits(TEA, TEA.upper()) == ()


CHANGES: dict[str, tuple[Any, str, str, bool | None]] = {
    "action": ("action", TEA, "I should avoid tea because it is hot", True),
    "action, and the reason too": ("action", TEA, "I should avoid tea because it is cold", False),
    "action, but the reason": ("action", TEA, "I should drink tea because it is cold", False),
    "action, without a reason": ("action", TEA, "I should avoid tea", None),
    "reason": ("reason", TEA, "I should drink tea because it is cold.", True),
    "reason, and the action too": ("reason", TEA, "I should avoid tea because it is cold", False),
    "adjective": ("adjective", TEA, "I should drink tea because it is cold", True),
    "adjective, added": ("adjective", TEA, "I should drink stale tea because it is hot", True),
    "adjective, in two places": ("adjective", TEA, "I should avoid tea because it is cold", True),
    "verb, in three places": ("verb", FISH, "Fish avoid water, so a bird would not hide in a tree.", False),
    "reason, written anew": ("reason", TEA, "I should drink tea because it lasts all day long", False),
    "adjective, the reason written anew": ("adjective", TEA, "I should drink tea because trains are late", False),
    "object, the action written anew": ("object", TEA, "I should climb mountains because it is hot", False),
    "verb, half of it written anew": ("verb", FISH, "Fish live in water, so my aunt sold her boat last week.", False),
    "object of several words": ("object", TEA, "I should drink fresh orange juice because it is hot", True),
    "action, respelt": (
        "action",
        "I shold eat chips Because theyre mine",
        "I should avoid chips because they are mine",
        True,
    ),
    "reason, beside a short form": ("reason", TEA, "I should drink the tea because it's cold", True),
    "reason, without an apostrophe": (
        "reason",
        "I should eat Mollys bread Because its soft",
        "I should eat Molly's bread because it's hard",
        True,
    ),
    "object throughout": ("object", "Buy tea, tea is hot", "Buy soup, soup is hot", True),
    "verb": ("verb", FISH, "Fish avoid water, so a fish would not sit in a tree.", True),
    "nothing": ("verb", FISH, FISH, False),
    "second half": ("causal", FISH, "Fish live in water, so a fish feels at home in a tree.", True),
    "first half": ("causal", FISH, "Birds live in water, so a fish would not sit in a tree.", False),
    "anything": ("statement", TEA, "I should fly because it is fast", None),
    "unknown kind": (None, TEA, "I should avoid tea because it is hot", None),
}


@pytest.mark.parametrize(("kind", "true", "negative", "only"), CHANGES.values(), ids=CHANGES)
def test_only_the_part_of_its_kind_may_change(kind: Any, true: str, negative: str, only: bool | None) -> None:
    assert change(true, negative, kind).only is only


def test_parts_are_named_where_both_say_why() -> None:
    assert change(TEA, "I should avoid tea because it is cold", None).parts == ("action", "reason")
    assert change(TEA, "I should avoid tea", None).parts == ()


PUBLISHED: dict[str, tuple[Any, str, str, bool | None]] = {
    "action": (
        "action",
        "I should drink red bull Because it will help me work hard",
        "I should avoid drinking red bull because it will help me work hard.",
        True,
    ),
    "reason": (
        "reason",
        "I should drink absolut vodka Because this vodka is like an island paradise",
        "I should drink absolut vodka because this vodka is nothing like an island paradise.",
        True,
    ),
    "object": (
        "object",
        "I should drink absolut vodka Because this vodka is like an island paradise",
        "I should drink coconut water Because this vodka is like an island paradise",
        True,
    ),
    "adjective that turns the action round too": (
        "adjective",
        "I should drink absolut vodka Because this vodka is like an island paradise",
        "I should avoid absolut vodka because this vodka is like a deserted island.",
        True,
    ),
}
"""From Fig. 7 of the paper."""


@pytest.mark.parametrize(("kind", "true", "negative", "only"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_negatives(kind: Any, true: str, negative: str, only: bool) -> None:
    assert change(true, negative, kind).only is only


SAME = {
    "case, marks and blanks": (TEA, " i should drink TEA, because it is hot. ", "exact"),
    "articles": (TEA, "I should drink the tea because it is hot", "near"),
    "order": (TEA, "Because it is hot I should drink tea", "near"),
    "spelling": ("I shold drink this coffee", "I should drink this coffee", "near"),
    "a negation": (TEA, "I should not drink tea because it is hot", "none"),
    "a short form of it": (TEA, "I shouldn't drink tea because it is hot", "none"),
    "an opposite that begins otherwise": ("it is sweetened", "it is unsweetened", "none"),
    "another ending": ("it makes me careful", "it makes me careless", "none"),
    "short words": ("it is hot", "it is not", "none"),
}


@pytest.mark.parametrize(("one", "other", "same"), SAME.values(), ids=SAME)
def test_sameness_is_of_words_not_of_letters(one: str, other: str, same: str) -> None:
    assert sameness(one, other, near=0.85) == sameness(other, one, near=0.85) == same


def test_of_equally_near_statements_the_first_is_nearest() -> None:
    assert nearest("tea", ["coffee", "TEA", "tea!"]) == (1, 1.0)
