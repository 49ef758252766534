"""Lots: what is drawn and how it is put in order depends on a seed and the image alone.

Neither the order of the images nor a version of Python has a part in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

Item = TypeVar("Item")

ORDERS = (1, 2)
"""How many orders options may be shown in."""


def lot(*parts: str | int) -> int:
    """A number that nobody chose, of 256 bits."""
    return int(sha256(json.dumps(parts).encode()).hexdigest(), 16)


def shuffled(texts: Sequence[str], *, seed: int, key: str) -> tuple[str, ...]:
    """`texts` in the order that the seed gives them for the image `key`, in whatever order they come."""
    return tuple(sorted(texts, key=lambda text: lot(seed, key, text)))


def in_order(texts: Sequence[str], *, seed: int, key: str, order: int) -> tuple[str, ...]:
    """The options as they are shown: the second order is the first one backwards, so that every option moves."""
    first = shuffled(texts, seed=seed, key=key)
    return first if order == 1 else first[::-1]


def drawn(pool: Sequence[Item], *, seed: int, key: str) -> Iterator[Item]:
    """Items of `pool`, each at most once, in a random order that begins anew for each image."""
    seen = set[int]()
    turn = 0
    while len(seen) < len(pool):
        place = lot(seed, key, turn) % len(pool)
        turn += 1
        if place not in seen:
            seen.add(place)
            yield pool[place]


def small_lot(*parts: str) -> float:
    """A number that stands for `parts` in a table of numbers: of 48 bits, which a float holds exactly."""
    return float(lot(*parts) >> 208)
