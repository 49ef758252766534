"""Tables of figures, and their text as Markdown, CSV, LaTeX and JSON.

A cell is a figure, a text, a number or empty. Names of runs and models may hold anything, so each format escapes what
would have a meaning in it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from askance.errors import UsageError
from askance.evals.metric import CONVENTIONS, Figure, MissingAnswerPolicy
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.statistics import Interval


Cell: TypeAlias = "Figure | str | int | float | None"
"""One cell; numbers are shown as they are, figures with their intervals."""

Format = Literal["markdown", "csv", "latex", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

NONE = "–"
"""Shown in an empty cell."""

_PARTS = ("low", "high", "samples", "answered", "if_wrong", "if_right")
"""Parts of a figure that CSV has columns for, beside the value."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "–": "--",
    "·": r"\textperiodcentered{}",
    "×": r"$\times$",
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Named columns, rows with a cell for each column, and notes for the reader.

    Raises:
        UsageError: a row has more or fewer cells than there are columns.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    title: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UsageError(
                    f"A row of {len(row)} cells does not fit a table of {len(self.columns)} columns.",
                    hint="Give each row a cell for each column.",
                )

    def form(self) -> JsonObject:
        """The table as JSON, with all parts of the figures."""
        rows = [[cell.form() if isinstance(cell, Figure) else cell for cell in row] for row in self.rows]
        return {"title": self.title, "columns": list(self.columns), "rows": rows, "notes": list(self.notes)}


def shown_value(value: float | None, *, percent: bool) -> str:
    """A value as tables show it: a share in percent with two places, as in the paper."""
    if value is None:
        return NONE
    return f"{100 * value:.2f}" if percent else f"{value:.3f}"


def shown_limits(interval: Interval | None, *, percent: bool, between: str = " to ", none: str = "") -> str:
    """An interval in a cell of its own: `58.11 to 66.29`; `none` without one."""
    if interval is None:
        return none
    return between.join(shown_value(limit, percent=percent) for limit in (interval.low, interval.high))


def shown_estimate(value: float | None, interval: Interval | None, *, percent: bool) -> tuple[str, str]:
    """A value and its interval in cells of their own."""
    return shown_value(value, percent=percent), shown_limits(interval, percent=percent)


def shown_figure(figure: Figure) -> str:
    """A figure with its interval: `62.30 [58.11, 66.29]`."""
    value = shown_value(figure.value, percent=figure.percent)
    limits = shown_limits(figure.interval, percent=figure.percent, between=", ")
    return f"{value} [{limits}]" if limits else value


def conventions_of(figures: Sequence[Figure]) -> list[str]:
    """The conventions of `figures` in words, each once."""
    kinds: dict[MissingAnswerPolicy, None] = dict.fromkeys(figure.convention for figure in figures)
    return [CONVENTIONS[kind] for kind in kinds]


# --- tables as text ---


def rendered(table: Table, form: Format) -> str:
    """The table as text, with a line break at its end.

    Raises:
        UsageError: there is no such format.
    """
    if form not in _WRITERS:
        raise UsageError(f"There is no form {form!r} of a table.", hint=f"Forms: {', '.join(FORMATS)}.")
    return _WRITERS[form](table)


