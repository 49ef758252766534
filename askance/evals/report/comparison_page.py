"""The comparison of runs side by side: which samples differ between them, and the page that shows it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance.amounts import many
from askance.chains.link import link_named
from askance.evals.analysis.compare import (
    HEAD,
    VERDICT_WORDS,
    counts_of,
    letter,
    line_of,
    link_head,
    link_line,
    notes_of_p,
    notes_of_tests,
    pair_of,
    shown_p,
    verdict_of,
)
from askance.evals.ranking import texts_of_hits
from askance.evals.report.elements import Bars, Dot, Field, Intervals, PageLink, Plot, Sortable, scale_of, sortable_rows
from askance.evals.report.html import document
from askance.evals.report.looking_part import cost_section, gain_section, risk_section
from askance.evals.report.run_part import part_of
from askance.evals.report.samples import SampleBrowser
from askance.evals.report.summary import summary_of, tables_of_runs
from askance.evals.report.thumbnails import Thumbnails
from askance.evals.tables import shown_value

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.analysis.compare import MetricComparison, RunsComparison
    from askance.evals.analysis.links import SaidByLink
    from askance.evals.report.looking_part import PlotsWithTables
    from askance.evals.report.run_part import RunPart, SampleRow
    from askance.evals.sample import SampleResult

MOST_PICTURES = 1000
"""Most pictures that are listed; the browser of samples has the others."""
UNFOLDED = 20
"""Longest list of pictures that is open; a longer one has to be unfolded."""

SampleChange: TypeAlias = Literal["better", "worse", "other", "same"]
"""How one run differs from another on a sample; `other` is another answer with the same score."""

CHANGES: tuple[SampleChange, ...] = ("better", "worse", "other", "same")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One sample in every run."""

    rows: tuple[SampleRow, ...]
    worths: tuple[float | None, ...]
    """What the sample is worth in each run, by the metric that the runs are compared by."""
    higher: bool
    """Whether more is better."""
    answers: tuple[int, ...]
    """A number for each run; runs with the same answer have the same one."""
    asked: tuple[int, ...]
    """A number for each run; runs with the same inputs, options and target have the same one."""

    def change(self, a: int, b: int) -> SampleChange:
        """How run `a` differs from run `b` on the sample; `better` means that `a` is better."""
        one, other = (self.worths[place] or 0.0 for place in (a, b))
        if one != other:
            return "better" if (one > other) == self.higher else "worse"
        return "same" if self.answers[a] == self.answers[b] else "other"

    @property
    def changed(self) -> bool:
        """Whether not all answers are the same."""
        return len({*self.answers}) > 1

    def form(self) -> JsonObject:
        """The sample as JSON."""
        first = self.rows[0]
        return {"id": first.id, "epoch": first.epoch, "runs": [row.form() for row in self.rows]}


