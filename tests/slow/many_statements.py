"""Statements of ads, as many as are wanted and no two alike, and a data folder of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from random import Random

VERBS = ("buy", "try", "drink", "eat", "wear", "drive", "visit", "support", "choose", "stop buying", "give up")
MANNERS = ("", "new ", "cheap ", "organic ", "old-fashioned ", "electric ", "handmade ", "imported ")
THINGS = (
    *("coffee", "whiskey", "ketchup", "running shoes", "family cars", "perfume", "chocolate", "life insurance", "beer"),
    *("phones", "toothpaste", "jeans", "watches", "flights to Rome", "red lipstick", "dog food", "mattresses", "tea"),
    *("sunglasses", "guitars", "paint", "batteries", "ice cream", "cereal", "cameras", "raincoats", "shampoo"),
)
REASONS = ("it makes me", "it will keep me", "it lets me feel", "everybody who has it looks", "without it I am not")
HOW = (
    *("strong", "young", "safe", "warm", "elegant", "healthy", "fast", "free", "awake", "famous", "loved", "calm"),
    *("as solid as a brick wall", "like a rocket", "ready for the day", "happy", "close to nature", "part of a team"),
)
WHEN = ("", " every morning", " in winter", " on the road", " at work", " with friends", " when I am old", " tonight")

TRUE = 3
"""True statements of each image."""
OPTIONS = 15
"""Options of each image, with the true ones; the wrong ones are true of other images."""


def statements(count: int) -> list[str]:
    """`count` statements, no two alike, in an order that has nothing to do with their words."""
    drawn = list(islice(_all(), count))
    if len(drawn) < count:
        msg = f"There are {len(drawn):,} statements, and {count:,} are wanted."
        raise ValueError(msg)
    Random(0).shuffle(drawn)
    return drawn


def _all() -> Iterator[str]:
    for when, manner, how, reason, verb, thing in product(WHEN, MANNERS, HOW, REASONS, VERBS, THINGS):
        yield f"I should {verb} {manner}{thing} because {reason} {how}{when}"


def many_ads(folder: Path, count: int) -> list[str]:
    """Writes a data folder of `count` statements, laid out as release B: three are true of each image.

    Returns:
        The statements.
    """
    texts = statements(count)
    draw = Random(1)
    records: dict[str, list[list[str]]] = {}
    for start in range(0, count, TRUE):
        number, true = start // TRUE + 1, texts[start : start + TRUE]
        wrong = draw.sample(texts, OPTIONS - len(true))
        records[f"{number % 10}/{number}.jpg"] = [true, [*true, *(text for text in wrong if text not in true)]]
    path = folder / "train" / "QA_Combined_Action_Reason_train.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(records), encoding="utf-8")
    return texts
