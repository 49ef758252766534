"""Tables of the page: figures of one run, of some side by side, of many, and beside what others published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.evals.figures import Figure
from askance.evals.report.markup import Markup, element, joined
from askance.evals.tables import NONE, shown_figure, shown_value

if TYPE_CHECKING:
    from askance.evals.report.values import Beside, RunPart
    from askance.evals.tables import Cell, Table

FIRST = 8
"""Figures of one run that are shown at once; the others unfold."""


def figures_table(part: RunPart) -> Markup | None:
    """Every figure of one run with its interval, counts and bounds."""
    figures = part.run.figures
    if not figures:
        return None
    first, others = _figures(figures[:FIRST]), figures[FIRST:]
    if not others:
        return first
    more = element("details", element("summary", f"{len(others):,} more figures"), _figures(others))
    return joined((first, more))


def _figures(figures: Sequence[Figure]) -> Markup:
    heads = ("figure", "value", "95 % interval", "samples", "answered", "if wrong", "if right")
    rows = [
        [
            figure.metric,
            (figure.value, shown_value(figure.value, percent=figure.percent)),
            (None if figure.interval is None else figure.interval.low, interval_text(figure)),
            (figure.samples, f"{figure.samples:,}"),
            (figure.answered, f"{figure.answered:,}"),
            (figure.if_wrong, shown_value(figure.if_wrong, percent=figure.percent)),
            (figure.if_right, shown_value(figure.if_right, percent=figure.percent)),
        ]
        for figure in figures
    ]
    return sortable(heads, rows)


def interval_text(figure: Figure) -> str:
    """The interval of a figure in a cell."""
    if figure.interval is None:
        return NONE
    low, high = (shown_value(end, percent=figure.percent) for end in (figure.interval.low, figure.interval.high))
    return f"{low} – {high}"


def listed(notes: Sequence[str]) -> Markup | None:
    """What a reader should know, a line each."""
    return element("ul", *(element("li", note) for note in notes), class_="notes") if notes else None


def side_by_side(parts: Sequence[RunPart]) -> Markup:
    """Some runs of one task: a row a figure, a column a run."""
    figures = [{figure.metric: figure for figure in part.run.figures} for part in parts]
    metrics = dict.fromkeys(metric for each in figures for metric in each)
    counts: list[list[str | tuple[float | None, str]]] = [
        ["samples", *(_cell(len(part.rows)) for part in parts)],
        ["answered", *(_cell(part.outcomes.get("answered", 0)) for part in parts)],
    ]
    rows = [[metric, *(_cell(each.get(metric)) for each in figures)] for metric in metrics]
    heads = ("figure", *(part.name for part in parts))
    first, others = sortable(heads, [*counts, *rows[:FIRST]]), rows[FIRST:]
    if not others:
        return first
    more = element("details", element("summary", f"{len(others):,} more figures"), sortable(heads, others))
    return joined((first, more))


def runs_table(table: Table) -> Markup:
    """Several runs: a row each, a column a metric."""
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return joined((sortable(table.columns, rows), listed(table.notes)))


def _cell(cell: Cell) -> str | tuple[float | None, str]:
    if isinstance(cell, Figure):
        return cell.value, shown_figure(cell)
    if isinstance(cell, (int, float)):
        return float(cell), f"{cell:,}"
    return NONE if cell is None else cell


def beside_table(beside: Beside, parts: Sequence[RunPart]) -> Markup:
    """Our figures, and in columns of their own those that others published."""
    figures = [{figure.metric: figure for figure in part.run.figures} for part in parts]
    ours = ["ours"] if len(parts) == 1 else [part.name for part in parts]
    heads = ("figure", *ours, *(f"{head} †" for head in beside.heads))
    rows: list[list[str | tuple[float | None, str]]] = []
    for metric, values in beside.rows:
        percent = figures[0][metric].percent
        theirs = [(value, shown_value(value, percent=percent)) for value in values]
        rows.append([metric, *(_cell(each.get(metric)) for each in figures), *theirs])
    note = f"† Published figures, not ours: {beside.title}. {beside.source}"
    return joined((sortable(heads, rows), element("p", note, class_="note")))


def judges_table(judges: Sequence[Mapping[str, Any]]) -> Markup:
    """What is known of the judges that gave scores."""
    heads = ("judge", "labelled pairs", "accuracy", "base rate", "Cohen's κ")
    rows: list[list[str | tuple[float | None, str]]] = []
    for note in judges:
        card: Mapping[str, Any] = note.get("card") or {}
        numbers = [card.get(name) for name in ("pairs", "accuracy", "base rate", "cohen kappa")]
        cells = [(number, f"{number:,.3g}") if isinstance(number, (int, float)) else NONE for number in numbers]
        rows.append([str(note.get("judge", "?")), *cells])
    return sortable(heads, rows)


def sortable(
    heads: Sequence[str], rows: Sequence[Sequence[str | tuple[float | None, str]]], *, caption: str | None = None
) -> Markup:
    """A table whose columns the script lets be sorted; a pair is a number and how it is shown."""
    numbers = [not rows or any(isinstance(row[place], tuple) for row in rows) for place in range(len(heads))]
    head = element(
        "tr",
        *(
            element("th", name, scope="col", class_="num" if place and numbers[place] else None)
            for place, name in enumerate(heads)
        ),
    )
    body = (element("tr", *(_field(place, cell) for place, cell in enumerate(row))) for row in rows)
    named = None if caption is None else element("caption", element("span", caption))
    table = element("table", named, element("thead", head), element("tbody", *body), class_="sortable")
    return element("div", table, class_="wide", tabindex=0, role="group", aria_label=caption or " · ".join(heads))


def _field(place: int, cell: str | tuple[float | None, str]) -> Markup:
    if isinstance(cell, str):
        return element("th" if place == 0 else "td", cell, scope="row" if place == 0 else None)
    number, shown = cell
    return element("td", shown, class_="num", data_sort="" if number is None else repr(float(number)))
