"""Abstention and looking on pages: risk by coverage, calibration, gain and harm, quality against dollars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from askance.amounts import money
from askance.evals.abstention import Ranked, losses_and_ranks
from askance.evals.analysis.compare import letter
from askance.evals.analysis.risk import HEAD, NOTES, compare_risks, line_of_risk, says_how_sure
from askance.evals.report.elements import (
    Curve,
    Curves,
    Dot,
    Field,
    Plot,
    ReliabilityPlot,
    ReliabilityPoint,
    Sortable,
    drawn_across,
    drawn_upward,
    estimate_fields,
    sortable_rows,
)
from askance.evals.tables import NONE
from askance.statistics import calibration_bins, risk_coverage_curve, wilson

if TYPE_CHECKING:
    from askance.evals.analysis.compare import RunsComparison
    from askance.evals.analysis.equal_cost import CostCurve
    from askance.evals.analysis.gain import Change, LookingGain
    from askance.evals.analysis.risk import RiskComparison, RunRisk
    from askance.evals.report.run_part import RunPart
    from askance.statistics import RiskPoint

MOST_POINTS = 200
"""Most points of a curve that are drawn."""
_COVERAGE, _RISK = (
    "coverage: share of the samples that are answered, in %",
    "risk: share of their answers that is wrong",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotsWithTables:
    """A section of a page: sentences, plots, tables, notes."""

    sentences: Sequence[str] = ()
    plots: Sequence[Plot] = ()
    tables: Sequence[Sortable] = ()
    notes: Sequence[str] = ()


# --- risk by coverage ---


def risk_section(comparison: RunsComparison) -> PlotsWithTables | None:
    """Risk by coverage of the runs that say how sure they are; None where no solver says it."""
    sure = any(answer.prediction.confidence is not None for row in comparison.common.rows for answer in row)
    places = [place for place, run in enumerate(comparison.runs) if sure and says_how_sure(run)]
    if not places or comparison.values is None or comparison.metrics[0].metric != comparison.values.metric:
        return None
    first, *others = (comparison.runs[place] for place in places)
    names = [f"{letter(place)} {comparison.names[place]}" for place in places]
    return _risk_view(compare_risks(first, *others, names=names, task=comparison.task, seed=comparison.seed))


def _risk_view(risks: RiskComparison) -> PlotsWithTables:
    return PlotsWithTables(
        sentences=risks.sentences,
        plots=[risk_plot(risks.runs)],
        tables=[Sortable(heads=HEAD, rows=sortable_rows(map(line_of_risk, risks.runs)))],
        notes=NOTES,
    )


def risk_plot(runs: Sequence[RunRisk]) -> Curves:
    """Risk by coverage of one or several runs."""
    return _risk_plot([_risk_curve(each.name, each.by, each.samples) for each in runs])


def reliability_plots(runs: Sequence[RunRisk]) -> Iterator[Plot]:
    """Of each run whose answers are right or wrong, how far its confidences can be trusted."""
    for each in runs:
        prefix = f"{each.name}: " if len(runs) > 1 else ""
        yield from _reliabilities(each.samples, prefix)


def _risk_curve(name: str, by: str, samples: Sequence[Ranked]) -> Curve:
    """The curve of a run; where it abstains, a point is where it does."""
    given = [each.worth for each in samples if each.given]
    dot = Dot(name=name, value=1 - fsum(given) / max(len(given), 1), interval=None)
    return Curve(
        name=f"{name}, by {by}",
        line=_thinned(risk_coverage_curve(*losses_and_ranks(samples))),
        points=[(len(given) / len(samples), dot)] if 0 < len(given) < len(samples) else [],
    )


def _thinned(curve: Sequence[RiskPoint]) -> list[tuple[float, float]]:
    step = max(1, -(-len(curve) // MOST_POINTS))
    return [(each.coverage, each.risk) for each in (*curve[:-1:step], *curve[-1:])]


def _risk_plot(curves: Sequence[Curve], title: str = "Risk by coverage") -> Curves:
    return Curves(
        title=title,
        curves=curves,
        across=_COVERAGE,
        upward=f"{_RISK}, in %",
        over=drawn_across(1.0),
        up=drawn_upward(risk for curve in curves for _, risk in curve.line),
        note="Lower is better. A point is where the run itself withholds its answers.",
    )


def plots_of_confidence(part: RunPart, prefix: str) -> Iterator[Plot]:
    """Of a run that says how sure it is, its risk by coverage and whether its confidences can be trusted."""
    ranked = _ranked_by_column(part)
    sure = [each for each in ranked if each.confidence is not None]
    if not sure:
        return
    yield _risk_plot([_risk_curve(part.name, "confidence", ranked)], f"{prefix}Risk by coverage")
    yield from _reliabilities(ranked, prefix)


def _reliabilities(ranked: Sequence[Ranked], prefix: str) -> Iterator[Plot]:
    """The reliability of answers with a confidence; none where there are none, or where they may be partly right."""
    sure = [each for each in ranked if each.confidence is not None]
    if sure and all(each.worth in {0.0, 1.0} for each in sure):
        yield _reliability(sure, f"{prefix}Reliability of confidences")


def _ranked_by_column(part: RunPart) -> list[Ranked]:
    """The samples by the value of scores that stands for them; none where that is no share."""
    if not part.share or part.column is None:
        return []
    ranked: list[Ranked] = []
    for answer in part.answers:
        score = answer.score
        values: Mapping[str, float] = {} if score is None else score.withheld or score.values
        ranked.append(Ranked.of(answer, min(max(values.get(part.column, 0.0), 0.0), 1.0)))
    return ranked


def _reliability(sure: Sequence[Ranked], title: str) -> ReliabilityPlot:
    bins = calibration_bins([each.worth for each in sure], [each.confidence or 0.0 for each in sure])
    joined = Counter[tuple[float, float]]()  # bins of one confidence share its samples
    for each in bins:
        joined[each.confidence, each.value] += each.samples
    points = [
        ReliabilityPoint(said=said, count=count, value=value, interval=wilson(round(value * count), count))
        for (said, value), count in joined.items()
    ]
    return ReliabilityPlot(
        title=title,
        points=points,
        heads=("confidence", "samples", "right, %"),
        note="→ confidence, in %; ↑ share of these answers that is right, in %. Numbers are counts of samples, in bins "
        "of equally many. On the dashed line answers are right as often as is said.",
    )


# --- gain and harm of looking ---


def gain_section(gains: Sequence[LookingGain]) -> PlotsWithTables | None:
    """What looking with tools changes; None where no run looks."""
    if not gains:
        return None
    return PlotsWithTables(
        sentences=[sentence for each in gains for sentence in each.sentences()],
        tables=[
            Sortable(
                heads=("", "without tools", "with tools", "samples", "%", "95 % interval", "a dollar", "95 % interval"),
                rows=[row for each in gains for row in _gain_rows(each)],
            )
        ],
        notes=("gain: better with tools; harm: worse with tools; net: gain less harm, of the means over samples",),
    )


def _gain_rows(gain: LookingGain) -> Iterator[list[Field]]:
    counts = (("gain", gain.gain, gain.gained), ("harm", gain.harm, gain.harmed))
    for name, change, count in (*counts, ("net", gain.net, gain.gained - gain.harmed)):
        yield [name, gain.without, gain.looking, (count, f"{count:,}"), *_change_cells(change)]


def _change_cells(change: Change) -> Iterator[Field]:
    yield from estimate_fields(change.value, change.interval, percent=True)
    yield change.per_dollar, NONE if change.per_dollar is None else f"{change.per_dollar:.3g}"
    yield estimate_fields(change.per_dollar, change.per_dollar_interval, percent=False)[1]


# --- quality against dollars ---


def cost_section(comparison: RunsComparison) -> PlotsWithTables | None:
    """Quality of the runs against what a sample costs; None where fewer than two have a cost above zero."""
    curve = None if comparison.of_pictures else comparison.cost_curve
    paid = [] if curve is None else [point for point in curve.points if point.run.dollars]
    if curve is None or len(paid) < 2:
        return None
    notes = ["Dollars are the mean of a sample at list price as asked: calls that were on record are counted, too"]
    if any(point.run.dollars != point.run.uncached for point in curve.points):
        notes.append(
            "Input that a provider read from its cache has the price of such input; without: as if it had none"
        )
    if curve.unpriced:
        notes.append(f"What is not known: the cost of {', '.join(curve.unpriced)}")
    if curve.verdicts:
        notes.append(
            "Between two runs of the fixed chain the line is the weighted mean of both, sample by sample; mean costs "
            "are taken as known"
        )
    return PlotsWithTables(
        sentences=[each.sentence(curve.metric) for each in curve.verdicts],
        plots=[_cost_plot(curve, comparison.names)],
        tables=[_cost_table(curve, comparison.names)],
        notes=notes,
    )


def _cost_plot(curve: CostCurve, names: Sequence[str]) -> Curves:
    curves: list[Curve] = []
    for family, line in curve.families():
        dots = [
            (
                point.run.dollars or 0.0,
                Dot(
                    name=point.run.name,
                    value=point.quality.value,
                    interval=point.quality.interval,
                    count=letter(names.index(point.run.name)),
                ),
            )
            for point in line
        ]
        places = [(dollars, dot.value) for dollars, dot in dots if dot.value is not None]
        curves.append(Curve(name=family, line=places, points=dots))
    dearest = max(point.run.dollars or 0.0 for point in curve.points)
    ends = [point.quality.interval.high for point in curve.points if point.quality.interval is not None]
    return Curves(
        title=f"{curve.metric} against dollars",
        curves=curves,
        across="US dollars a sample",
        upward=f"{curve.metric}, in %",
        over=drawn_across(dearest, percent=False),
        up=drawn_upward(ends),
    )


def _cost_table(curve: CostCurve, names: Sequence[str]) -> Sortable:
    rows: list[list[Field]] = [
        [
            f"{letter(names.index(point.run.name))} {point.run.name}",
            point.run.family,
            (point.run.dollars, money(point.run.dollars or 0.0)),
            (point.run.uncached, NONE if point.run.uncached is None else money(point.run.uncached)),
            *estimate_fields(point.quality.value, point.quality.interval, percent=True),
        ]
        for point in curve.points
    ]
    heads = ("run", "line", "a sample", "without cache", curve.metric, "95 % interval")
    return Sortable(heads=heads, rows=rows)
