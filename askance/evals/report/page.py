"""The page of a report: one HTML file, which opens from a disk and asks nobody for anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.evals.report.blame import blame_tables, blame_views, filters_of
from askance.evals.report.document import block, document
from askance.evals.report.judges import judge_views, judges_table
from askance.evals.report.pictures import Thumbnails
from askance.evals.report.plots import MOST, SHARES, Bars, Dot, Intervals, Plot, Scatter, dot_of, scale_of, score_dots
from askance.evals.report.row import RESULTS
from askance.evals.report.samples import BLOCK, WITHOUT, CallRoom, Shown, sample_blocks
from askance.evals.report.summary import summary_of
from askance.evals.report.tables import FigureTables, Sortable, beside_table, tables_of_runs

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.figures import Figure
    from askance.evals.report.report import Beside, Breakdown, Report, RunPart

_SORTS: Mapping[str, str] = {"slow": "seconds", "cost": "cost", "tokens": "tokens", "tries": "again"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideView:
    """Our figures beside published ones."""

    table: Sortable
    title: str
    source: str


def report_page(report: Report, *, pictures: Thumbnails | None = None, files: Sequence[str] | None = None) -> str:
    """The page of a report; equal reports give equal pages.

    Args:
        report: of one or several runs.
        pictures: thumbnails; None is none.
        files: addresses of the thumbnails where they lie beside the page, in their order.
    """
    shown = Shown(pictures=pictures or Thumbnails(), files=files)
    room = CallRoom()
    details = [
        each
        for number, part in enumerate(report.runs)
        for each in sample_blocks(number, [part], [(answer,) for answer in part.answers], room=room)
    ]
    index = {**index_of(report.runs, shown), "kind": "report", **({"without": WITHOUT} if room.refused else {})}
    judges = [note for part in report.runs for note in part.judges]
    return document(
        "report.html",
        title=report.title,
        blocks=[block("index", index), *details, *shown.blocks()],
        count=sum(len(part.rows) for part in report.runs),
        beside=files is not None,
        summaries=[summary_of(part) for part in report.runs],
        notes=(*shown.pictures.notes, *room.notes),
        tasks=[*_figures(report)],
        published=[*_published(report)],
        plots=[*_plots(report)],
        blames=blame_views(report.runs),
        blame_tables=[*blame_tables(report.runs)],
        judges=judge_views(judges),
        judges_table=judges_table(judges),
    )


def index_of(parts: Sequence[RunPart], shown: Shown) -> JsonObject:
    """What the script reads first: every row of every run."""
    runs: list[JsonObject] = []
    for part in parts:
        marks = filters_of(part)
        rows = [
            {
                **row.form(),
                "picture": shown.numbers.get(row.picture or ""),
                **({"blame": blamed} if (blamed := marks.get((row.id, row.epoch))) else {}),
            }
            for row in part.rows
        ]
        runs.append({"name": part.name, "share": part.share, "rows": rows})
    return {"runs": runs, "block": BLOCK, "words": dict(RESULTS), "sorts": _sorts(runs), **shown.settings()}


def _sorts(runs: Sequence[JsonObject]) -> list[str]:
    rows = [row for run in runs for row in run["rows"]]
    told = [name for name, field in _SORTS.items() if any(row[field] for row in rows)]
    ranked = ["worst", "best"] if any(row["worth"] is not None for row in rows) else []
    return ["order", *ranked, *told]


def _figures(report: Report) -> Iterator[tuple[str, FigureTables]]:
    """The figures of the runs of each task, named where there are several."""
    by_task: dict[str, list[RunPart]] = {}
    for part in report.runs:
        by_task.setdefault(part.run.task, []).append(part)
    for task, parts in by_task.items():
        found = tables_of_runs(parts)
        if found.tables or len(by_task) > 1:
            yield task if len(by_task) > 1 else "", found


def _published(report: Report) -> Iterator[BesideView]:
    together: dict[Beside, list[RunPart]] = {}
    for part in report.runs:
        for beside in part.beside:
            together.setdefault(beside, []).append(part)
    for beside, parts in together.items():
        yield BesideView(table=beside_table(beside, parts), title=beside.title, source=beside.source)


def _plots(report: Report) -> Iterator[Plot]:
    several = len(report.runs) > 1
    yield from _scores_of_runs(report.runs) if several else _scores_of(report.runs[0])
    for part in report.runs:
        prefix = f"{part.name}: " if several else ""
        if part.kinds:
            yield Bars(title=f"{prefix}Errors by kind", counts=list(part.kinds.items()), heads=("kind", "times"))
        for breakdown in part.breakdowns:
            yield _breakdown(breakdown, part, prefix)
        if len(part.outcomes) > 1:
            yield Bars(title=f"{prefix}Outcomes", counts=list(part.outcomes.items()), heads=("outcome", "samples"))
    if several:
        yield from _cost_against_score(report.runs)


def _scores_of(part: RunPart) -> Iterator[Plot]:
    dots = score_dots(part.run.figures)
    if dots:
        yield Intervals(
            title="Scores with intervals",
            dots=dots[:MOST],
            scale=SHARES,
            heads=("figure", "%", "answered / samples"),
            note=f"The first {MOST} of {len(dots)} figures." if len(dots) > MOST else "",
        )


def _scores_of_runs(parts: Sequence[RunPart]) -> Iterator[Plot]:
    """For each task its main figure, run by run."""
    by_metric: dict[tuple[str, str], list[tuple[str, Figure]]] = {}
    for part in parts:
        for figure in part.run.figures[:1]:
            by_metric.setdefault((part.run.task, figure.metric), []).append((part.name, figure))
    for (task, metric), named in by_metric.items():
        dots = [dot_of(name, figure) for name, figure in named]
        scale = scale_of(dots, percent=named[0][1].percent)
        heads = ("run", "%" if scale.percent else metric, "answered / samples")
        yield Intervals(title=f"{metric} ({task})", dots=dots, scale=scale, heads=heads)


def _breakdown(breakdown: Breakdown, part: RunPart, prefix: str) -> Plot:
    dots = [
        Dot(name=each.name, value=each.value, interval=each.interval, count=f"{each.answered:,} / {each.samples:,}")
        for each in breakdown.shares
    ]
    scale = scale_of(dots, percent=part.share)
    return Intervals(
        title=f"{prefix}By {breakdown.name}",
        dots=dots,
        scale=scale,
        heads=(breakdown.name, "%" if scale.percent else "mean", "answered / samples"),
        note=f"{breakdown.note[:1].upper()}{breakdown.note[1:]}.",
    )


def _cost_against_score(parts: Sequence[RunPart]) -> Iterator[Plot]:
    """What runs of one task cost and came to, where every price is known and one was paid."""
    by_task: dict[str, list[tuple[float, Dot]]] = {}
    for part in parts:
        figure = next(iter(part.run.figures), None)
        if figure is not None and figure.percent and not part.spent.unpriced:
            by_task.setdefault(part.run.task, []).append((part.spent.cost, dot_of(part.name, figure)))
    for task, points in by_task.items():
        if len(points) > 1 and any(cost for cost, _ in points):
            yield Scatter(
                title=f"Cost against score ({task})",
                points=points,
                across="dollars for the calls that the run made",
                note="Calls that were on record cost nothing again.",
            )
