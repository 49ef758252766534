"""Elements of pages as values: tables and plots, with names, numbers and places; templates draw them.

On a page plots are tables with a drawn cell: an inline SVG strip stands beside the number that it draws. Lengths in
percent let a strip follow the width of the page, colours come from its style, and text stays text. A plotting library
would bring a script of its own, or colours that do not change with the page. A `Drawing` stands alone: in a notebook,
in a file, in a document.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.errors import UsageError
from askance.evals.report.html import render
from askance.evals.tables import NONE, Cell, Table, shown_limits, shown_value

if TYPE_CHECKING:
    from askance.evals.metric import Figure
    from askance.statistics import Interval

MOST_FIGURES = 10
"""How many figures of a run are drawn by default."""
NO_SCORES = ("error", "ceiling", "place", "same answer", "difference", "coverage")
"""Prefixes of figures that are no measure of how right the answers are."""


# --- tables ---


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLink:
    """A text that leads to a place on the page."""

    text: str
    to: Mapping[str, str | int]
    """The parts of the address, as `html.address` takes them."""
    note: str = ""
    """Text behind it, in a softer colour."""


Field: TypeAlias = "str | int | float | PageLink | tuple[float | None, str]"
"""A cell of a page's table; a pair is a number, by which the column is sorted, and how it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sortable:
    """A table that the reader can sort by its columns."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Field]]
    caption: str = ""
    summary: str = ""
    """The line from which the table unfolds; without it, the table is open."""
    open: bool = False
    """Whether it is unfolded when the page opens."""

    def numeric(self, place: int) -> bool:
        """Whether a column has numbers."""
        return not self.rows or any(isinstance(row[place], (int, float, tuple)) for row in self.rows)


def sortable_of(table: Table, caption: str) -> Sortable:
    """A table of a terminal, whose first column has names, on a page."""
    return Sortable(heads=table.columns, rows=sortable_rows(table.rows), caption=caption)


def sortable_rows(rows: Iterable[Sequence[Cell]]) -> list[list[Field]]:
    """Lines of a terminal, whose first column has names, on a page; a number is sorted as it is shown."""
    return [[str(row[0]), *map(_field, row[1:])] for row in rows]


def _field(cell: Cell) -> Field:
    """A number, or an interval that begins with one, with how it is shown; one that is not there; or words."""
    text = f"{cell:,}" if isinstance(cell, int) else str(cell)
    try:
        return float(text.replace(",", "").lstrip("< ").partition(" ")[0]), text
    except ValueError:
        return (None, text) if not text or text.startswith(NONE) else text


def estimate_fields(value: float | None, interval: Interval | None, *, percent: bool) -> tuple[Field, Field]:
    """A value and its interval, which is sorted by its lower end."""
    low = None if interval is None else interval.low
    return (value, shown_value(value, percent=percent)), (low, interval_text(interval, percent=percent))


def interval_text(interval: Interval | None, *, percent: bool) -> str:
    """An interval in a cell."""
    return shown_limits(interval, percent=percent, between=" – ", none=NONE)


# --- dots and scales ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A value with its interval: one line of a plot."""

    name: str
    value: float | None
    interval: Interval | None
    count: str = ""
    """How many samples it rests on, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps numbers to places on a drawing."""

    low: float
    high: float
    percent: bool = True
    """Whether the numbers are shares, shown times 100."""
    marks: tuple[float, ...] = ()
    start: float = 2.0
    """Place of `low` in percent of the drawing, by default a little inside a strip."""
    length: float = 96.0
    """Distance from there to the place of `high`; below 0 it goes upward."""
    log: bool = False
    """Whether places go by the logarithm of the numbers, which are all above 0."""

    def at(self, value: float) -> str:
        """The place of `value`, in percent of the drawing."""
        return f"{self.start + self.length * self.share(value):.2f}%"

    def share(self, value: float) -> float:
        """How far `value` is from `low` to `high`, from 0 to 1."""
        low, high = (math.log(each) if self.log else each for each in (self.low, self.high))
        place = math.log(max(value, self.low)) if self.log else value
        share = (place - low) / (high - low) if high > low else 0.5
        return min(max(share, 0.0), 1.0)

    def mark(self, value: float) -> str:
        """A mark of the scale in words."""
        return f"{100 * value:.0f}" if self.percent else f"{Decimal(f'{value:.3g}'):f}"

    def limits(self, interval: Interval | None) -> str:
        """An interval in words."""
        return interval_text(interval, percent=self.percent).replace("-", "−")


SHARES = Scale(low=0.0, high=1.0, marks=(0.0, 0.25, 0.5, 0.75, 1.0))
AGREEMENTS = Scale(low=-1.0, high=1.0, marks=(-1.0, -0.5, 0.0, 0.5, 1.0))
"""Of figures that are below 0 where answers are worse than chance."""


