"""Random choices that a seed and an image decide: hashes, random orders, and drawing.

The order in which images come and the version of Python have no influence on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

Item = TypeVar("Item")

ORDERS = (1, 2)
"""In how many orders options may be shown."""


def stable_hash(*parts: str | int) -> int:
    """A hash of 256 bits that is the same on every machine; it serves as a random number and to sort by."""
    return int(sha256(json.dumps(parts).encode()).hexdigest(), 16)


def stable_number(*parts: str) -> float:
    """A hash of 48 bits, which a float holds exactly: it stands for `parts` in a table of numbers."""
    return float(stable_hash(*parts) >> 208)


def shuffled(texts: Sequence[str], *, seed: int, key: str) -> tuple[str, ...]:
    """`texts` in a random order of their own for the image `key`, whatever order they are given in."""
    return tuple(sorted(texts, key=lambda text: stable_hash(seed, key, text)))


def option_order(texts: Sequence[str], *, seed: int, key: str, order: int) -> tuple[str, ...]:
    """The options as they are shown: order 1 is random, order 2 is order 1 backwards, so that every option moves."""
    first = shuffled(texts, seed=seed, key=key)
    return first if order == 1 else first[::-1]


def random_order(pool: Sequence[Item], *, seed: int, key: str) -> Iterator[Item]:
    """The items of `pool`, each once, in a random order of their own for the image `key`."""
    seen = set[int]()
    turn = 0
    while len(seen) < len(pool):
        place = stable_hash(seed, key, turn) % len(pool)
        turn += 1
        if place not in seen:
            seen.add(place)
            yield pool[place]
