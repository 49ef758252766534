"""Two runs side by side as one HTML file, with the look of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askance.evals.report import plots, sections, tabled
from askance.evals.report.comparison import CHANGES, ChangeRow, Difference, snippet
from askance.evals.report.details import Texts, calls_of, detail_of
from askance.evals.report.embedding import BLOCK, WITHOUT, Room, Shown, texts_block
from askance.evals.report.markup import Markup, data_block, element, joined
from askance.evals.report.pictures import Pictures
from askance.evals.report.shell import document
from askance.evals.reports import notes_of
from askance.evals.tables import NONE

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.comparing import MetricComparison
    from askance.statistics import Verdict

_VERDICTS: Mapping[Verdict, str] = {"better": "A is better", "worse": "B is better", "tied": "Tied"}
_LONGEST = 400
"""Characters of a value in the table of what differs."""


def difference_page(
    difference: Difference, *, pictures: Pictures | None = None, files: Sequence[str] | None = None
) -> str:
    """The page of two runs; equal runs give equal pages.

    Args:
        difference: what the two say of each other.
        pictures: thumbnails; None is none.
        files: addresses of the thumbnails where they lie beside the page, in their order.
    """
    shown = Shown(pictures=pictures or Pictures(), files=files)
    texts, room = Texts((difference.a, difference.b)), Room()
    details = list(_details(difference, texts, room))
    index = {**_index(difference, shown), **({"without": WITHOUT} if room.refused else {})}
    data = joined((data_block("index", index), texts_block(texts), *details, *shown.blocks()))
    return document(
        title=f"{difference.names[0]} against {difference.names[1]}",
        what="comparison",
        count=len(difference.rows),
        content=joined(_content(difference, (*shown.pictures.notes, *room.notes))),
        data=data,
        beside=files is not None,
    )


def _index(difference: Difference, shown: Shown) -> JsonObject:
    share = difference.a.share and difference.b.share
    rows = [_row(row, shown, share=share) for row in difference.rows]
    return {
        "kind": "pair",
        "names": list(difference.names),
        "runs": [{"name": " · ".join(difference.names), "share": share, "rows": rows}],
        "block": BLOCK,
        "words": dict(CHANGES),
        "sorts": ["order", "worst", "best"],
        **shown.settings(),
    }


def _row(row: ChangeRow, shown: Shown, *, share: bool) -> JsonObject:
    worths = [row.a.worth, row.b.worth]
    figures = " → ".join(_worth(worth, share=share) for worth in worths)
    outcomes = row.a.outcome if row.a.outcome == row.b.outcome else f"{row.a.outcome} → {row.b.outcome}"
    return {
        "id": row.a.id,
        "epoch": row.a.epoch,
        "outcome": outcomes,
        "result": row.change,
        "worth": (worths[0] or 0.0) - (worths[1] or 0.0),
        "figures": figures if worths[0] != worths[1] else "",
        "said": snippet(row),
        "kinds": list(dict.fromkeys((*row.a.kinds, *row.b.kinds))),
        "marks": list(row.a.marks),
        "unlike": row.unlike,
        "picture": shown.numbers.get(row.a.picture or ""),
    }


def _worth(worth: float | None, *, share: bool) -> str:
    if worth is None:
        return NONE
    return f"{100 * worth:.1f}" if share else f"{worth:.3f}"


def _details(difference: Difference, texts: Texts, room: Room) -> Iterator[Markup]:
    for start in range(0, len(difference.pairs), BLOCK):
        details: list[JsonObject] = []
        calls: dict[str, Any] = {}
        for pair in difference.pairs[start : start + BLOCK]:
            details.append({"a": detail_of(pair[0]), "b": detail_of(pair[1])})
            for part, answer in zip((difference.a, difference.b), pair, strict=True):
                new = {key: form for key, form in calls_of(part, answer, texts).items() if key not in calls}
                if room.takes(new):
                    calls.update(new)
        yield data_block(f"d-0-{start // BLOCK}", {"details": details, "calls": calls})


def _content(difference: Difference, notes: Sequence[str]) -> Iterator[Markup | None]:
    yield _lead(difference)
    yield sections.section("verdicts", "What the pairs say", *_verdicts(difference), *_forest(difference.metrics))
    differing = difference.configuration
    content = _configuration(differing) if differing else element("p", "The two are of one configuration.")
    yield sections.section("configuration", "What differs in the configuration", content)
    parts = (difference.a, difference.b)
    notes_of_runs = notes_of([part.run for part in parts])
    yield sections.section("figures", "Figures", tabled.side_by_side(parts), tabled.listed(notes_of_runs))
    articles = (sections.summary(part, alone=False) for part in parts)
    yield sections.section("runs", "The two runs", *articles)
    if notes:
        yield tabled.listed(notes)


def _lead(difference: Difference) -> Markup:
    """The first figure and its verdict, and how many samples changed."""
    name_a, name_b = difference.names
    first = next(iter(difference.metrics), None)
    big = None if first is None else _VERDICTS[first.comparison.verdict]
    sentence = "No figure of the task is better at one end." if first is None else first.sentence(name_a, name_b)
    changed = element("div", *_pairs(difference), class_="outcomes")
    headline = element(
        "div",
        element("p", big, class_="big") if big else None,
        element("p", sentence),
        element("p", f"A is {name_a}, B is {name_b}.", class_="soft"),
        class_="headline",
    )
    return element("div", headline, changed, class_="lead even")


def _verdicts(difference: Difference) -> Iterator[Markup]:
    """The other figures: those that tell the two apart, and folded the ones that do not."""
    others = difference.metrics[1:]
    told = [each for each in others if each.comparison.verdict != "tied"]
    tied = [each for each in others if each.comparison.verdict == "tied"]
    if told:
        yield element("ul", *(_verdict(each, difference.names) for each in told), class_="verdicts")
    if tied:
        items = (_verdict(each, difference.names) for each in tied)
        heading = element(
            "summary", f"{len(tied):,} {'more figures' if told else 'other figures'} on which they are tied"
        )
        yield element("details", heading, element("ul", *items, class_="verdicts"))


def _verdict(each: MetricComparison, names: tuple[str, str]) -> Markup:
    verdict = each.comparison.verdict
    mark = element("span", verdict.capitalize(), class_="verdict")
    return element("li", mark, " · ", each.sentence(*names))


def _forest(metrics: Sequence[MetricComparison]) -> Iterator[Markup]:
    """Differences with their intervals, shares and other figures apart."""
    for percent in (True, False):
        some = [each for each in metrics if each.percent == percent and each.comparison.difference is not None]
        dots = [
            plots.Dot(
                name=each.metric,
                value=each.comparison.difference,
                interval=each.comparison.interval,
                count=_p(each.comparison.p),
            )
            for each in some
        ]
        if dots:
            scale = plots.scale_of(dots, percent=percent, around_zero=True)
            heads = ("figure", "points" if percent else "A − B", "p")
            yield plots.intervals("Difference, A − B", dots, scale, heads=heads, note=_family(some))


def _p(value: float | None) -> str:
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _family(metrics: Sequence[MetricComparison]) -> str:
    family = max(each.comparison.family for each in metrics)
    return f"p adjusted for {family} comparisons by Holm's method; intervals each for itself." if family > 1 else ""


def _pairs(difference: Difference) -> Iterator[Markup | None]:
    pairing = difference.pairing
    both, alone_a, alone_b = pairing.answered
    yield plots.bars(
        "Samples by change",
        [(word, sum(row.change == change for row in difference.rows)) for change, word in CHANGES.items()],
        heads=("change", "samples"),
    )
    lines = [
        f"{len(pairing.pairs):,} samples in both, {pairing.only_a:,} in A alone, {pairing.only_b:,} in B alone",
        f"{both:,} answered by both, {alone_a:,} by A alone, {alone_b:,} by B alone",
    ]
    if pairing.unlike:
        lines.append(f"{pairing.unlike:,} were not asked the same: another image, other options, another target")
    yield tabled.listed(lines)


def _configuration(differing: Sequence[tuple[str, Any, Any]]) -> Markup:
    rows = (
        element("tr", element("th", place, scope="row"), *(element("td", _value(value)) for value in (one, other)))
        for place, one, other in differing
    )
    head = element("tr", *(element("th", name, scope="col") for name in ("place", "A", "B")))
    table = element("table", element("thead", head), element("tbody", *rows), class_="differences")
    return element("div", table, class_="wide", tabindex=0, role="region", aria_label="What differs")


def _value(value: Any) -> str:
    from json import dumps

    if value is None:
        return NONE
    text = value if isinstance(value, str) else dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
