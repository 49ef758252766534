"""What people are told in few words: a count with its noun, a duration, US dollars, a long text, many names."""

from __future__ import annotations

from collections.abc import Sequence


def many(count: int, one: str, more: str = "") -> str:
    """A count with its noun: `1 answer`, `2,000 answers`; `more` is the plural, by default `one` with an s."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def duration(seconds: float) -> str:
    """A duration: `40 s`, `25 min`, `2.5 h`, `1,000 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 3600:,.0f} h"


def money(dollars: float) -> str:
    """US dollars: `$12.50`; below one dollar with four decimals, and `less than $0.0001` instead of zero."""
    if dollars >= 1 or not dollars:
        return f"${dollars:,.2f}"
    return f"${dollars:.4f}" if dollars >= 0.0001 else "less than $0.0001"


def shortened(text: str, most: int = 200) -> str:
    """A text of at most `most` characters; one that is longer is cut and ends with `…`."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def first_few(names: Sequence[str], most: int = 3) -> str:
    """The first names with commas between, and `…` where there are more."""
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")
