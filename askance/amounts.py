"""Amounts in words."""

from __future__ import annotations


def many(count: int, one: str, more: str = "") -> str:
    """`1 answer`, `2,000 answers`; `more` is what `one` is called where it is not one, by default with an s."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
