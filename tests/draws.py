"""Intervals of few draws, for what is done with intervals; the statistics behind them are tested with all draws."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

FEW_DRAWS = 200


@contextmanager
def few_draws(count: int = FEW_DRAWS) -> Generator[None]:
    """Has intervals come of so many draws instead of 2,000, where nobody says of how many."""
    from askance import statistics

    drawing = [found for name in dir(statistics) if (found := _defaults(getattr(statistics, name))).get("draws")]
    whole = [defaults["draws"] for defaults in drawing]
    for defaults in drawing:
        defaults["draws"] = count
    try:
        yield
    finally:
        for defaults, draws in zip(drawing, whole, strict=True):
            defaults["draws"] = draws


def _defaults(thing: Any) -> dict[str, Any]:
    """Defaults of the keywords of a function, or of what makes an object of a class."""
    function = thing.__init__ if isinstance(thing, type) else thing
    return getattr(function, "__kwdefaults__", None) or {}
