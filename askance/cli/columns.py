"""What a command prints, as a report of sentences and tables; and how it prints an error.

On a terminal columns stay whole, and lines break between words.
What goes to a file or a pipe is as wide as it is. On a terminal that is too narrow for a table, its columns stand in
groups below each other, each beside the first column.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias, Union

from askance.cli.process import OK
from askance.terminal import echo, json_text, printable

if TYPE_CHECKING:
    from askance.errors import AskanceError
    from askance.evals.tables import Table

LEAST = 40
"""Narrower terminals are taken to be so wide."""
GAP = "  "


# Named tuples: each command loads these classes, and they are made in an eighth of the time of data classes.


class Line(NamedTuple):
    """A line, broken between words where it is too long; what follows is indented so far."""

    text: str
    indent: int


class Columns(NamedTuple):
    """A table whose first row is its head; the rest is as `aligned` takes it."""

    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    keys: int = 1


class Section(NamedTuple):
    """A heading, and below it rows of up to three columns: what, how many, and which; or a sentence each."""

    title: str
    rows: Sequence[Sequence[str]]


Part: TypeAlias = Union[str, Line, Columns, Section, "Table"]
"""A part of what is printed; a text may be of several lines."""


class Report(NamedTuple):
    """What a command prints."""

    form: Callable[[], Mapping[str, Any] | Sequence[Any]] | None
    """Makes the JSON object; None where there is none."""
    parts: Callable[[], Iterable[Part]]
    """Makes what a person reads in its place."""
    notes: Iterable[str] = ()
    """What there is to know beside either, on stderr."""
    breaks: bool = True
    """Whether lines break between words where the terminal is too narrow for them."""
    ends: Callable[[], int] = lambda: OK
    """Says on stderr, after all this, how the command ended; gives its exit code."""

    def print(self, *, as_json: bool) -> int:
        """Prints it, as one JSON object or for a person; returns the exit code."""
        if as_json and self.form is not None:
            echo(json_text(self.form()))
        elif text := text_of(self.parts(), breaks=self.breaks):
            echo(text)
        for note in self.notes:
            echo(filled(f"· {note}", width=terminal_width()), err=True)
        return self.ends()


def complain(error: AskanceError) -> None:
    """Prints an error with its hint and diff on stderr."""
    width = terminal_width(sys.stderr)
    echo(filled(f"askance: {printable(error.message)}", width=width, indent=2), err=True)
    if error.hint:
        echo(filled(f"  → {printable(error.hint)}", width=width, indent=4), err=True)
    diff = getattr(error, "diff", "")
    if diff:
        echo(diff, err=True)


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Columns of the terminal that is printed to, by default on stdout; None where it is a file or a pipe."""
    return max(LEAST, shutil.get_terminal_size().columns) if (stream or sys.stdout).isatty() else None


def aligned(
    rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,), keys: int = 1, width: int | None = None
) -> Iterator[str]:
    """The lines of a table, its head first: numbers to the right, two blanks between columns.

    Args:
        rows: as many cells each; the first row is the head.
        left: places of the columns of text.
        keys: how many columns, from the first, stand in every group.
        width: of the terminal; None is as wide as it takes.
    """
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    if width is not None:
        widths[0] = min(widths[0], max(width // 2, 12))
    for number, group in enumerate(_groups(widths, keys, width)):
        if number:
            yield ""
        for row in rows:
            cells = (_cell(row[place], widths[place], left=place in left) for place in group)
            yield GAP.join(cells).rstrip()


def shortened(text: str, most: int) -> str:
    """A text without its middle, where it is longer than so many characters."""
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def _groups(widths: Sequence[int], keys: int, width: int | None) -> Iterator[list[int]]:
    """The columns that stand beside each other, the keys in every group."""
    group = [*range(keys)]
    for place in range(keys, len(widths)):
        taken = sum(widths[each] + len(GAP) for each in group) + widths[place]
        if width is not None and taken > width and len(group) > keys:
            yield group
            group = [*range(keys)]
        group.append(place)
    yield group


def _cell(text: str, width: int, *, left: bool) -> str:
    text = shortened(text, width)
    return f"{text:<{width}}" if left else f"{text:>{width}}"


def filled(text: str, *, width: int | None = None, indent: int | None = None) -> str:
    """A text whose lines break between words where they are longer than the terminal; what follows is indented alike.

    Args:
        text: of any number of lines.
        width: of the terminal; None leaves the text as it is.
        indent: of what follows; by default that of the line, and of a note that of its words.
    """
    return text if width is None else "\n".join(_filled(line, width, indent) for line in text.split("\n"))


def _filled(line: str, width: int, indent: int | None) -> str:
    if len(line) <= width:
        return line
    if indent is None:
        indent = len(line) - len(line.lstrip(" ")) + (2 if line.lstrip().startswith("· ") else 0)
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )


def table_text(table: Table) -> str:
    """A table as it is printed: on a terminal in columns, elsewhere in Markdown."""
    from askance.evals.tables import markdown, plain_cells

    width = terminal_width()
    if width is None:
        return markdown(table)
    rows, left = plain_cells(table)
    lines = [table.title, ""] if table.title else []
    lines += aligned(rows, left=left, width=width)
    notes = [filled(f"· {note}", width=width) for note in table.notes]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


WIDTH = 100
"""Columns of what is broken where no terminal says otherwise."""
SHOWN = 12
"""Rows of a section at most; `--json` has them all."""


def _section_lines(section: Section, width: int | None) -> Iterator[str]:
    """The lines of a section; a cell that is too wide has several."""
    rows = [[printable(cell) for cell in row] for row in section.rows[:SHOWN]]
    widths = _narrowed([max(map(len, column)) for column in zip(*rows, strict=True)], (width or WIDTH) - len(GAP))
    yield ""
    yield section.title
    for row in rows:
        cells = [
            textwrap.wrap(cell, max(room, 1), break_on_hyphens=False) for cell, room in zip(row, widths, strict=True)
        ]
        for line in zip_longest(*cells, fillvalue=""):
            placed = [_cell(text, widths[place], left=place != 1) for place, text in enumerate(line)]
            yield f"{GAP}{GAP.join(placed)}".rstrip()
    if len(section.rows) > SHOWN:
        yield f"{GAP}… and {len(section.rows) - SHOWN:,} more"


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """The widths of columns that fit so much room: the widest become narrower."""
    narrow = list(widths)
    for _ in range(sum(widths) + len(GAP) * (len(widths) - 1) - room):
        narrow[narrow.index(max(narrow))] -= 1
    return narrow


def text_of(parts: Iterable[Part], *, breaks: bool = True) -> str:
    """The parts of a report, below each other; see `Report`."""
    width = terminal_width()

    def text(part: Part) -> str:
        if isinstance(part, Line):
            return filled(printable(part.text), width=width, indent=part.indent)
        if isinstance(part, Section):
            return "\n".join(_section_lines(part, width))
        if isinstance(part, Columns):
            part = "\n".join(aligned(part.rows, left=part.left, keys=part.keys, width=width))
        if not isinstance(part, str):
            return table_text(part)
        return filled(printable(part), width=width if breaks else None)

    return "\n".join(map(text, parts))
