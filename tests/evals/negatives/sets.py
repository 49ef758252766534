"""Options with known faults, and without any."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from askance.evals.negatives import HardNegative, OptionSet

THINGS = ("tea", "soup", "shoes", "cars", "vodka", "chips", "books", "lamps", "phones", "juice", "bikes", "hats")
GOOD = ("hot", "fresh", "light", "fast", "smooth", "crisp", "wise", "bright", "smart", "sweet", "quick", "warm")


def option_set(key: str, true: Iterable[str], negatives: Iterable[tuple[str, Any]], *, source: int = 0) -> OptionSet:
    true = tuple(true)
    found = tuple(
        HardNegative(key=key, text=text, kind=kind, source=true[source], place=source) for text, kind in negatives
    )
    options = tuple(dict.fromkeys([*(negative.text for negative in found), *true]))
    return OptionSet(key=key, true=true, options=options, negatives=found)


def symmetrical(count: int = 36) -> list[OptionSet]:
    """True statements and negatives of the same words, drawn by lot."""
    sets: list[OptionSet] = []
    chance = Random(7)
    for place in range(count):
        thing, (one, other) = chance.choice(THINGS), chance.sample(GOOD, 2)
        true, wrong = (f"I should buy {thing} because it is {each}" for each in (one, other))
        sets.append(option_set(f"{place}", [true], [(wrong, "adjective")]))
    return sets


def longer(count: int = 36) -> list[OptionSet]:
    """The same, but that every negative goes on for longer."""
    return [
        option_set(
            each.key, each.true, [(f"{one.text} and I like it that way very much", one.kind) for one in each.negatives]
        )
        for each in symmetrical(count)
    ]


def hostile_set(text: str) -> list[OptionSet]:
    """One image whose negative is `text`."""
    return [option_set("0/10.jpg", ["I should drink tea"], [(text, None)])]
