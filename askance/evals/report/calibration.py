"""What is known of a judge, drawn: its errors beside people's labels, and how its votes stand to them.

Notes of judges come from folders that anybody may have written: what is no number there is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from askance.evals.report import plots
from askance.evals.report.markup import Markup, element, joined
from askance.statistics import Interval

if TYPE_CHECKING:
    from askance.evals.report.values import Result

_SHARES = ("accuracy", "base rate", "sensitivity", "specificity")
_LOOKS: Mapping[str, Mapping[str, Result]] = {
    "true": {"true": "right", "false": "wrong", "unclear": "partly", "unscored": "no answer"},
    "false": {"true": "wrong", "false": "right", "unclear": "partly", "unscored": "no answer"},
}
"""How verdicts look beside what people say."""

UNKNOWN = "It has no card: how often it is wrong is not known. `askance judge card` makes one."


def judge_part(note: Mapping[str, Any], *, heading: bool) -> Markup:
    """What is known of one judge, drawn; or that nothing is.

    Args:
        note: what scores say of their judge, as `JudgeNote.form` gives it.
        heading: whether its name stands above.
    """
    card: Any = note.get("card")
    name = element("h3", str(note.get("judge", "?"))) if heading else None
    if not isinstance(card, dict):
        return element("div", name, element("p", UNKNOWN, class_="warning"), class_="judge")
    return element("div", name, element("div", *drawn(cast("dict[str, Any]", card)), class_="plots"), class_="judge")


def drawn(card: Mapping[str, Any]) -> Iterator[Markup]:
    """The plots of a card, as far as it has what they take.

    Args:
        card: as `JudgeCard.summary` gives it.
    """
    dots = [dot for name in _SHARES if (dot := _dot(card, name)) is not None]
    if dots:
        note = (
            "Sensitivity is the share of what people call true that the judge does too, specificity that of what they "
            "call false; the base rate is what always giving the more frequent label would come to."
        )
        heads = ("figure", "%", "")
        yield plots.intervals("The judge beside people's labels", dots, plots.SHARES, heads=heads, note=note)
    table = _table(card.get("table"))
    if table:
        yield _confusion(table)
    curve: Any = card.get("reliability")
    points = list(_points(cast("dict[str, Any]", curve).get("points"))) if isinstance(curve, dict) else []
    if points:
        yield _reliability(points, by=str(cast("dict[str, Any]", curve).get("by")))


def _dot(card: Mapping[str, Any], name: str) -> plots.Dot | None:
    value = _share(card.get(name))
    if value is None:
        return None
    intervals: Any = card.get("intervals")
    limits: Any = cast("dict[str, Any]", intervals).get(name) if isinstance(intervals, dict) else None
    return plots.Dot(name=name, value=value, interval=None if name == "base rate" else _interval(limits))


def _share(value: Any) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if number else None


def _interval(limits: Any) -> Interval | None:
    several = cast("list[Any]", limits) if isinstance(limits, list) else []
    ends = [end for each in several if (end := _share(each)) is not None]
    return Interval(low=ends[0], high=ends[1], method="cluster bootstrap") if len(ends) == 2 else None


def _table(form: Any) -> dict[str, dict[str, int]]:
    """Pairs by label and verdict; empty where a card does not say."""
    rows = cast("dict[str, Any]", form) if isinstance(form, dict) else {}
    found: dict[str, dict[str, int]] = {}
    for truth, looks in _LOOKS.items():
        counts: Any = rows.get(truth)
        if not isinstance(counts, dict):
            return {}
        told = cast("dict[str, Any]", counts)
        found[truth] = {each: told[each] if type(told.get(each)) is int else 0 for each in looks}
    return found


_VERDICTS = "Verdicts beside labels"


def _confusion(counted: Mapping[str, Mapping[str, int]]) -> Markup:
    most = max(sum(row.values()) for row in counted.values()) or 1
    verdicts = [
        each for each in _LOOKS["true"] if each in {"true", "false"} or any(row[each] for row in counted.values())
    ]
    rows = (
        element(
            "tr",
            element("th", f"people: {truth}", scope="row"),
            element("td", _stack(truth, row, most), class_="strip"),
            *(element("td", f"{row[each]:,}", class_="num") for each in verdicts),
        )
        for truth, row in counted.items()
    )
    heads = (
        element("th", each if each == "unscored" else f"judge: {each}", scope="col", class_="num") for each in verdicts
    )
    head = element("thead", element("tr", element("th", "labelled pairs", scope="col"), element("td"), *heads))
    table = element("table", head, element("tbody", *rows), class_="plot double")
    content = element("div", table, class_="wide", tabindex=0, role="group", aria_label=_VERDICTS)
    note = "Blue is where the judge says what people say, red where it does not." if verdicts else ""
    return plots.figure(_VERDICTS, content, note)


def _stack(truth: str, row: Mapping[str, int], most: int) -> Markup:
    place, bars = 0.0, list[Markup]()
    for verdict, count in row.items():
        width = 100 * count / most
        look = _LOOKS[truth][verdict].replace(" ", "-")
        bars.append(element("rect", x=f"{place:.2f}%", width=f"{width:.2f}%", y=4, height=12, class_=f"r-{look}"))
        place += width
    return element("svg", *bars, height=20, width="100%", aria_hidden="true")


_Point = tuple[float, int, float, Interval | None]
"""Share of the votes, pairs, share of them that is true, and its interval."""


def _points(forms: Any) -> Iterator[_Point]:
    for each in cast("list[Any]", forms) if isinstance(forms, list) else []:
        form = cast("dict[str, Any]", each) if isinstance(each, dict) else {}
        said, value, pairs = _share(form.get("said")), _share(form.get("value")), form.get("pairs")
        if said is not None and value is not None and type(pairs) is int:
            yield said, pairs, value, _interval(form.get("interval"))


def _reliability(points: Sequence[_Point], *, by: str) -> Markup:
    who = "members of the panel" if by == "members" else "draws"
    title = f"Reliability of {who}"
    told = "; ".join(
        f"of {pairs:,} pairs at {100 * said:.0f} %, {100 * value:.0f} %" for said, pairs, value, _ in points
    )
    svg = element(
        "svg",
        element("title", title),
        element("desc", f"Share of pairs that people call true, by share of {who} that say true: {told}."),
        _grid(),
        joined(_drawn_point(each) for each in points),
        class_="scatter square",
        role="img",
    )
    told = (
        f"→ share of {who} that say true, in %; ↑ share of those pairs that people call true, in %. Numbers are counts "
        "of pairs. On the dashed line as many pairs are true as votes say. Verdicts that are unclear do not say true."
    )
    return plots.figure(title, joined((svg, element("p", told, class_="note"), _listed(points, who))), "")


def _grid() -> Markup:
    marks = plots.SHARES.marks
    lines = (element("line", x1=_x(0), x2=_x(1), y1=_y(mark), y2=_y(mark), class_="grid") for mark in marks)
    sides = (element("text", f"{100 * mark:.0f}", x="7%", y=_y(mark), dy="0.32em", text_anchor="end") for mark in marks)
    below = (element("text", f"{100 * mark:.0f}", x=_x(mark), y="99.5%", text_anchor="middle") for mark in marks)
    even = element("line", x1=_x(0), y1=_y(0), x2=_x(1), y2=_y(1), class_="even")
    return joined((*lines, *sides, *below, even))


def _drawn_point(point: _Point) -> Markup:
    said, pairs, value, interval = point
    parts: list[Markup] = []
    if interval is not None:
        ends = {"y1": _y(interval.low), "y2": _y(interval.high)}
        parts.append(element("line", x1=_x(said), x2=_x(said), **ends, class_="whisker"))
    parts.append(element("circle", cx=_x(said), cy=_y(value), r=5, class_="dot"))
    parts.append(element("text", f"{pairs:,}", x=_x(said), dx=9, y=_y(value), dy="-0.4em"))
    return joined(parts)


def _x(share: float) -> str:
    return f"{11 + 82 * share:.2f}%"


def _y(share: float) -> str:
    return f"{91 - 86 * share:.2f}%"


def _listed(points: Sequence[_Point], who: str) -> Markup:
    """The curve as a table, for whoever does not see it."""
    rows = (
        element(
            "tr",
            element("th", f"{100 * said:.0f} %", scope="row"),
            element("td", f"{pairs:,}", class_="num"),
            element("td", f"{100 * value:.2f}", class_="num"),
            element("td", plots.limits(interval, plots.SHARES), class_="num soft"),
        )
        for said, pairs, value, interval in points
    )
    names = (f"{who} that say true", "pairs", "true by people, %", "95 % interval")
    heads = (element("th", name, scope="col", class_="num" if place else None) for place, name in enumerate(names))
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    label = "The curve in numbers"
    return element(
        "details",
        element("summary", label),
        element("div", table, class_="wide", tabindex=0, role="group", aria_label=label),
    )
