"""How a person sees one reading: a card on a terminal, plain text in a pipe. Both are made from its line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from askance.chains.line import said_in
from askance.chains.state import link_named
from askance.terminal import printable

WIDTH = 100
"""Columns of plain text."""
_INDENT = 14

_LAST = frozenset({"statement", "answers", "reply"})
"""Links that come last, with what is true beside them."""

Row = tuple[str, str]


def rows_of(line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None) -> Iterator[Row]:
    """Heading and text of each row of a card.

    Args:
        line: the reading, as `askance.chains.line.line_of` gives it.
        options: what could be chosen from.
        truth: `answers` and `statements` that are true, where they are known; what is chosen is then marked.
    """
    said = said_in(line)
    for name, form in line["links"].items():
        link = link_named(name)
        if name in _LAST:
            continue
        if name in said:
            yield link.heading, link.show(said[name])
        elif form["outcome"] not in {"answered", "skipped"}:
            yield link.heading, f"none, {form['outcome']}: {form.get('reason') or ''}"
    yield from _statement(line, truth)
    for place, number in enumerate(line["answers"] or ()):
        mark = _mark(None if truth is None else number in truth["answers"])
        yield "argues for" if place == 0 else "", f"{mark}{number}. {options[number - 1] if options else ''}".rstrip()
    if line.get("reply"):
        yield "reply", line["reply"]
    if line["outcome"] != "answered":
        yield line["outcome"], line["reason"] or ""


def _statement(line: Mapping[str, Any], truth: Mapping[str, Any] | None) -> Iterator[Row]:
    statement = line["statement"]
    if statement is not None:
        right = None if truth is None else statement["text"] in truth["statements"]
        yield "statement", f"{_mark(right)}{statement['relation']}  {statement['text']}"
    elif line["statement_reason"] and line["statement_reason"] != "not asked":
        yield "statement", f"none: {line['statement_reason']}"


def _mark(right: bool | None) -> str:
    return "" if right is None else ("✓ " if right else "✗ ")


def plain(line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None = None) -> str:
    """The card as plain text."""
    parts = [printable(line["image"])]
    for heading, text in rows_of(line, options, truth):
        parts.append(
            textwrap.fill(
                printable(text).replace("\n", " "),
                width=WIDTH,
                initial_indent=f"  {heading:<{_INDENT - 2}}",
                subsequent_indent=" " * _INDENT,
            )
        )
    return "\n".join(parts)


def card(line: Mapping[str, Any], options: Sequence[str] | None, truth: Mapping[str, Any] | None = None) -> Any:
    """The card as a panel of rich; nothing in it is taken as markup."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column()
    for heading, text in rows_of(line, options, truth):
        shown = Text(printable(text))
        if text.startswith("✓"):
            shown.stylize("green", 0, 1)
        elif text.startswith("✗"):
            shown.stylize("red", 0, 1)
        grid.add_row(heading, shown)
    style = "red" if line["outcome"] != "answered" else "dim"
    return Panel(grid, title=Text(printable(line["image"]), style="bold"), title_align="left", border_style=style)