@dataclass(frozen=True, kw_only=True)
class ComparisonReport:
    """Runs on the same samples, side by side."""

    comparison: RunsComparison
    parts: tuple[RunPart, ...]
    rows: tuple[ChangeRow, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What the runs are called."""
        return self.comparison.names

    @property
    def share(self) -> bool:
        """Whether what a sample is worth is a share, shown in percent."""
        values = self.comparison.values
        return all(part.share for part in self.parts) if values is None else values.percent

    def changes(self) -> Mapping[tuple[int, int], Mapping[SampleChange, int]]:
        """By pair of runs, how many samples changed in which way."""
        pairs = combinations(range(len(self.parts)), 2)
        counts = {pair: Counter(row.change(*pair) for row in self.rows) for pair in pairs}
        return {pair: {change: by_change[change] for change in CHANGES} for pair, by_change in counts.items()}


def build_comparison(comparison: RunsComparison) -> ComparisonReport:
    """Compares runs of one task, sample by sample.

    Args:
        comparison: what `askance.evals.compare` found.

    Raises:
        UsageError: a folder has lines that cannot be read.
    """
    parts = tuple(part_of(run, name=name) for run, name in zip(comparison.runs, comparison.names, strict=True))
    return ComparisonReport(comparison=comparison, parts=parts, rows=tuple(_rows(comparison, parts)))


def _rows(comparison: RunsComparison, parts: Sequence[RunPart]) -> Iterator[ChangeRow]:
    several = [{(row.id, row.epoch): row for row in part.rows} for part in parts]
    values = comparison.values
    for place, answers in enumerate(comparison.common.rows):
        key = (answers[0].sample.id, answers[0].epoch)
        rows = tuple(each[key] for each in several)
        yield ChangeRow(
            rows=rows,
            worths=tuple(row.worth for row in rows) if values is None else values.values[place],
            higher=values is None or values.higher,
            answers=_numbered(map(_comparable, answers)),
            asked=_numbered(answer.sample.question() for answer in answers),
        )


def _comparable(answer: SampleResult) -> Any:
    """What an answer says, of hits their order: scores of two ways to search differ where the order does not."""
    hits = texts_of_hits(answer.prediction.value)
    return [answer.prediction.outcome, answer.prediction.value if hits is None else [*hits]]


def _numbered(values: Iterator[Any]) -> tuple[int, ...]:
    """A number for each value, counted from 0; equal values have the same number."""
    numbers: dict[str, int] = {}
    return tuple(numbers.setdefault(json.dumps(value, sort_keys=True), len(numbers)) for value in values)


# --- the page ---


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """A verdict in a word, and the sentence for it."""

    word: str
    sentence: str


def comparison_page(
    report: ComparisonReport, *, pictures: Thumbnails | None = None, files: Sequence[str] | None = None
) -> str:
    """The page of runs that were compared; equal runs give equal pages.

    Args:
        report: of the runs.
        pictures: thumbnails; None is none.
        files: addresses of the thumbnails where they lie beside the page, in their order.
    """
    browser = SampleBrowser(pictures=pictures or Thumbnails(), files=files)
    browser.add(report.parts, report.comparison.common.rows)
    first, *others = report.names
    comparison = report.comparison
    headlines = _by_main_figure(comparison)
    two = len(report.parts) == 2
    return document(
        "comparison.html",
        title=f"{first} against {' and '.join(others)}",
        blocks=browser.blocks(_index(report, browser)),
        count=len(report.rows),
        beside=files is not None,
        runs=[(letter(place), name) for place, name in enumerate(report.names)],
        headlines=[_headline(each, alone=len(headlines) == 1) for each in headlines],
        changes=_bars(report) if two else None,
        changes_by_pair=_changes_by_pair(report),
        changes_title=changes_title(report),
        changed=sum(row.changed for row in report.rows),
        noun=comparison.runs[0].noun,
        links=_links(comparison) if comparison.of_pictures else None,
        differing=_differing(comparison) if comparison.of_pictures and comparison.differing else None,
        counts=[*counts_of(comparison), *_no_answers(comparison)],
        decided=[_verdict(each) for each in comparison.metrics[1:] if each.comparison.verdict != "tied"],
        tied=[_verdict(each) for each in comparison.metrics[1:] if each.comparison.verdict == "tied"],
        forest=[*_forest(comparison.metrics if two else headlines, two=two)],
        comparisons=_comparisons(comparison.metrics) if comparison.metrics else None,
        ways_out=[*comparison.ways_out],
        tests=[*notes_of_tests(comparison)],
        differences=comparison.difference_rows,
        looking=[*_looking(comparison)],
        figures=tables_of_runs(report.parts),
        summaries=[summary_of(part) for part in report.parts],
        notes=browser.notes,
    )


def _looking(comparison: RunsComparison) -> Iterator[tuple[str, str, PlotsWithTables]]:
    """The sections on looking and abstaining that the runs have: address, title, content."""
    sections = (
        ("looking", "Gain, harm and net of looking", gain_section(comparison.gains)),
        ("dollars", "Quality against dollars", cost_section(comparison)),
        ("risk", "Risk by coverage", risk_section(comparison)),
    )
    yield from ((name, title, content) for name, title, content in sections if content is not None)


def _index(report: ComparisonReport, browser: SampleBrowser) -> JsonObject:
    pictures = report.comparison.of_pictures
    rows = [_row_form(row, browser) for row in report.rows]
    for row, links in zip(rows, report.comparison.said, strict=True) if pictures else ():
        row["links"] = _link_numbers(links)
    return {
        "kind": "pair",
        "many": f"{report.comparison.runs[0].noun}s",
        "scored": not pictures,
        "names": list(report.names),
        "letters": [letter(place) for place in range(len(report.parts))],
        "share": report.share,
        "figures": [_figure_of(part, report.comparison) for part in report.parts],
        "lower": not all(row.higher for row in report.rows),
        "rows": rows,
        "runs": [],
        "words": {},
        "sorts": ["order"] if pictures else ["order", "worst", "best"],
    }


def _figure_of(part: RunPart, comparison: RunsComparison) -> str:
    """The figure of a run that samples are compared by."""
    values = comparison.values
    figure = next((each for each in part.run.figures if values is not None and each.metric == values.metric), None)
    return "" if figure is None else f"{figure.metric} {shown_value(figure.value, percent=figure.percent)}"


def _row_form(row: ChangeRow, browser: SampleBrowser) -> JsonObject:
    """What the script makes the rows of any two runs from."""
    first = row.rows[0]
    return {
        "id": first.id,
        **({"title": first.title} if first.title else {}),
        **({"about": first.about} if first.about else {}),
        "epoch": first.epoch,
        "outcomes": [each.outcome for each in row.rows],
        "worths": list(row.worths),
        "said": [each.said for each in row.rows],
        "answers": list(row.answers),
        "asked": list(row.asked),
        "kinds": [list(each.kinds) for each in row.rows],
        "marks": list(first.marks),
        "tools": [list(each.tools) for each in row.rows],
        "picture": browser.number(first.picture),
    }


def _link_numbers(links: SaidByLink) -> JsonObject:
    """By link, a number for each run; runs whose links say the same have the same one."""
    return {name: list(_numbered(iter(values))) for name, values in links.items()}


_CHANGE_WORDS: Mapping[SampleChange, tuple[str, str]] = {
    "better": ("A better", "first better"),
    "worse": ("B better", "second better"),
    "other": ("Other answer", "other answer"),
    "same": ("Same answer", "same answer"),
}
"""Of two runs, and of every pair of several."""


def _changes_shown(report: ComparisonReport) -> tuple[SampleChange, ...]:
    """The changes that there can be: where nothing is scored, no run is better."""
    return CHANGES[2:] if report.comparison.of_pictures else CHANGES


def _bars(report: ComparisonReport) -> Bars:
    """Of two runs, how many samples changed in which way."""
    counts = report.changes()[0, 1]
    bars = [(_CHANGE_WORDS[change][0], counts[change]) for change in _changes_shown(report)]
    return Bars(title=changes_title(report), counts=bars, heads=("change", f"{report.comparison.runs[0].noun}s"))


def changes_title(report: ComparisonReport) -> str:
    """What the counts of samples are by."""
    values = report.comparison.values
    if report.comparison.of_pictures:
        return "What is said in the end"
    return "Samples by change" if values is None else f"Samples by change of {values.metric}"


def _changes_by_pair(report: ComparisonReport) -> Sortable:
    shown = _changes_shown(report)
    rows: list[list[Field]] = [
        [pair_of(a, b), *((counts[change], f"{counts[change]:,}") for change in shown)]
        for (a, b), counts in report.changes().items()
    ]
    return Sortable(heads=("runs", *(_CHANGE_WORDS[change][1] for change in shown)), rows=rows)


def _no_answers(comparison: RunsComparison) -> Iterator[str]:
    """What samples without an answer count as among the changes."""
    common = comparison.common
    if not comparison.of_pictures and common.by_all < len(common.rows):
        yield "Samples without an answer count as wrong here"


def _links(comparison: RunsComparison) -> Sortable:
    """How often the links of two runs say the same of a picture, a row a link and a pair."""
    rows = sortable_rows(link_line(comparison, each) for each in comparison.links)
    return Sortable(heads=link_head(comparison), rows=rows)


def _differing(comparison: RunsComparison) -> Sortable:
    """The pictures of which not all runs say the same, each with the links that differ."""
    rows: list[list[Field]] = [
        [
            PageLink(text=row[0].sample.id, to={"sample": row[0].sample.id, "epoch": row[0].epoch}),
            ", ".join(link_named(name).heading for name in links),
        ]
        for row, links in comparison.differing[:MOST_PICTURES]
    ]
    count = len(comparison.differing)
    more = f"; the first {MOST_PICTURES:,} of them" if count > MOST_PICTURES else ""
    summary = f"The {many(count, 'picture')} of which not every link says the same{more}"
    return Sortable(heads=("picture", "links that differ"), rows=rows, summary=summary, open=count <= UNFOLDED)


# --- verdicts ---


def _by_main_figure(comparison: RunsComparison) -> list[MetricComparison]:
    """The comparisons by the task's main figure, one for each pair of runs."""
    return [each for each in comparison if each.metric == comparison.metrics[0].metric]


def _headline(each: MetricComparison, *, alone: bool) -> VerdictLine:
    verdict = verdict_of(each)
    word = f"{verdict[0].upper()}{verdict[1:]}" if alone else f"{pair_of(each.a, each.b)}: {verdict}"
    return VerdictLine(word=word, sentence=each.sentence)


def _verdict(each: MetricComparison) -> VerdictLine:
    return VerdictLine(word=VERDICT_WORDS.get(each.verdict, each.verdict).capitalize(), sentence=each.sentence)


def _comparisons(metrics: Sequence[MetricComparison]) -> Sortable:
    """All comparisons in lines, figure by figure, where there are several pairs."""
    names = list(dict.fromkeys(each.metric for each in metrics))
    ordered = sorted(metrics, key=lambda each: names.index(each.metric))
    figures = "" if len(names) == 1 else f", by {len(names)} figures"
    return Sortable(
        heads=HEAD,
        rows=sortable_rows(map(line_of, ordered)),
        summary=f"All {many(len(metrics), 'comparison')}{figures}",
        open=len(names) == 1,
    )


def _forest(metrics: Sequence[MetricComparison], *, two: bool) -> Iterator[Plot]:
    """Differences with their intervals, shares and other figures apart."""
    for percent in (True, False):
        dots = [
            Dot(
                name=each.metric if two else f"{each.metric}, {pair_of(each.a, each.b)}",
                value=each.comparison.difference,
                interval=each.comparison.interval,
                count=shown_p(each.comparison.p),
            )
            for each in metrics
            if each.percent == percent and each.comparison.difference is not None
        ]
        if dots:
            scale = scale_of(dots, percent=percent, around_zero=True)
            heads = ("figure", "points" if percent else "difference", "p")
            title = "Difference, A − B" if two else "Difference, first − second"
            note = _family(metrics) if two else ""
            yield Intervals(title=title, dots=dots, scale=scale, heads=heads, note=note)


def _family(metrics: Sequence[MetricComparison]) -> str:
    return " ".join(f"{note}." for note in notes_of_p(metrics))
