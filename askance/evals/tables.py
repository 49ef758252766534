"""Tables of figures, and their text as Markdown, CSV, LaTeX, HTML and JSON.

A cell is a figure, a text, a number or empty. Names of runs and models may hold anything, so each format escapes what
would have a meaning in it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from askance.errors import UsageError
from askance.evals.metric import CONVENTIONS, Figure, MissingAnswerPolicy
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.statistics import Interval


Cell: TypeAlias = "Figure | str | int | float | None"
"""One cell; numbers are shown as they are, figures with their intervals."""

Format = Literal["markdown", "csv", "latex", "html", "json"]
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
    "−": "$-$",
    "→": r"$\rightarrow$",
    "…": r"\ldots{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "†": r"$\dagger$",
    "-": "-{}",
}
"""What has a meaning in LaTeX, or another glyph in its older fonts."""

Place: TypeAlias = "tuple[int, int]"
"""Row and column of a cell, from 0."""
Mark = Literal["*", "†"]
"""Stands behind a value; a note says what it means."""


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
    bold: frozenset[Place] = frozenset()
    """Cells whose values are in bold."""
    marks: Mapping[Place, Mark] = field(default_factory=dict[Place, Mark])
    """Marks behind values."""
    right: frozenset[int] = frozenset()
    """Columns of text that stand to the right, as columns of numbers do."""

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
        form: JsonObject = {"title": self.title, "columns": list(self.columns), "rows": rows, "notes": list(self.notes)}
        if self.bold:
            form["bold"] = sorted(map(list, self.bold))
        if self.marks:
            form["marks"] = [{"row": row, "column": column, "mark": mark} for (row, column), mark in self.marks.items()]
        return form


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """How a table is written as Markdown, LaTeX or HTML.

    Raises:
        UsageError: a label has other characters than letters, digits, `:`, `.`, `-` and `_`.
    """

    digits: int | None = None
    """Places behind the point of figures as they are shown; None is 2 of a percentage and 3 of another number."""
    caption: str = ""
    """Stands in place of the title; in LaTeX it makes a `table` with its notes below."""
    label: str = ""
    """By which a document refers to the table: of LaTeX, or the `id` of HTML."""

    def __post_init__(self) -> None:
        if self.label and not _LABEL.fullmatch(self.label):
            raise UsageError(
                f"The label {self.label!r} would not stand in every document.",
                hint="Use letters, digits, and `:`, `.`, `-` or `_` between them, such as tab:main.",
            )


_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]*")


_PLAIN = TableLayout()


def shown_value(value: float | None, *, percent: bool, digits: int | None = None) -> str:
    """A value as tables show it: a share in percent with two places, as in the paper; other numbers with three."""
    if value is None:
        return NONE
    places = (2 if percent else 3) if digits is None else digits
    return f"{100 * value if percent else value:.{places}f}"


def shown_limits(
    interval: Interval | None, *, percent: bool, between: str = " to ", none: str = "", digits: int | None = None
) -> str:
    """An interval in a cell of its own: `58.11 to 66.29`; `none` without one."""
    if interval is None:
        return none
    return between.join(shown_value(each, percent=percent, digits=digits) for each in (interval.low, interval.high))


def shown_estimate(value: float | None, interval: Interval | None, *, percent: bool) -> tuple[str, str]:
    """A value and its interval in cells of their own."""
    return shown_value(value, percent=percent), shown_limits(interval, percent=percent)


def shown_figure(figure: Figure) -> str:
    """A figure with its interval: `62.30 [58.11, 66.29]`."""
    return "".join(_value_and_rest(figure, None))


def _value_and_rest(cell: Cell, digits: int | None) -> tuple[str, str]:
    """The value of a cell, and what stands behind it: the interval of a figure."""
    if isinstance(cell, Figure):
        limits = shown_limits(cell.interval, percent=cell.percent, between=", ", digits=digits)
        return shown_value(cell.value, percent=cell.percent, digits=digits), f" [{limits}]" if limits else ""
    if isinstance(cell, float):
        return f"{cell:g}", ""
    return NONE if cell is None or cell == "" else str(cell), ""


def conventions_of(figures: Sequence[Figure]) -> list[str]:
    """The conventions of `figures` in words, each once."""
    kinds: dict[MissingAnswerPolicy, None] = dict.fromkeys(figure.convention for figure in figures)
    return [CONVENTIONS[kind] for kind in kinds]


# --- tables as text ---


def rendered(table: Table, form: Format, layout: TableLayout = _PLAIN) -> str:
    """The table as text, with a line break at its end.

    Args:
        table: what is written.
        form: of the text.
        layout: of Markdown, LaTeX and HTML; CSV and JSON have every figure in full.

    Raises:
        UsageError: there is no such format.
    """
    if form not in _WRITERS:
        raise UsageError(f"There is no form {form!r} of a table.", hint=f"Forms: {', '.join(FORMATS)}.")
    return _WRITERS[form](table, layout)


def markdown(table: Table, layout: TableLayout = _PLAIN) -> str:
    """The table in GitHub's Markdown, with numbers aligned to the right and notes below."""
    title = layout.caption or table.title
    lines = [f"**{_markdown(title)}**", ""] if title else []
    lines.append(_piped(_markdown(column) for column in table.columns))
    lines.append(_piped("---:" if right else "---" for right in _numeric(table)))
    lines += [_piped(row) for row in _written(table, layout, _IN_MARKDOWN)]
    if table.notes:
        lines += ["", *(f"- {_BLOCK.sub(_escaped, _markdown(note))}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def plain_cells(table: Table) -> tuple[list[list[str]], list[int]]:
    """The head and the rows as texts that are safe to show, and the places of the columns of text."""
    rows = [[_one_line(column) for column in table.columns]]
    rows += [[_one_line("".join(_value_and_rest(cell, None))) for cell in row] for row in table.rows]
    return rows, [place for place, right in enumerate(_numeric(table)) if not right]


def latex(table: Table, layout: TableLayout = _PLAIN) -> str:
    """The table as a `tabular` with the lines of `booktabs`; notes are comments.

    With a caption or a label it stands in a `table`, and the notes below it, in small print. Nothing but `booktabs` is
    needed; a comment names the letters that pdfLaTeX has no glyphs for.
    """
    columns = "".join("r" if right else "l" for right in _numeric(table))
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    rows = [[_tex(column) for column in table.columns], *_written(table, layout, _IN_LATEX)]
    lines = [f"{_guarded(' & '.join(row))} \\\\" for row in rows]
    body += [lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}"]
    if not (layout.caption or layout.label):
        notes = [f"% {_one_line(note)}" for note in ((table.title,) if table.title else ()) + table.notes]
        return _with_glyphs([*notes, *body])
    caption = [rf"\caption{{{_tex(layout.caption or table.title)}}}"]
    label = [rf"\label{{{layout.label}}}"] if layout.label else []
    notes = [rf"{_tex(note)}\par" for note in table.notes]
    small = (
        [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize", *notes, r"\end{minipage}"] if notes else []
    )
    return _with_glyphs([r"\begin{table}", r"\centering", *caption, *label, *body, *small, r"\end{table}"])


def _with_glyphs(lines: Sequence[str]) -> str:
    """The text of `lines`, below a comment on letters that pdfLaTeX cannot set."""
    lacking = sorted({letter for line in lines if not line.startswith("%") for letter in _NO_GLYPHS.findall(line)})
    way_out = f"% pdfLaTeX has no glyphs for {''.join(lacking)}: take LuaLaTeX, and a font that has them."
    return "\n".join([*([way_out] if lacking else []), *lines, ""])


def html(table: Table, layout: TableLayout = _PLAIN) -> str:
    """The table as one element of HTML, without a style of its own; notes stand in its foot."""
    identity = f' id="{escape(layout.label)}"' if layout.label else ""
    title = layout.caption or table.title
    right = [' style="text-align: right"' if each else "" for each in _numeric(table)]
    lines = [f"<table{identity}>"]
    lines += [f"<caption>{_web(title)}</caption>"] if title else []
    heads = (f'<th scope="col"{side}>{_web(name)}</th>' for name, side in zip(table.columns, right, strict=True))
    lines += ["<thead>", f"<tr>{''.join(heads)}</tr>", "</thead>"]
    if table.notes:
        notes = "<br>".join(map(_web, table.notes))
        lines += ["<tfoot>", f'<tr><td colspan="{len(table.columns)}">{notes}</td></tr>', "</tfoot>"]
    lines.append("<tbody>")
    for row in _written(table, layout, _IN_HTML):
        cells = (f"<td{side}>{cell}</td>" for cell, side in zip(row, right, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """How a format writes what stands in a cell."""

    text: Callable[[str], str]
    bold: str
    """With `{}` for the value."""
    marks: Mapping[Mark, str]


def _written(table: Table, layout: TableLayout, dialect: _Dialect) -> Iterator[list[str]]:
    """The cells of each row."""

    def written(place: Place, cell: Cell) -> str:
        value, rest = _value_and_rest(cell, layout.digits)
        if isinstance(cell, str) or value == NONE:
            value = dialect.text(cell if isinstance(cell, str) else value)
        mark = table.marks.get(place)
        value = dialect.bold.format(value) if place in table.bold else value
        return f"{value}{'' if mark is None else dialect.marks[mark]}{rest}"

    for row, cells in enumerate(table.rows):
        yield [written((row, column), cell) for column, cell in enumerate(cells)]


def comma_separated(table: Table, _: TableLayout = _PLAIN) -> str:
    """The table as CSV. A column of figures becomes one of values and others for interval, counts and bounds.

    Values are not multiplied by 100. Notes, marks and bold are left out.
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


def as_json(table: Table, _: TableLayout = _PLAIN) -> str:
    """The table as one JSON object in a line."""
    return json.dumps(table.form()) + "\n"


_WRITERS: Mapping[str, Callable[[Table, TableLayout], str]] = {
    "markdown": markdown,
    "csv": comma_separated,
    "latex": latex,
    "html": html,
    "json": as_json,
}


def _numeric(table: Table) -> list[bool]:
    """By column, whether it stands to the right: it holds figures or numbers, or is said to."""
    places = range(len(table.columns))
    numbers = [any(isinstance(row[place], (Figure, int, float)) for row in table.rows) for place in places]
    return [number or place in table.right for place, number in enumerate(numbers)]


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


def _piped(cells: Iterable[str]) -> str:
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
    return _TEX.sub(lambda match: _LATEX[match.group()], _one_line(text))


_NO_GLYPHS = re.compile(r"[\u0250-\u1fff\u2100-\U0010ffff]")
"""Letters behind the Latin ones, and signs behind general punctuation."""

_TEX = re.compile("|".join(["-(?=-)", *(re.escape(mark) for mark in _LATEX if mark != "-")]))
"""What LaTeX reads otherwise; of hyphens those before another, which would make a dash."""


def _guarded(row: str) -> str:
    """A row whose beginning LaTeX takes for no option of the line before."""
    return f"{{}}{row}" if row.startswith(("[", "*")) else row


def _web(text: str) -> str:
    return escape(_one_line(text))


_IN_MARKDOWN = _Dialect(text=_markdown, bold="**{}**", marks={"*": r"\*", "†": "†"})
_IN_LATEX = _Dialect(text=_tex, bold=r"\textbf{{{}}}", marks={"*": "$^{*}$", "†": r"$^{\dagger}$"})
_IN_HTML = _Dialect(text=_web, bold="<strong>{}</strong>", marks={"*": "<sup>*</sup>", "†": "<sup>†</sup>"})


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