def scale_of(dots: Iterable[Dot], *, percent: bool, around_zero: bool = False) -> Scale:
    """A scale for `dots`: 0 to 100 % for shares, from −100 % where one is below 0; else as wide as the intervals."""
    ends = [end for dot in dots for end in ends_of(dot)]
    if percent and not around_zero:
        return AGREEMENTS if min(ends, default=0.0) < 0 else SHARES
    if not ends:
        return Scale(low=0.0, high=1.0, percent=percent)
    if around_zero:
        reach = max(*(abs(end) for end in ends), 0.01) * 1.05
        return Scale(low=-reach, high=reach, percent=percent, marks=(0.0,))
    low, high = min(*ends, 0.0), max(ends)
    return Scale(low=low, high=high if high > low else low + 1.0, percent=percent, marks=(low, high))


def ends_of(dot: Dot) -> list[float]:
    """The numbers that a dot and its interval reach."""
    limits = [] if dot.interval is None else [dot.interval.low, dot.interval.high]
    return [end for end in (dot.value, *limits) if end is not None]


# --- kinds of plots ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A drawing with its title above and its note below."""

    title: str
    note: str = ""
    kind: str = ""
    """The macro in `plots.html` that draws it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals(Plot):
    """A dot with its interval for each line."""

    dots: Sequence[Dot]
    scale: Scale
    heads: tuple[str, str, str]
    """Of the columns of names, values and counts."""
    kind: Literal["intervals"] = "intervals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubles(Plot):
    """Two dots with their intervals for each line, the first hollow and above the second."""

    rows: Sequence[tuple[Dot, Dot]]
    """Two values of one name each."""
    scale: Scale
    heads: tuple[str, str, str]
    """Of the columns of names and of both values."""
    kind: Literal["doubles"] = "doubles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Plot):
    """A bar for each count."""

    counts: Sequence[tuple[str, int]]
    heads: tuple[str, str]
    kind: Literal["bars"] = "bars"

    def width(self, count: int) -> str:
        """How long the bar of `count` is; a small count can still be seen, and 0 has no bar."""
        most = max((count for _, count in self.counts), default=1) or 1
        return f"{max(100 * count / most, 0.4) if count else 0:.2f}%"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlot(Plot):
    """For each line a dot with its interval of several things, such as runs, told apart by colour."""

    names: Sequence[str]
    """Of the things."""
    rows: Sequence[tuple[str, Sequence[Dot | None]]]
    """By line its name and the dots, in the order of the names; None where a thing has none."""
    scale: Scale
    heads: tuple[str, str]
    """Of the lines and of the values."""
    kind: Literal["groups"] = "groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPlot(Plot):
    """Cells in rows and columns, darker where their number is larger."""

    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[float | None]]
    """By row and column a number; None where there is none."""
    shades: Sequence[Sequence[float | None]]
    """How dark each cell is, from 0 to 1."""
    heads: tuple[str, str]
    """What the rows and the columns are."""
    legend: str = ""
    """What the shades mean, where no numbers stand in the cells; empty where they do."""
    kind: Literal["cells"] = "cells"

    @property
    def lines(self) -> list[tuple[str, list[tuple[float | None, float | None]]]]:
        """By row its name, and of each cell its number and its shade."""
        return [
            (name, [*zip(numbers, shades, strict=True)])
            for name, numbers, shades in zip(self.rows, self.cells, self.shades, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line of a plot of curves."""

    name: str
    line: Sequence[tuple[float, float]] = ()
    """Places of the line, from left to right."""
    points: Sequence[tuple[float, Dot]] = ()
    """Points that stand out, each with its interval upward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves(Plot):
    """Several lines in one drawing, told apart by colour and by dashes."""

    curves: Sequence[Curve]
    across: str
    """What the places across are."""
    upward: str
    """What the places upward are."""
    over: Scale
    up: Scale
    named: bool = False
    """Whether names stand at the points; else a legend has them."""
    kind: Literal["curves"] = "curves"

    def path(self, curve: Curve) -> str:
        """The line of a curve, in thousandths of the drawing from its upper left corner."""
        places = ((1000 * self.over.share(x), 1000 - 1000 * self.up.share(y)) for x, y in curve.line)
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)

    @property
    def words(self) -> str:
        """The same in words."""
        lines: list[str] = []
        for curve in self.curves:
            places = [(x, dot.value) for x, dot in curve.points] or [*curve.line[:: max(1, len(curve.line) // 10)]]
            shown = ", ".join(f"{x:.3g}: {shown_value(y, percent=self.up.percent)}" for x, y in places)
            lines.append(f"{curve.name}: {shown}")
        return f"{self.title} ({self.upward}, by {self.across}). {'; '.join(lines)}"


def drawn_across(high: float, *, low: float = 0.0, percent: bool = True, log: bool = False) -> Scale:
    """The scale across a drawing of curves, from `low` to `high`, with round marks; by logarithms those are 10, 100, ….

    Args:
        high: the largest number.
        low: the smallest; above 0 for logarithms.
        percent: whether the numbers are shares.
        log: whether places go by logarithms.
    """
    marks = (
        tuple(10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1))
        if log
        else _round_marks(high)
    )
    return Scale(low=low, high=high, percent=percent, marks=marks, start=8, length=86, log=log)


def drawn_upward(values: Iterable[float]) -> Scale:
    """The scale upward of a drawing of shares: from 0 to the first of a few round ends that no value is above.

    It begins at −100 % where a value is below 0.
    """
    ends = [*values]
    if min(ends, default=0.0) < 0:
        return replace(AGREEMENTS, start=88, length=-83)
    most = max(ends, default=1.0)
    high = next((end for end in (0.1, 0.2, 0.5) if most <= end), 1.0)
    return Scale(low=0.0, high=high, marks=_round_marks(high), start=88, length=-83)


def _round_marks(high: float) -> tuple[float, ...]:
    """Up to six marks from 0 on, 1, 2 or 5 times a power of ten apart."""
    if high <= 0:
        return (0.0,)
    power = 10.0 ** math.floor(math.log10(high / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * 5 >= high * (1 - 1e-9))
    return tuple(round(step * number, 12) for number in range(6) if step * number <= high * (1 + 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityPoint:
    """Cases of about one confidence."""

    said: float
    """The confidence, such as the share of votes."""
    count: int
    value: float
    """Share of the cases that is true."""
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityPlot(Plot):
    """Share of cases that is true, by confidence; on the diagonal the two are equal."""

    points: Sequence[ReliabilityPoint]
    heads: tuple[str, str, str]
    """Of the columns of confidences, counts and shares."""
    kind: Literal["reliability"] = "reliability"
    over: Scale = Scale(low=0.0, high=1.0, marks=SHARES.marks, start=11, length=82)
    up: Scale = Scale(low=0.0, high=1.0, marks=SHARES.marks, start=91, length=-86)

    @property
    def words(self) -> str:
        """The same in words."""
        said, counted, value = self.heads
        points = "; ".join(
            f"of {each.count:,} {counted} at {100 * each.said:.0f} %, {100 * each.value:.0f} %" for each in self.points
        )
        return f"{value}, by {said}: {points}."


def score_dots(figures: Sequence[Figure]) -> list[Dot]:
    """The figures that measure how right the answers are, as lines of a plot."""
    return [dot_of(each.metric, each) for each in figures if _is_score(each)]


def _is_score(figure: Figure) -> bool:
    return figure.percent and not figure.metric.startswith(NO_SCORES)


def dot_of(name: str, figure: Figure) -> Dot:
    """A figure as a line of a plot."""
    count = f"{figure.answered:,} / {figure.samples:,}"
    return Dot(name=name, value=figure.value, interval=figure.interval, count=count)


# --- a drawing that stands alone ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Values with their intervals, drawn as SVG."""

    title: str
    dots: tuple[Dot, ...]
    scale: Scale
    note: str = ""

    @property
    def svg(self) -> str:
        """The drawing as an SVG element that loads no other file."""
        return render("drawing.svg", drawing=self)

    @property
    def description(self) -> str:
        """The same in words."""
        lines = [
            f"{dot.name} {shown_value(dot.value, percent=self.scale.percent)}"
            + (f", {self.scale.limits(dot.interval)}" if dot.interval else "")
            for dot in self.dots
        ]
        return "; ".join(lines)

    def save(self, path: str | Path) -> Path:
        """Writes the drawing as an SVG file; an existing one is replaced.

        Raises:
            UsageError: the name is none of an SVG file.
            OSError: it cannot be written.
        """
        file = Path(path)
        if file.suffix.lower() != ".svg":
            raise UsageError(
                f"A plot is written as SVG, and {str(file)!r} is none.",
                hint="Name a file such as run.svg; `askance plot` writes PDF and PNG.",
            )
        file.write_text(
            f'<?xml version="1.0" encoding="UTF-8"?>\n{self.svg}\n', encoding="utf-8", errors="backslashreplace"
        )
        return file

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({self.title!r}, {self.description!r})"


def leading_figures(figures: Sequence[Figure]) -> Sequence[Figure]:
    """The first figures that say how right answers are; where none is a share, the first of the others."""
    shares = [each for each in figures if _is_score(each)]
    return (shares or [each for each in figures if not each.percent])[:MOST_FIGURES]


def drawing_of(figures: Sequence[Figure], *, title: str) -> Drawing:
    """The figures of a run with their intervals.

    Raises:
        UsageError: shares and other numbers are mixed.
    """
    if len({each.percent for each in figures}) > 1:
        raise UsageError("Shares and other numbers share no scale.", hint="Draw them apart: run.plot(metrics=[…]).")
    dots = tuple(dot_of(each.metric, each) for each in figures)
    level = next((100 * each.interval.level for each in figures if each.interval), 95)
    return Drawing(
        title=title,
        dots=dots,
        scale=scale_of(dots, percent=figures[0].percent),
        note=f"Lines are {level:.0f} % intervals; answered / samples.",
    )
