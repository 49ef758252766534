"""Figures with their intervals as one drawing that stands alone: in a notebook, in a file, in a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.evals.report.markup import Markup, joined
from askance.evals.report.plots import Dot, Scale, scale_of
from askance.evals.tables import NONE, shown_value
from askance.replay import visible

if TYPE_CHECKING:
    from askance.evals.figures import Figure
    from askance.evals.run import Run

MOST = 10
"""Figures of a run that are drawn unless some are named."""
NO_SCORES = ("error", "ceiling", "place", "same answer", "difference")
"""How figures are named that say something else than how right answers are."""

_WIDTH, _ROW, _TOP = 760, 28, 58
"""Pixels of the whole, of a line, and above the first."""
_STRIP = (210, 500)
"""Where the strips begin and end."""
_LONGEST = 28
"""Characters of a name that have room."""
_COLOUR = "#3a78bf"
"""Has a contrast of at least 4 to white and to black pages; text has the colour of what is around it."""


def score_dots(figures: Sequence[Figure]) -> list[Dot]:
    """The figures that say how right answers are, as lines of a plot."""
    return [dot_of(each.metric, each) for each in figures if each.percent and not each.metric.startswith(NO_SCORES)]


def dot_of(name: str, figure: Figure) -> Dot:
    """A figure as a line of a plot."""
    count = f"{figure.answered:,} / {figure.samples:,}"
    return Dot(name=name, value=figure.value, interval=figure.interval, count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Values with their intervals, drawn as SVG."""

    title: str
    dots: tuple[Dot, ...]
    scale: Scale
    note: str = ""

    @property
    def svg(self) -> str:
        """The drawing: an SVG element that needs nothing from outside."""
        height = _TOP + _ROW * len(self.dots) + (44 if self.note else 24)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}" role="img" font-family="system-ui, sans-serif" font-size="13" fill="currentColor" '
            f'stroke-linecap="round" aria-label="{_plain(self.title)}">'
            f"<title>{_plain(self.title)}</title><desc>{_plain(self.description)}</desc>"
            f"{joined(_parts(self, height))}</svg>"
        )

    @property
    def description(self) -> str:
        """The same in words."""
        lines = [
            f"{dot.name} {_value(dot, self.scale)}" + (f", {_interval(dot, self.scale)}" if dot.interval else "")
            for dot in self.dots
        ]
        return "; ".join(lines)

    def save(self, path: str | Path) -> Path:
        """Writes the drawing as an SVG file, in place of one that is there.

        Raises:
            UsageError: the name is none of an SVG file.
            OSError: it cannot be written.
        """
        file = Path(path)
        if file.suffix.lower() != ".svg":
            raise UsageError(
                f"A plot is written as SVG, and {str(file)!r} is none.", hint="Name a file such as run.svg."
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


def drawing_of(run: Run, metrics: Sequence[str] | None = None) -> Drawing:
    """The figures of a run with their intervals.

    Args:
        run: finished.
        metrics: names of those that are drawn; by default the first ones that say how right answers are.

    Raises:
        UsageError: there is nothing to draw, the run has no such metric, or shares and other numbers are mixed.
    """
    figures = list(run.figures) if metrics is None else [run.figure(name) for name in metrics]
    if metrics is None:
        shares = [each for each in figures if each.percent and not each.metric.startswith(NO_SCORES)]
        figures = (shares or [each for each in figures if not each.percent])[:MOST]
    if not figures:
        raise UsageError(f"The run {str(run.path)!r} has no figures to draw.", hint="Finish it first.")
    if len({each.percent for each in figures}) > 1:
        raise UsageError("Shares and other numbers share no scale.", hint="Draw them apart: run.plot(metrics=[…]).")
    dots = tuple(dot_of(each.metric, each) for each in figures)
    scale = scale_of(dots, percent=figures[0].percent)
    level = next((100 * each.interval.level for each in figures if each.interval), 95)
    return Drawing(
        title=f"{run.task} · {run.name}",
        dots=dots,
        scale=scale,
        note=f"Lines are {level:.0f} % intervals; answered / samples.",
    )


def _parts(drawing: Drawing, height: int) -> Iterator[Markup]:
    scale, bottom = drawing.scale, _TOP + _ROW * len(drawing.dots)
    yield _text(drawing.title if len(drawing.title) <= 90 else f"{drawing.title[:89]}…", x=0, y=18, size=15, weight=600)
    for x, head in ((560, "%" if scale.percent else "value"), (666, "interval"), (_WIDTH, "answered")):
        yield _text(head, x=x, y=_TOP - 14, size=11, anchor="end", soft=True)
    for mark in scale.marks:
        x = _place(mark, scale)
        yield Markup(f'<line x1="{x}" x2="{x}" y1="{_TOP - 6}" y2="{bottom}" stroke="currentColor" opacity="0.18"/>')
        words = f"{100 * mark:.0f}" if scale.percent else f"{mark:.3g}"
        yield _text(words, x=x, y=bottom + 14, size=11, anchor="middle", soft=True)
    for number, dot in enumerate(drawing.dots):
        yield from _line(dot, scale, y=_TOP + _ROW * number + _ROW // 2)
    if drawing.note:
        yield _text(drawing.note, x=0, y=height - 6, size=11, soft=True)


def _line(dot: Dot, scale: Scale, *, y: int) -> Iterator[Markup]:
    name = dot.name if len(dot.name) <= _LONGEST else f"{dot.name[: _LONGEST - 1]}…"
    yield _text(name, x=0, y=y + 4)
    if dot.interval is not None:
        low, high = _place(dot.interval.low, scale), _place(dot.interval.high, scale)
        yield Markup(
            f'<line x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke="{_COLOUR}" stroke-width="2" opacity="0.7"/>'
        )
    if dot.value is not None:
        yield Markup(f'<circle cx="{_place(dot.value, scale)}" cy="{y}" r="5" fill="{_COLOUR}"/>')
    yield _text(_value(dot, scale), x=560, y=y + 4, anchor="end")
    yield _text(_interval(dot, scale), x=666, y=y + 4, size=11, anchor="end", soft=True)
    yield _text(dot.count, x=_WIDTH, y=y + 4, size=11, anchor="end", soft=True)


def _place(value: float, scale: Scale) -> str:
    low, high = _STRIP
    share = (value - scale.low) / (scale.high - scale.low) if scale.high > scale.low else 0.5
    return f"{low + (high - low) * min(max(share, 0.0), 1.0):.1f}"


def _value(dot: Dot, scale: Scale) -> str:
    return shown_value(dot.value, percent=scale.percent)


def _interval(dot: Dot, scale: Scale) -> str:
    if dot.interval is None:
        return NONE
    low, high = (shown_value(end, percent=scale.percent) for end in (dot.interval.low, dot.interval.high))
    return f"{low} – {high}"


def _text(
    words: str,
    *,
    x: float | str,
    y: float,
    size: int = 13,
    weight: int = 400,
    anchor: str = "start",
    soft: bool = False,
) -> Markup:
    look = f' font-weight="{weight}"' if weight != 400 else ""
    look += ' opacity="0.75"' if soft else ""
    return Markup(f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}"{look}>{_plain(words)}</text>')


def _plain(words: str) -> str:
    """Text that nothing takes for markup, and that nothing hides in."""
    return escape(visible(words))
