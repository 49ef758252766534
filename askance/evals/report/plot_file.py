"""Plots as figures for a paper: PDF, SVG and PNG, drawn by matplotlib.

Colours are those of Okabe and Ito ("Color universal design", 2008), which people with any colour vision can tell apart;
markers and dashes tell runs apart as well. Text stays text: in a PDF it is TrueType, in an SVG a text element. Names
are written as they are: a `$` or `_` in them means nothing. Equal plots make equal files.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import cycle, islice, pairwise, zip_longest
from pathlib import Path
from typing import Any, Final

from askance.errors import UsageError, optional_library
from askance.evals.report.elements import (
    Bars,
    Curves,
    Dot,
    GridPlot,
    GroupPlot,
    Intervals,
    Plot,
    ReliabilityPlot,
    Scale,
)
from askance.evals.run_folder import replacing
from askance.terminal import printable

COLUMN: Final = 3.3
"""Inches of one column of a paper with two."""
NARROWEST, WIDEST = 2.0, 20.0
DOTS: Final = 300
"""Pixels of an inch of a PNG."""

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS, _DASHES = "osD^vPXp", ("-", "--", "-.", ":")
_GREY, _FAINT = "#555555", "#cccccc"
_METADATA: Mapping[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None, "ModDate": None},
    ".svg": {"Date": None},
    ".png": {"Software": None},
}
"""By the end of a file's name what matplotlib notes in it: no dates and, in pictures, no versions."""
_STYLE: Mapping[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so that files are equal everywhere
    "font.size": 7,
    "axes.labelsize": 7,
    "axes.titlesize": 7.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "askance",
    "text.parse_math": False,
    "text.usetex": False,
}
_MOST_NAMED = 60
"""Most rows of a grid that have their names beside them."""
_ROOM_OF_NAMES = 0.42
"""Share of the width that names beside a drawing take at most."""


