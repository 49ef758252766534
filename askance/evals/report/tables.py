"""Tables of a page as values: figures of one run, of some side by side, of many, and beside what others published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from askance.evals.figures import Figure
from askance.evals.tables import NONE, notes_of, shown_figure, shown_value, table_of_runs

if TYPE_CHECKING:
    from askance.evals.report.report import Beside, RunPart
    from askance.evals.tables import Cell
    from askance.statistics import Interval

FIRST = 8
"""Figures that are shown at once; the others unfold."""
_SIDE_BY_SIDE = 4
"""Runs up to which each has a column; more of them have a row each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A text that leads to a place on the page."""

    text: str
    to: Mapping[str, str | int]
    """Names of the address and their values, as `document.address` takes them."""
    note: str = ""
    """Stands softly behind it."""


Field: TypeAlias = "str | Link | tuple[float | None, str]"
"""A cell of a page's table; a pair is a number, by which the column is sorted, and how it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sortable:
    """A table whose columns the script lets be sorted."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Field]]
    caption: str = ""
    summary: str = ""
    """What the table unfolds from; without it, it is there at once."""
    open: bool = False
    """Whether it is unfolded from the beginning."""

    def numeric(self, place: int) -> bool:
        """Whether a column is one of numbers."""
        return not self.rows or any(isinstance(row[place], tuple) for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTables:
    """The figures of runs of one task, and what a reader has to know of them."""

    tables: Sequence[Sortable]
    notes: Sequence[str] = ()


def tables_of_runs(parts: Sequence[RunPart]) -> FigureTables:
    """The figures of runs of one task: some have a column each, many a row each."""
    runs = [part.run for part in parts]
    if len(parts) > _SIDE_BY_SIDE:
        table = table_of_runs(runs)
        rows = [[_field(cell) for cell in row] for row in table.rows]
        return FigureTables(tables=[Sortable(heads=table.columns, rows=rows)], notes=table.notes)
    if len(parts) > 1:
        return FigureTables(tables=_side_by_side(parts), notes=notes_of(runs))
    return FigureTables(tables=_alone(parts[0]))


def _alone(part: RunPart) -> list[Sortable]:
    heads = ("figure", "value", "95 % interval", "samples", "answered", "if wrong", "if right")
    rows: list[list[Field]] = [
        [
            figure.metric,
            (figure.value, shown_value(figure.value, percent=figure.percent)),
            interval_field(figure.interval, percent=figure.percent),
            (figure.samples, f"{figure.samples:,}"),
            (figure.answered, f"{figure.answered:,}"),
            (figure.if_wrong, shown_value(figure.if_wrong, percent=figure.percent)),
            (figure.if_right, shown_value(figure.if_right, percent=figure.percent)),
        ]
        for figure in part.run.figures
    ]
    return _unfolding(heads, rows, FIRST) if rows else []


def _side_by_side(parts: Sequence[RunPart]) -> list[Sortable]:
    figures = _by_metric(parts)
    metrics = dict.fromkeys(metric for each in figures for metric in each)
    rows: list[list[Field]] = [
        ["samples", *(_field(len(part.rows)) for part in parts)],
        ["answered", *(_field(part.outcomes.get("answered", 0)) for part in parts)],
        *([metric, *(_field(each.get(metric)) for each in figures)] for metric in metrics),
    ]
    return _unfolding(("figure", *(part.name for part in parts)), rows, FIRST + 2)


def _unfolding(heads: Sequence[str], rows: Sequence[Sequence[Field]], first: int) -> list[Sortable]:
    """The first rows, and the others in a table that unfolds."""
    shown, others = Sortable(heads=heads, rows=rows[:first]), rows[first:]
    if not others:
        return [shown]
    return [shown, Sortable(heads=heads, rows=others, summary=f"{len(others):,} more figures")]


def beside_table(beside: Beside, parts: Sequence[RunPart]) -> Sortable:
    """Our figures, and in columns of their own those that others published."""
    figures = _by_metric(parts)
    ours = ["ours"] if len(parts) == 1 else [part.name for part in parts]
    rows: list[list[Field]] = []
    for metric, values in beside.rows:
        percent = figures[0][metric].percent
        theirs = [(value, shown_value(value, percent=percent)) for value in values]
        rows.append([metric, *(_field(each.get(metric)) for each in figures), *theirs])
    return Sortable(heads=("figure", *ours, *(f"{head} †" for head in beside.heads)), rows=rows)


def _by_metric(parts: Sequence[RunPart]) -> list[dict[str, Figure]]:
    return [{figure.metric: figure for figure in part.run.figures} for part in parts]


def _field(cell: Cell) -> Field:
    if isinstance(cell, Figure):
        return cell.value, shown_figure(cell)
    if isinstance(cell, (int, float)):
        return float(cell), f"{cell:,}"
    return NONE if cell is None else cell


def interval_field(interval: Interval | None, *, percent: bool) -> Field:
    """An interval, sorted by its lower end."""
    return None if interval is None else interval.low, interval_text(interval, percent=percent)


def interval_text(interval: Interval | None, *, percent: bool) -> str:
    """An interval in a cell."""
    if interval is None:
        return NONE
    low, high = (shown_value(end, percent=percent) for end in (interval.low, interval.high))
    return f"{low} – {high}"