def markdown(table: Table) -> str:
    """The table in GitHub's Markdown, with numbers aligned to the right and notes below."""
    lines = [f"**{_markdown(table.title)}**", ""] if table.title else []
    lines.append(_piped(_markdown(column) for column in table.columns))
    lines.append(_piped("---:" if right else "---" for right in _numeric(table)))
    lines += [
        _piped(_markdown(cell) if isinstance(cell, str) else _cell_text(cell) for cell in row) for row in table.rows
    ]
    if table.notes:
        lines += ["", *(f"- {_BLOCK.sub(_escaped, _markdown(note))}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def plain_cells(table: Table) -> tuple[list[list[str]], list[int]]:
    """The head and the rows as texts that are safe to show, and the places of the columns of text."""
    rows = [[_one_line(column) for column in table.columns]]
    rows += [[_one_line(_cell_text(cell)) for cell in row] for row in table.rows]
    return rows, [place for place, right in enumerate(_numeric(table)) if not right]


def latex(table: Table) -> str:
    """The table as a `tabular` with the lines of `booktabs`; notes are comments."""
    columns = "".join("r" if right else "l" for right in _numeric(table))
    lines = [f"% {_one_line(note)}" for note in ((table.title,) if table.title else ()) + table.notes]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines.append(" & ".join(_tex(column) for column in table.columns) + r" \\")
    lines.append(r"\midrule")
    lines += [" & ".join(_tex(_cell_text(cell)) for cell in row) + r" \\" for row in table.rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def comma_separated(table: Table) -> str:
    """The table as CSV. A column of figures becomes one of values and others for interval, counts and bounds.

    Values are not multiplied by 100. Notes are left out.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    figures = [any(isinstance(row[place], Figure) for row in table.rows) for place in range(len(table.columns))]
    head: list[str] = []
    for column, of_figures in zip(table.columns, figures, strict=True):
        head += [column, *(f"{column} {part}" for part in _PARTS)] if of_figures else [column]
    writer.writerow([_field(name) for name in head])
    for row in table.rows:
        cells = zip(row, figures, strict=True)
        writer.writerow([_field(value) for cell, of_figures in cells for value in _values(cell, of_figures)])
    return text.getvalue()


def as_json(table: Table) -> str:
    """The table as one JSON object in a line."""
    return json.dumps(table.form()) + "\n"


_WRITERS: Mapping[str, Callable[[Table], str]] = {
    "markdown": markdown,
    "csv": comma_separated,
    "latex": latex,
    "json": as_json,
}


def _numeric(table: Table) -> list[bool]:
    """By column, whether it holds figures or numbers."""
    places = range(len(table.columns))
    return [any(isinstance(row[place], (Figure, int, float)) for row in table.rows) for place in places]


def _cell_text(cell: Cell) -> str:
    if isinstance(cell, Figure):
        return shown_figure(cell)
    if isinstance(cell, float):
        return f"{cell:g}"
    return NONE if cell is None or cell == "" else str(cell)


def _values(cell: Cell, of_figures: bool) -> list[object]:  # noqa: FBT001  # of one column
    if not of_figures:
        return [cell]
    if not isinstance(cell, Figure):
        return [cell, *("" for _ in _PARTS)]
    low, high = (None, None) if cell.interval is None else (cell.interval.low, cell.interval.high)
    return [cell.value, low, high, cell.samples, cell.answered, cell.if_wrong, cell.if_right]


def _field(value: object) -> object:
    if not isinstance(value, str):
        return "" if value is None else value
    return spreadsheet_cell(printable(value))


def _piped(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _markdown(text: str) -> str:
    escaped = _one_line(text).replace("\\", "\\\\")
    for mark in ("|", "*", "_", "`", "<", "[", "~", "&", "$"):
        escaped = escaped.replace(mark, f"\\{mark}")
    return _ADDRESS.sub(_escaped, escaped)


_BLOCK = re.compile(r"^(?:\d+(?=[.)])|(?=[#>+=-]))")
"""The beginning of a line that would become a heading, a list or a quotation."""
_ADDRESS = re.compile(r"(?=://)|\bwww(?=\.)", re.IGNORECASE)
"""Where an address would become a link."""


def _escaped(match: re.Match[str]) -> str:
    return f"{match.group()}\\"


def _tex(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in _one_line(text))


# --- cells that no spreadsheet takes for formulas ---

SpreadsheetValue: TypeAlias = "str | int | float | bool | None"

_UNSEEN = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Blanks, controls and characters without a shape, some of which a spreadsheet takes away before it reads a cell."""
_FORMULA = r"[=+\-@|%\uff1d\uff0b\uff0d\uff20]"
_BEGINNING = re.compile(rf"[{_UNSEEN}]*{_FORMULA}|[\t\r\n]")
"""The beginning of a text that some spreadsheet takes for a formula or a command, also after what nobody sees and in
full-width characters."""
_INSIDE = re.compile(rf"([;\t\r\n][{_UNSEEN}\"]*)(?={_FORMULA})")
"""Where a formula begins inside a text, if a spreadsheet separates cells at other characters than commas and ignores
quotation marks."""


def spreadsheet_cell(value: SpreadsheetValue) -> SpreadsheetValue:
    """A value as it is written to CSV: a text that could be a formula gets an apostrophe; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    text = _INSIDE.sub(r"\1'", value)
    return f"'{text}" if _BEGINNING.match(text) else text
