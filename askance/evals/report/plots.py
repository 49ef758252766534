"""Plots as tables with a drawn cell: an inline SVG strip stands beside the number that it draws.

They are drawn by hand: lengths in percent let a strip follow the width of the page, colours come from its style, and
text stays text. A plotting library would bring a script of its own, or colours that do not change with the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.evals.report.markup import Markup, element, joined
from askance.evals.tables import shown_value

if TYPE_CHECKING:
    from askance.statistics import Interval

_HEIGHT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One line of a plot of intervals."""

    name: str
    value: float | None
    interval: Interval | None
    count: str = ""
    """How much it rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From numbers to places across a strip."""

    low: float
    high: float
    percent: bool = True
    marks: tuple[float, ...] = ()

    def at(self, value: float) -> str:
        """The place of `value`, in percent of the strip's width, a little inside its ends."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return f"{2 + 96 * min(max(share, 0.0), 1.0):.2f}%"


SHARES = Scale(low=0.0, high=1.0, marks=(0.0, 0.25, 0.5, 0.75, 1.0))


def scale_of(dots: Iterable[Dot], *, percent: bool, around_zero: bool = False) -> Scale:
    """A scale for `dots`: 0 to 100 % for shares, as wide as the intervals for anything else."""
    ends = [end for dot in dots for end in _ends(dot)]
    if percent and not around_zero:
        return SHARES
    if not ends:
        return Scale(low=0.0, high=1.0, percent=percent)
    if around_zero:
        reach = max(*(abs(end) for end in ends), 0.01) * 1.05
        return Scale(low=-reach, high=reach, percent=percent, marks=(0.0,))
    low, high = min(*ends, 0.0), max(ends)
    return Scale(low=low, high=high if high > low else low + 1.0, percent=percent, marks=(low, high))


def _ends(dot: Dot) -> list[float]:
    limits = [] if dot.interval is None else [dot.interval.low, dot.interval.high]
    return [end for end in (dot.value, *limits) if end is not None]


def intervals(title: str, dots: Sequence[Dot], scale: Scale, *, heads: tuple[str, str, str], note: str = "") -> Markup:
    """A dot with its interval for each line.

    Args:
        title: of the plot.
        dots: its lines.
        scale: of all of them.
        heads: of the columns of names, values and counts.
        note: below it.
    """
    names, values, counts = heads
    rows = (
        element(
            "tr",
            element("th", dot.name, scope="row"),
            element("td", _interval_strip(dot, scale), class_="strip"),
            element("td", shown_value(dot.value, percent=scale.percent), class_="num"),
            element("td", limits(dot.interval, scale), class_="num soft"),
            element("td", dot.count, class_="num soft"),
        )
        for dot in dots
    )
    head = _head(names, "", values, "95 % interval", counts)
    return figure(title, element("table", head, element("tbody", joined(rows), _axis(scale, 2)), class_="plot"), note)


def doubles(
    title: str, rows: Sequence[tuple[Dot, Dot]], scale: Scale, *, heads: tuple[str, str, str], note: str = ""
) -> Markup:
    """Two dots with their intervals for each line, the first hollow and above the second.

    Args:
        title: of the plot.
        rows: its lines, two values of one name each.
        scale: of all of them.
        heads: of the columns of names and of both values.
        note: below it.
    """
    names, *values = heads
    lines = (
        element(
            "tr",
            element("th", first.name, scope="row"),
            element("td", _double_strip(first, second, scale), class_="strip"),
            *(element("td", shown_value(dot.value, percent=scale.percent), class_="num") for dot in (first, second)),
        )
        for first, second in rows
    )
    key = element("p", _key("hollow"), f" {values[0]} ", _key("dot"), f" {values[1]}", class_="note")
    table = element(
        "table", _head(names, "", *values), element("tbody", joined(lines), _axis(scale, 1)), class_="plot double"
    )
    return figure(title, joined((table, key)), note)


def _key(look: str) -> Markup:
    return element("svg", element("circle", cx=6, cy=6, r=4, class_=look), width=12, height=12, aria_hidden="true")


def _double_strip(first: Dot, second: Dot, scale: Scale) -> Markup:
    height = 26
    grid = (
        element("line", x1=scale.at(mark), x2=scale.at(mark), y1=0, y2=height, class_="grid") for mark in scale.marks
    )
    drawn = (*_dotted(first, scale, y=8, look="hollow"), *_dotted(second, scale, y=18, look="dot"))
    return element("svg", *grid, *drawn, height=height, width="100%", aria_hidden="true")


def _dotted(dot: Dot, scale: Scale, *, y: int, look: str) -> Iterator[Markup]:
    if dot.interval is not None:
        low, high = scale.at(dot.interval.low), scale.at(dot.interval.high)
        yield element("line", x1=low, x2=high, y1=y, y2=y, class_="whisker")
    if dot.value is not None:
        yield element("circle", cx=scale.at(dot.value), cy=y, r=4, class_=look)


def bars(title: str, counts: Sequence[tuple[str, int]], *, heads: tuple[str, str], note: str = "") -> Markup:
    """A bar for each count."""
    most = max((count for _, count in counts), default=1) or 1
    rows = (
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", _bar(count / most), class_="strip"),
            element("td", f"{count:,}", class_="num"),
        )
        for name, count in counts
    )
    head = _head(heads[0], "", heads[1])
    return figure(title, element("table", head, element("tbody", joined(rows)), class_="plot"), note)


def scatter(title: str, points: Sequence[tuple[str, float, Dot]], *, across: str, note: str = "") -> Markup:
    """Points with intervals upward: numbered in the drawing, named below it.

    Args:
        title: of the plot.
        points: name, place across (from 0), and place upward as a share.
        across: what the places across are.
        note: below it.
    """
    most = max((place for _, place, _ in points), default=0.0) or 1.0
    drawn = joined(
        _point(number, place / most, dot)
        for number, (_, place, dot) in enumerate(points, start=1)
        if dot.value is not None
    )
    lines = joined(
        element("line", x1="6%", x2="98%", y1=_up(mark), y2=_up(mark), class_="grid") for mark in SHARES.marks
    )
    labels = joined(
        element("text", f"{100 * mark:.0f}", x="5%", y=_up(mark), dy="0.32em", text_anchor="end")
        for mark in SHARES.marks
    )
    summary = "; ".join(f"{name}: {place:g}, {shown_value(dot.value, percent=True)} %" for name, place, dot in points)
    svg = element("svg", lines, labels, drawn, class_="scatter", role="img", aria_label=f"{title}: {summary}")
    items = (element("li", name, " ", element("span", f"{place:g}", class_="soft num")) for name, place, _ in points)
    return figure(
        title, joined((svg, element("p", f"→ {across}, 0 to {most:g}", class_="note"), element("ol", *items))), note
    )


def _point(number: int, share: float, dot: Dot) -> Markup:
    x = f"{8 + 86 * share:.2f}%"
    parts: list[Markup] = []
    if dot.interval is not None:
        parts.append(element("line", x1=x, x2=x, y1=_up(dot.interval.low), y2=_up(dot.interval.high), class_="whisker"))
    parts.append(element("circle", cx=x, cy=_up(dot.value or 0.0), r=5, class_="dot"))
    parts.append(element("text", str(number), x=x, dx=9, y=_up(dot.value or 0.0), dy="-0.4em"))
    return joined(parts)


def _up(share: float) -> str:
    return f"{95 - 90 * share:.2f}%"


def _interval_strip(dot: Dot, scale: Scale) -> Markup:
    middle = _HEIGHT // 2
    grid = (
        element("line", x1=scale.at(mark), x2=scale.at(mark), y1=0, y2=_HEIGHT, class_="grid") for mark in scale.marks
    )
    return element(
        "svg", *grid, *_dotted(dot, scale, y=middle, look="dot"), height=_HEIGHT, width="100%", aria_hidden="true"
    )


def _bar(share: float) -> Markup:
    bar = element("rect", x=0, y=4, height=_HEIGHT - 8, width=f"{max(100 * share, 0.4):.2f}%", rx=2, class_="bar")
    return element("svg", bar, height=_HEIGHT, width="100%", aria_hidden="true")


def _axis(scale: Scale, blank: int) -> Markup | None:
    if not scale.marks:
        return None
    ends = {scale.marks[0]: "start", scale.marks[-1]: "end"} if len(scale.marks) > 1 else {}
    texts = (
        element(
            "text",
            f"{100 * mark:.0f}" if scale.percent else f"{mark:.3g}",
            x=scale.at(mark),
            y=11,
            text_anchor=ends.get(mark, "middle"),
        )
        for mark in scale.marks
    )
    strip = element("td", element("svg", *texts, height=14, width="100%"), class_="strip")
    return element(
        "tr", element("td"), strip, *(element("td") for _ in range(blank + 1)), class_="axis", aria_hidden="true"
    )


def limits(interval: Interval | None, scale: Scale) -> str:
    """An interval in a cell."""
    if interval is None:
        return "–"
    low, high = (shown_value(end, percent=scale.percent) for end in (interval.low, interval.high))
    return f"{low} – {high}".replace("-", "−")


def _head(*names: str) -> Markup:
    return element("thead", element("tr", *(_column(place, name) for place, name in enumerate(names))))


def _column(place: int, name: str) -> Markup:
    return element("th", name, scope="col", class_="num" if place > 1 else None) if name else element("td")


def figure(title: str, content: Markup, note: str) -> Markup:
    """A drawing with its title above and its note below."""
    below = element("p", note, class_="note") if note else None
    return element("figure", element("figcaption", title), content, below)