def save_plots(plots: Sequence[Plot], path: Path, *, width: float = COLUMN) -> list[str]:
    """Writes plots below each other into one file; an existing one is replaced.

    Args:
        plots: from `plots_of`.
        path: its end says the form: .pdf, .svg or .png. Its folder is made where there is none.
        width: in inches; the height follows from what is drawn.

    Returns:
        What a person should know of the file: characters that its font lacks.

    Raises:
        UsageError: the end of the name is another one, or the width is out of bounds.
        MissingExtra: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    form = path.suffix.lower()
    if form not in _METADATA:
        raise UsageError(
            f"A plot is written as PDF, SVG or PNG, and {str(path)!r} is none.", hint="Name a file such as fig.pdf."
        )
    if not NARROWEST <= width <= WIDEST:
        raise UsageError(
            f"A width of {width:g} inches is not between {NARROWEST:g} and {WIDEST:g}.",
            hint=f"Give {COLUMN:g} for one column, 6.9 for two.",
        )
    matplotlib, figures = optional_library("matplotlib", "plots"), optional_library("matplotlib.figure", "plots")
    content = BytesIO()
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        legends = [_has_legend(plot, after) for plot, after in zip_longest(plots, plots[1:])]
        heights = [_height(plot, width, legend=legend) for plot, legend in zip(plots, legends, strict=True)]
        figure = figures.Figure(figsize=(width, sum(heights)), layout="constrained")
        panels = figure.subfigures(len(plots), 1, height_ratios=heights, squeeze=False)[:, 0]
        for panel, plot, legend in zip(panels, plots, legends, strict=True):
            _Panel(panel, width, titled=len(plots) > 1, legend=legend).draw(plot)
        figure.savefig(content, format=form[1:], dpi=DOTS, metadata=_METADATA[form])
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_bytes(content.getvalue())
    return [*_lacks(heard)]


def _lacks(heard: Sequence[warnings.WarningMessage]) -> Iterator[str]:
    """What matplotlib has warned of, each once; characters without a glyph in one line."""
    texts = list(dict.fromkeys(str(each.message) for each in heard))
    missing = [text for text in texts if "missing from font" in text]
    if missing:
        yield (
            f"{len(missing)} characters of names have no glyph in the font; in an SVG they are there, and drawn by "
            "another font"
        )
    yield from (text for text in texts if text not in missing)


# --- how large a drawing is ---


def _has_legend(plot: Plot | None, after: Plot | None) -> bool:
    """Whether names stand below a drawing; where the next one has the same, they stand there."""
    if isinstance(plot, GroupPlot):
        return len(plot.names) > 1 and (not isinstance(after, GroupPlot) or after.names != plot.names)
    return isinstance(plot, Curves) and not plot.named


def _height(plot: Plot, width: float, *, legend: bool) -> float:
    """The height of a drawing in inches."""
    match plot:
        case Intervals():
            return 0.5 + 0.115 * sum(max(1.4, _lines(dot.name, width)) for dot in plot.dots)
        case GroupPlot():
            each = 0.5 + 0.8 * len(plot.names)
            rows = sum(max(each, _lines(name, width)) for name, _ in plot.rows)
            return 0.55 + 0.115 * (rows + _legend_lines(plot.names if legend else (), width))
        case Curves():
            names = [curve.name for curve in plot.curves] if legend else []
            return 0.72 * min(width, 4.5) + 0.13 * _legend_lines(names, width)
        case GridPlot():
            return _grid_height(plot, width)
        case _:
            return 0.95 * min(width, COLUMN)


def _grid_height(plot: GridPlot, width: float) -> float:
    heads = 0.045 * max(len(name) for name in plot.columns) + 0.5
    if not plot.legend:
        return 0.26 * len(plot.rows) + min(heads, 1.6) + 0.2
    room = 0.115 * len(plot.rows) if len(plot.rows) <= _MOST_NAMED else min(0.02 * len(plot.rows), 0.9 * width)
    return max(room, 0.8) + min(heads, 1.6) + 0.5


def _letters(width: float, share: float) -> int:
    """How many letters stand in a share of the width, about."""
    return max(8, int(width * share / 0.052))


def _wrapped(text: str, width: float, share: float = _ROOM_OF_NAMES) -> str:
    """A name in lines that fit; nothing of it is left out."""
    return "\n".join(textwrap.wrap(" ".join(printable(text).split()), _letters(width, share))) or " "


def _lines(text: str, width: float) -> int:
    return _wrapped(text, width).count("\n") + 1


def _legend_lines(names: Sequence[str], width: float) -> int:
    return sum(_wrapped(name, width, 0.85).count("\n") + 1 for name in names)


# --- drawings ---


class _Panel:
    """One drawing of a figure."""

    def __init__(self, panel: Any, width: float, *, titled: bool, legend: bool) -> None:
        self._panel = panel
        self._axes = panel.subplots()
        self._width = width
        self._titled, self._has_legend = titled, legend

    def draw(self, plot: Plot) -> None:
        """Draws a plot.

        Raises:
            UsageError: it is of a kind that pages alone draw.
        """
        match plot:
            case Intervals():
                self._intervals(plot)
            case GroupPlot():
                self._groups(plot)
            case Bars():
                self._bars(plot)
            case Curves():
                self._curves(plot)
            case ReliabilityPlot():
                self._reliability(plot)
            case GridPlot():
                self._grid(plot)
            case _:
                raise UsageError(f"A plot of the kind {plot.kind!r} is drawn by pages alone.", hint="Draw another.")

    def _intervals(self, plot: Intervals) -> None:
        sizes = [max(1.4, _lines(dot.name, self._width)) for dot in plot.dots]
        places = [-(sum(sizes[:number]) + size / 2) for number, size in enumerate(sizes)]
        for place, dot in zip(places, plot.dots, strict=True):
            self._dot(dot, place, plot.scale, colour=_COLOURS[0], marker="o")
        self._names(places, [dot.name for dot in plot.dots])
        self._axes.set_ylim(-sum(sizes), 0)
        self._across(plot.scale, self._labelled(plot.title, plot.heads[1]))

    def _groups(self, plot: GroupPlot) -> None:
        each = 0.5 + 0.8 * len(plot.names)
        sizes = [max(each, _lines(name, self._width)) for name, _ in plot.rows]
        middles = [-(sum(sizes[:number]) + size / 2) for number, size in enumerate(sizes)]
        looks = [*islice(_looks(), len(plot.names))]
        for middle, (_, dots) in zip(middles, plot.rows, strict=True):
            for number, (dot, (colour, marker, _)) in enumerate(zip(dots, looks, strict=True)):
                if dot is not None:
                    offset = 0.8 * (number - (len(plot.names) - 1) / 2)
                    self._dot(dot, middle - offset, plot.scale, colour=colour, marker=marker)
        for edge in range(1, len(sizes)):
            self._axes.axhline(-sum(sizes[:edge]), color=_FAINT, linewidth=0.4)
        self._names(middles, [name for name, _ in plot.rows])
        self._axes.set_ylim(-sum(sizes), 0)
        self._across(plot.scale, self._labelled(plot.title, plot.heads[1]))
        handles = [
            self._axes.plot([], [], marker, color=colour, label=_wrapped(name, self._width, 0.85))[0]
            for name, (colour, marker, _) in zip(plot.names, looks, strict=True)
        ]
        self._legend(handles)

    def _bars(self, plot: Bars) -> None:
        places = [-float(number) for number in range(len(plot.counts))]
        self._axes.barh(places, [count for _, count in plot.counts], height=0.7, color=_COLOURS[0])
        self._names(places, [name for name, _ in plot.counts])
        self._axes.set_xlabel(self._labelled(plot.title, plot.heads[1]))

    def _curves(self, plot: Curves) -> None:
        axes = self._axes
        looks, handles = _looks(), list[Any]()
        for curve in plot.curves:
            plain = plot.named and bool(curve.line)
            colour, marker, dash = (_GREY, "", "-") if plain else next(looks)
            label = _wrapped(curve.name, self._width, 0.85)
            if curve.line:
                xs, ys = zip(*curve.line, strict=True)
                shown = dash if len(xs) > 1 else f"{dash}o"  # a line of one point is seen by its marker alone
                handles += axes.plot(
                    xs, ys, shown, color=colour, label=label, linewidth=0.8 if plain else 1.2, zorder=1 if plain else 2
                )
            for x, dot in curve.points:
                if dot.value is None:
                    continue
                if dot.interval is not None:
                    axes.plot([x, x], [dot.interval.low, dot.interval.high], color=colour, linewidth=0.8, alpha=0.6)
                (mark,) = axes.plot([x], [dot.value], marker, color=colour, label=label, zorder=3)
                handles += [] if curve.line else [mark]
        self._upward(plot.up, plot.upward)
        self._across(plot.over, plot.across)
        if plot.named:
            self._name_points(plot)
        self._legend(handles)

    def _name_points(self, plot: Curves) -> None:
        """Names beside their points, on the side with more room, none over another or over a point."""
        over, up = plot.over, plot.up
        points = [(x, dot) for curve in plot.curves for x, dot in curve.points if dot.value is not None]
        taken = [*_boxes_of(plot)]
        height = _height(plot, self._width, legend=False) - 0.5
        for x, dot in sorted(points, key=lambda each: -(each[1].value or 0.0)):
            across, middle = over.share(x), up.share(dot.value or 0.0)
            right = across < 0.5
            text = _wrapped(dot.name, self._width, max((1 - across if right else across) * 0.75, 0.3))
            lines = text.split("\n")
            long, tall = max(map(len, lines)) * 0.05 / (self._width * 0.82), len(lines) * 0.105 / height
            left = across + 0.03 if right else across - 0.03 - long
            heights = (at for step in range(50) for at in (middle + 0.02 * step, middle - 0.02 * step))
            free = (at for at in heights if tall / 2 <= at <= 1 - tall / 2)
            place = next((at for at in free if not _overlaps((left, at, long, tall), taken)), middle)
            taken.append((left, place, long, tall))
            self._axes.annotate(
                text,
                (across, middle),
                (across + (0.03 if right else -0.03), place),
                xycoords="axes fraction",
                textcoords="axes fraction",
                ha="left" if right else "right",
                va="center",
                fontsize=6.5,
                arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": _GREY} if place != middle else None,
            )

    def _reliability(self, plot: ReliabilityPlot) -> None:
        axes = self._axes
        axes.plot([0, 1], [0, 1], "--", color=_GREY, linewidth=0.8)
        for each in plot.points:
            if each.interval is not None:
                axes.plot([each.said] * 2, [each.interval.low, each.interval.high], color=_COLOURS[0], alpha=0.6)
        axes.plot([each.said for each in plot.points], [each.value for each in plot.points], "o", color=_COLOURS[0])
        for each in plot.points:
            axes.annotate(
                f"{each.count:,}",
                (each.said, each.value),
                (3, 0),
                textcoords="offset points",
                va="center",
                rotation=90,
                fontsize=5,
                color=_GREY,
            )
        self._upward(plot.up, plot.heads[2])
        self._across(plot.over, f"{plot.heads[0]}, in %")
        axes.set_aspect("equal")
        self._title(plot.title)

    def _grid(self, plot: GridPlot) -> None:
        axes = self._axes
        shades = [[float("nan") if each is None else each for each in row] for row in plot.shades]
        axes.set_facecolor("#ffffff")
        image = axes.imshow(shades, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes.patch.set(hatch="xxxx", edgecolor=_FAINT)
        names = [_wrapped(name, self._width, 0.25) for name in plot.columns]
        upright = len(names) * max(map(len, plot.columns)) * 0.05 > 0.6 * self._width
        axes.set_xticks(range(len(names)), names, rotation=90 if upright else 0)
        axes.tick_params(length=0)
        if len(plot.rows) <= _MOST_NAMED:
            axes.set_yticks(range(len(plot.rows)), [_wrapped(name, self._width) for name in plot.rows])
        else:
            axes.set_yticks([])
        axes.set_ylabel(plot.heads[0])
        axes.set_xlabel(plot.heads[1])
        if plot.legend:
            bar = self._panel.colorbar(image, ax=axes, location="top", fraction=0.04, aspect=30, pad=0.02)
            bar.set_ticks([0, 0.5, 1], labels=["0", "50", "100"])
            bar.set_label(plot.legend)
            bar.outline.set_linewidth(0.4)
        else:
            self._counts(plot)
        self._title(plot.title)

    def _counts(self, plot: GridPlot) -> None:
        for row, (_, cells) in enumerate(plot.lines):
            for column, (number, shade) in enumerate(cells):
                if number is not None:
                    ink = "white" if (shade or 0.0) > 0.5 else "black"
                    self._axes.text(column, row, f"{number:,.0f}", ha="center", va="center", color=ink, fontsize=6.5)

    # --- their parts ---

    def _dot(self, dot: Dot, place: float, scale: Scale, *, colour: str, marker: str) -> None:
        if dot.interval is not None:
            self._axes.plot([dot.interval.low, dot.interval.high], [place] * 2, color=colour, alpha=0.6)
        if dot.value is not None:
            self._axes.plot([dot.value], [place], marker, color=colour)
        else:
            self._axes.text(scale.low, place, " no value", va="center", fontsize=6, color=_GREY)

    def _names(self, places: Sequence[float], names: Sequence[str]) -> None:
        self._axes.set_yticks(places, [_wrapped(name, self._width) for name in names])
        self._axes.tick_params(axis="y", length=0)

    def _across(self, scale: Scale, label: str) -> None:
        if scale.log:
            self._axes.set_xscale("log")
            self._axes.minorticks_off()
        margin = 0.0 if scale.log else 0.02 * (scale.high - scale.low)
        self._axes.set_xlim(scale.low - margin, scale.high + margin)
        if len(scale.marks) > 1:
            self._axes.set_xticks(scale.marks, [scale.mark(mark) for mark in scale.marks])
        self._axes.grid(axis="x", color=_FAINT, linewidth=0.4)
        self._axes.set_axisbelow(True)
        self._axes.set_xlabel(_wrapped(label, self._width, 0.8))

    def _upward(self, scale: Scale, label: str) -> None:
        margin = 0.02 * (scale.high - scale.low)
        self._axes.set_ylim(scale.low - margin, scale.high + margin)
        self._axes.set_yticks(scale.marks, [scale.mark(mark) for mark in scale.marks])
        self._axes.grid(axis="y", color=_FAINT, linewidth=0.4)
        self._axes.set_ylabel(_wrapped(label, self._width, 0.6))

    def _legend(self, handles: Sequence[Any]) -> None:
        if self._has_legend:
            self._panel.legend(handles=handles, loc="outside lower center", ncols=1, handlelength=2.4)

    def _title(self, title: str) -> None:
        if self._titled:
            self._panel.suptitle(_wrapped(title, self._width, 0.9), fontsize=7.5)

    def _labelled(self, title: str, unit: str) -> str:
        """The label of an axis: the title, which stands nowhere else, and the unit."""
        return title if unit in title else f"{title}, {unit}"


def _looks() -> Iterator[tuple[str, str, str]]:
    """Colours, markers and dashes: a colour comes again with another marker and other dashes."""
    return zip(cycle(_COLOURS), cycle(_MARKERS), cycle(_DASHES), strict=False)


def _boxes_of(plot: Curves) -> Iterator[tuple[float, float, float, float]]:
    """Where points, intervals and lines are, as boxes that `_overlaps` takes."""
    over, up = plot.over, plot.up
    for curve in plot.curves:
        for x, dot in curve.points:
            if dot.value is not None:
                low, high = (dot.value,) * 2 if dot.interval is None else (dot.interval.low, dot.interval.high)
                middle, tall = (up.share(low) + up.share(high)) / 2, up.share(high) - up.share(low)
                yield over.share(x) - 0.01, middle, 0.02, tall + 0.04
        for (x, y), (later, higher) in pairwise(curve.line):
            for step in range(21):
                across = over.share(x) + (over.share(later) - over.share(x)) * step / 20
                yield across, up.share(y) + (up.share(higher) - up.share(y)) * step / 20, 0.01, 0.02


def _overlaps(box: tuple[float, float, float, float], others: Sequence[tuple[float, float, float, float]]) -> bool:
    """Whether a box, by its left end, middle height, length and height, lies over another."""
    left, middle, long, tall = box
    return any(
        left < x + length and x < left + long and abs(middle - y) < (tall + height) / 2
        for x, y, length, height in others
    )
