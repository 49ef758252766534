"""The card of a judge as one HTML file, with the look of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.evals.report import calibration, sections, tabled
from askance.evals.report.markup import Markup, data_block, element, joined
from askance.evals.report.shell import document
from askance.evals.tables import NONE, shown_value

if TYPE_CHECKING:
    from askance.evals.judging import CorrectedRate, JudgeCard
    from askance.statistics import Interval


def card_page(card: JudgeCard, *, rate: CorrectedRate | None = None) -> str:
    """The page of a card; equal cards give equal pages.

    Args:
        card: of the judge.
        rate: of a run that it has scored, corrected; None is without one.
    """
    return document(
        title=card.judge,
        what="judge",
        count=None,
        content=joined(_content(card, rate)),
        data=data_block("index", {"runs": [], "kind": "card", "words": {}, "sorts": []}),
    )


def _content(card: JudgeCard, rate: CorrectedRate | None) -> Iterator[Markup | None]:
    true, groups = sum(bool(case.truth) for case in card.labelled), len({case.group for case in card.labelled})
    counts = f"{many(len(card.labelled), 'labelled pair')} in {many(groups, 'group')}, {true:,} of them true"
    yield element("p", f"Held against what people say in {card.labels['name']}: {counts}.")
    yield tabled.listed((*card.notes, *(() if rate is None else rate.notes)))
    yield sections.section(
        "judges", "Beside people", element("div", *calibration.drawn(card.summary()), class_="plots")
    )
    yield sections.section("figures", "Figures", _figures(card))
    if rate is not None:
        yield sections.section("rate", "A run that it scored", _rates(rate))


def _figures(card: JudgeCard) -> Markup:
    rows = [
        [
            each.name,
            (each.value, shown_value(each.value, percent=each.share)),
            (None if each.interval is None else each.interval.low, _between(each.interval, share=each.share)),
            (each.pairs, f"{each.pairs:,}"),
        ]
        for each in card.figures
    ]
    return tabled.sortable(("figure", "value", "95 % interval", "pairs"), rows, caption="All figures; shares in %")


def _rates(rate: CorrectedRate) -> Markup:
    ways = {
        "as judged": rate.measured,
        "corrected by Rogan and Gladen": rate.rogan_gladen,
        f"prediction-powered, {rate.labelled:,} labelled": rate.powered,
    }
    rows = [
        [
            name,
            (each.value, shown_value(each.value, percent=True)),
            (None if each.interval is None else each.interval.low, _between(each.interval, share=True)),
            (each.n, f"{each.n:,}"),
        ]
        for name, each in ways.items()
    ]
    return tabled.sortable(("rate", "%", "95 % interval", "answers"), rows, caption="The rate of the run, corrected")


def _between(interval: Interval | None, *, share: bool) -> str:
    if interval is None:
        return NONE
    return " – ".join(shown_value(end, percent=share) for end in (interval.low, interval.high))
