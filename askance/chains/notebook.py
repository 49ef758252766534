"""Readings and chains as notebooks show them: small tables in which nothing that is shown is markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, cast

from askance.nodes import Node

if TYPE_CHECKING:
    from askance.chains.chain import Chain, NodeLike
    from askance.chains.reading import Reading
    from askance.images import Image

LONGEST = 600
"""Characters of a value that are shown."""


def reading_html(reading: Reading) -> str:
    """A thumbnail, and a row for each link with its outcome and what it says or why it says nothing."""
    picture = _cell_text(reading.problem or "No picture.") if reading.image is None else _picture(reading.image)
    rows: list[Sequence[str]] = []
    for name, result in reading.links.items():
        link = reading.known[name]
        text = link.show(link.write(result.value)) if result.answered else result.reason or ""
        rows.append((link.title, "given" if result.given else result.outcome, text))
    return f"<div>{picture}{_table(reading.name, ('link', 'outcome', 'says'), rows)}</div>"


def chain_html(chain: Chain) -> str:
    """A row for each step: the link, the node that fills it in, the model that is asked, the links that it needs."""
    rows = [
        (step.link.title, step.name, _model(step.node), ", ".join(need.name for need in step.needs))
        for step in chain.steps
    ]
    return _table(f"{chain.get_name()} → {chain.target}", ("link", "node", "model", "needs"), rows)


def _picture(image: Image) -> str:
    return image._repr_html_()  # pyright: ignore[reportPrivateUsage]  # the name is that of notebooks


def _model(node: NodeLike) -> str:
    return str(cast("Node[Any, Any]", node).model.id) if isinstance(node, Node) else ""


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_table_row("th", head), *(_table_row("td", row) for row in rows)]
    return f"<table><caption>{_cell_text(title)}</caption>{''.join(lines)}</table>"


def _table_row(cell: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{_cell_text(text)}</{cell}>' for text in texts)}</tr>"


def _cell_text(text: str) -> str:
    """`text` escaped, and cut where it is long; it cannot turn the direction of what stands beside it."""
    return f"<bdi>{escape(text if len(text) <= LONGEST else f'{text[: LONGEST - 1]}…')}</bdi>"
