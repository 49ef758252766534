"""A comparison of runs as lines of a table and notes, for a terminal, a notebook and a page alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.evals.tables import NONE, shown_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.evals.comparing import MetricComparison, RunsComparison
    from askance.statistics import Comparison

HEAD = ("figure", "runs", "first", "second", "difference", "95 % interval", "p", "verdict", "better", "worse", "tied")
"""Of the lines; the last three count samples."""

_TESTS: Mapping[str, str] = {
    "mcnemar exact": "Exact McNemar test",
    "sign flip": "Sign-flip test, whole clusters",
    "swap": "Swap test, whole clusters",
}


def letter(place: int) -> str:
    """What a run is called for short: A, B, and after Z AA, AB."""
    before, last = divmod(place, 26)
    return (letter(before - 1) if before else "") + chr(ord("A") + last)


def pair_of(a: int, b: int) -> str:
    """Two runs for short, in one piece."""
    return f"{letter(a)}\u00a0–\u00a0{letter(b)}"


def line_of(each: MetricComparison) -> tuple[str, ...]:
    """One comparison, as `HEAD` names its cells."""
    found = each.comparison
    return (
        each.metric,
        pair_of(each.a, each.b),
        shown_value(found.figure_a, percent=each.percent),
        shown_value(found.figure_b, percent=each.percent),
        _change(found.difference, percent=each.percent),
        _interval(found, percent=each.percent),
        shown_p(found.p),
        verdict_of(each),
        *((NONE,) * 3 if each.by_sample is None else (f"{count:,}" for count in each.by_sample)),
    )


def verdict_of(each: MetricComparison) -> str:
    """Which of the two is better."""
    verdict, exploring = each.comparison.verdict, " (exploratory)" if each.exploratory else ""
    if verdict == "tied":
        return f"tied{exploring}"
    return f"{letter(each.a if verdict == 'better' else each.b)} is better{exploring}"


def shown_p(value: float | None) -> str:
    """A p-value, as exactly as anybody needs it."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def counts_of(comparison: RunsComparison) -> Iterator[str]:
    """Which samples the comparison is of, a sentence a line."""
    matching, last = comparison.matching, len(comparison.runs)
    every = "both" if last == 2 else f"all {last}"
    alone = ", ".join(f"{count:,} more in {letter(place)}" for place, count in enumerate(matching.alone))
    yield f"{many(len(matching.rows), 'sample')} in {every}, {alone}"
    answered = ", ".join(f"{count:,} by {letter(place)}" for place, count in enumerate(matching.answered))
    yield f"{matching.by_all:,} of them answered by {every}, {answered}"
    if matching.unlike:
        yield f"{matching.unlike:,} of them were not asked the same: another image, other options, another target"


def notes_of_tests(comparison: RunsComparison) -> Iterator[str]:
    """What a reader has to know of the tests, a sentence a line."""
    if len(comparison.runs) > 2:
        pairs = "every two of the runs" if comparison.pairs == "all" else "A against each of the others"
        yield f"Compared: {pairs}, on the samples that all have"
    by_test: dict[str, list[str]] = {}
    for each in comparison.metrics:
        if each.comparison.test != "none" and each.metric not in by_test.setdefault(each.comparison.test, []):
            by_test[each.comparison.test].append(each.metric)
    yield from (f"{_TESTS[test]}: {', '.join(names)}" for test, names in by_test.items())
    yield from notes_of_p(comparison.metrics)
    yield from _reach(comparison)


def notes_of_p(metrics: Sequence[MetricComparison]) -> Iterator[str]:
    """For which comparisons p is adjusted, and for which it is not, a sentence a line."""
    family = max((each.comparison.family for each in metrics), default=1)
    if family > 1:
        yield f"p adjusted for {family} comparisons by Holm's method; intervals each for itself"
    exploratory = dict.fromkeys(each.metric for each in metrics if each.exploratory)
    if exploratory:
        yield f"Exploratory, p not adjusted: {', '.join(exploratory)}"


def _reach(comparison: RunsComparison) -> Iterator[str]:
    """The smallest differences that ties leave open, of all pairs that a figure is tied on."""
    tied = [each for each in comparison.metrics if each.comparison.verdict == "tied"]
    by_reach: dict[str, list[str]] = {}
    for metric in dict.fromkeys(each.metric for each in tied):
        several = [each for each in tied if each.metric == metric]
        by_reach.setdefault(_least(several), []).append(metric)
    for least, metrics in by_reach.items():
        words = f"so many samples show true differences of {least} or more in about 80 % of cases"
        none = "so few samples, or such, show no difference at all"
        yield f"Tied on {', '.join(metrics)}: {words if least else none}"


def _least(tied: Sequence[MetricComparison]) -> str:
    """What every one of the pairs would show; empty where one could show nothing."""
    found = [each.comparison.detectable for each in tied]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return ""
    percent = tied[0].percent
    return f"{_change(max(known), percent=percent).removeprefix('+')}{' points' if percent else ''}"


def _change(value: float | None, *, percent: bool) -> str:
    if value is None:
        return NONE
    return f"{100 * value:+.2f}" if percent else f"{value:+.3f}"


def _interval(found: Comparison, *, percent: bool) -> str:
    if found.interval is None:
        return NONE
    low, high = (_change(end, percent=percent) for end in (found.interval.low, found.interval.high))
    return f"{low} – {high}"
