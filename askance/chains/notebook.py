"""Small tables for notebooks, in which nothing that is shown is markup."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LONGEST = 600
"""Characters of a value that are shown."""


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts as HTML."""
    lines = [_table_row("th", head), *(_table_row("td", row) for row in rows)]
    return f"<table><caption>{cell_text(title)}</caption>{''.join(lines)}</table>"


def _table_row(cell: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{cell_text(text)}</{cell}>' for text in texts)}</tr>"


def cell_text(text: str) -> str:
    """`text` escaped, and cut where it is long; it cannot turn the direction of what stands beside it."""
    return f"<bdi>{escape(text if len(text) <= LONGEST else f'{text[: LONGEST - 1]}…')}</bdi>"
