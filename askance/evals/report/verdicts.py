"""What tests say of runs that were compared, as parts of their page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.evals import verdicts
from askance.evals.report import plots, tabled
from askance.evals.report.markup import Markup, element

if TYPE_CHECKING:
    from askance.evals.comparing import MetricComparison, RunsComparison


def headline(comparison: RunsComparison) -> Markup:
    """The verdicts by the first figure, and which run is which."""
    first = _by_first(comparison)
    if not first:
        said = [element("p", "No figure of the task is better at one end.")]
    elif len(first) == 1:
        said = [element("p", _capital(first[0]), class_="big"), element("p", first[0].sentence)]
    else:
        said = [element("ul", *map(_short, first), class_="verdicts")]
    return element("div", *said, class_="headline")


def legend(comparison: RunsComparison) -> Markup:
    """Which run is which letter."""
    items = (
        element("li", element("span", verdicts.letter(place), class_="letter"), " ", element("bdi", name))
        for place, name in enumerate(comparison.names)
    )
    return element("ul", *items, class_="in-all", aria_label="Runs")


def _by_first(comparison: RunsComparison) -> list[MetricComparison]:
    """By the figure that stands for the task, every pair of runs that is compared."""
    return [each for each in comparison if each.metric == comparison.metrics[0].metric]


def content(comparison: RunsComparison) -> Iterator[Markup | None]:
    """The other figures, all differences with their intervals, and what was tested how."""
    if len(comparison.runs) == 2:
        yield from _others(comparison.metrics[1:])
        yield from _forest(comparison.metrics, two=True)
        return
    yield from _forest(_by_first(comparison), two=False)
    metrics = _ordered(comparison.metrics)
    if metrics:
        table = tabled.sortable(verdicts.HEAD, [_cells(each) for each in metrics])
        figures = len({each.metric for each in metrics})
        words = (
            f"All {many(len(metrics), 'comparison')}"
            if figures == 1
            else f"All {many(len(metrics), 'comparison')}, by {figures} figures"
        )
        yield element("details", element("summary", words), table, open_=figures == 1)
        yield tabled.listed([*verdicts.notes_of_tests(comparison)])


def _ordered(metrics: Sequence[MetricComparison]) -> list[MetricComparison]:
    """Figure by figure, where the comparison has them pair by pair."""
    names = list(dict.fromkeys(each.metric for each in metrics))
    return sorted(metrics, key=lambda each: names.index(each.metric))


def _capital(each: MetricComparison) -> str:
    verdict = verdicts.verdict_of(each)
    return verdict[0].upper() + verdict[1:]


def _short(each: MetricComparison) -> Markup:
    mark = element("span", f"{verdicts.pair_of(each.a, each.b)}: {verdicts.verdict_of(each)}", class_="verdict")
    return element("li", mark, " · ", each.sentence)


def _cells(each: MetricComparison) -> list[str | tuple[float | None, str]]:
    """The line of one comparison; numbers sort by what they are."""
    found = each.comparison
    low = None if found.interval is None else found.interval.low
    counts = each.by_sample or (None, None, None)
    figure, runs, first, second, difference, interval, p, verdict, *shown = verdicts.line_of(each)
    return [
        figure,
        runs,
        (found.figure_a, first),
        (found.figure_b, second),
        (found.difference, difference),
        (low, interval),
        (found.p, p),
        verdict,
        *zip(counts, shown, strict=True),
    ]


def _others(others: Sequence[MetricComparison]) -> Iterator[Markup]:
    """The other figures of two runs: those that tell the two apart, and folded the ones that do not."""
    told = [each for each in others if each.comparison.verdict != "tied"]
    tied = [each for each in others if each.comparison.verdict == "tied"]
    if told:
        yield element("ul", *map(_verdict, told), class_="verdicts")
    if tied:
        heading = f"{len(tied):,} {'more figures' if told else 'other figures'} on which they are tied"
        yield element("details", element("summary", heading), element("ul", *map(_verdict, tied), class_="verdicts"))


def _verdict(each: MetricComparison) -> Markup:
    mark = element("span", each.comparison.verdict.capitalize(), class_="verdict")
    return element("li", mark, " · ", each.sentence)


def _forest(metrics: Sequence[MetricComparison], *, two: bool) -> Iterator[Markup]:
    """Differences with their intervals, shares and other figures apart."""
    for percent in (True, False):
        dots = [
            plots.Dot(
                name=each.metric if two else f"{each.metric}, {verdicts.pair_of(each.a, each.b)}",
                value=each.comparison.difference,
                interval=each.comparison.interval,
                count=verdicts.shown_p(each.comparison.p),
            )
            for each in metrics
            if each.percent == percent and each.comparison.difference is not None
        ]
        if dots:
            scale = plots.scale_of(dots, percent=percent, around_zero=True)
            heads = ("figure", "points" if percent else "difference", "p")
            title = "Difference, A − B" if two else "Difference, first − second"
            yield plots.intervals(title, dots, scale, heads=heads, note=_family(metrics) if two else "")


def _family(metrics: Sequence[MetricComparison]) -> str:
    return " ".join(f"{note}." for note in verdicts.notes_of_p(metrics))
