"""A report as one HTML file, which opens from a disk and asks nobody for anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from askance.evals.report import blame_section, calibration, plots, sections, tabled
from askance.evals.report.details import Texts
from askance.evals.report.drawing import MOST, dot_of, score_dots
from askance.evals.report.embedding import BLOCK, WITHOUT, Room, Shown, details_blocks, texts_block
from askance.evals.report.markup import Markup, data_block, element, joined
from askance.evals.report.pictures import Pictures
from askance.evals.report.shell import document
from askance.evals.report.values import RESULTS
from askance.evals.reports import notes_of, table_of_runs

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.figures import Figure
    from askance.evals.report.values import Beside, Breakdown, Report, RunPart

_SIDE_BY_SIDE = 4
"""Runs of one task up to which each has a column; more of them have a row each."""
_SORTS: Mapping[str, str] = {"slow": "seconds", "cost": "cost", "tokens": "tokens", "tries": "again"}


def report_page(report: Report, *, pictures: Pictures | None = None, files: Sequence[str] | None = None) -> str:
    """The page of a report; equal reports give equal pages.

    Args:
        report: of one or several runs.
        pictures: thumbnails; None is none.
        files: addresses of the thumbnails where they lie beside the page, in their order.
    """
    shown = Shown(pictures=pictures or Pictures(), files=files)
    texts, room = Texts(report.runs), Room()
    details = [
        block
        for number, part in enumerate(report.runs)
        for block in details_blocks(number, part, texts=texts, room=room)
    ]
    index = {**index_of(report.runs, shown), "kind": "report", **({"without": WITHOUT} if room.refused else {})}
    data = joined((data_block("index", index), texts_block(texts), *details, *shown.blocks()))
    return document(
        title=report.title,
        what="report",
        count=sum(len(part.rows) for part in report.runs),
        content=joined(_content(report, (*shown.pictures.notes, *room.notes))),
        data=data,
        beside=files is not None,
    )


def index_of(parts: Sequence[RunPart], shown: Shown) -> JsonObject:
    """What the script reads first: every row of every run."""
    runs: list[JsonObject] = []
    for part in parts:
        marks = blame_section.marks_of(part)
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


def _content(report: Report, notes: Sequence[str]) -> Iterator[Markup | None]:
    alone = len(report.runs) == 1
    articles = [sections.summary(part, alone=alone) for part in report.runs]
    yield articles[0] if alone else sections.section("runs", "Runs", *articles)
    if notes:
        yield tabled.listed(notes)
    tables = list(_tables(report))
    if tables:
        yield sections.section("figures", "Figures", *tables)
    drawn = list(_plots(report))
    if drawn:
        yield sections.section("plots", "Plots", element("div", *drawn, class_="plots"))
    blame = blame_section.blame_section(report.runs)
    if blame is not None:
        yield blame
    judges = [note for part in report.runs for note in part.judges]
    if judges:
        parts = (calibration.judge_part(note, heading=len(judges) > 1) for note in judges)
        yield sections.section("judges", "Judges", tabled.judges_table(judges), *parts)


def _tables(report: Report) -> Iterator[Markup | None]:
    by_task: dict[str, list[RunPart]] = {}
    for part in report.runs:
        by_task.setdefault(part.run.task, []).append(part)
    for task, parts in by_task.items():
        if len(by_task) > 1:
            yield element("h3", task)
        if len(parts) > _SIDE_BY_SIDE:
            yield tabled.runs_table(table_of_runs([part.run for part in parts]))
        elif len(parts) > 1:
            yield tabled.side_by_side(parts)
            yield tabled.listed(notes_of([part.run for part in parts]))
        elif (table := tabled.figures_table(parts[0])) is not None:
            yield table
    together: dict[Beside, list[RunPart]] = {}
    for part in report.runs:
        for beside in part.beside:
            together.setdefault(beside, []).append(part)
    for beside, parts in together.items():
        heading = element("h3", "Beside what was published")
        yield element("div", heading, tabled.beside_table(beside, parts), class_="beside")


def _plots(report: Report) -> Iterator[Markup]:
    several = len(report.runs) > 1
    yield from _scores_of_runs(report.runs) if several else _scores_of(report.runs[0])
    for part in report.runs:
        prefix = f"{part.name}: " if several else ""
        if part.kinds:
            yield plots.bars(f"{prefix}Errors by kind", list(part.kinds.items()), heads=("kind", "times"))
        for breakdown in part.breakdowns:
            yield _breakdown(breakdown, part, prefix)
        lost = [(outcome, count) for outcome, count in part.outcomes.items()]
        if len(lost) > 1:
            yield plots.bars(f"{prefix}Outcomes", lost, heads=("outcome", "samples"))
    if several:
        yield from _cost_against_score(report.runs)


def _scores_of(part: RunPart) -> Iterator[Markup]:
    dots = score_dots(part.run.figures)
    if dots:
        note = f"The first {MOST} of {len(dots)} figures." if len(dots) > MOST else ""
        yield plots.intervals(
            "Scores with intervals", dots[:MOST], plots.SHARES, heads=("figure", "%", "answered / samples"), note=note
        )


def _scores_of_runs(parts: Sequence[RunPart]) -> Iterator[Markup]:
    """For each task its main figure, run by run."""
    by_metric: dict[tuple[str, str], list[tuple[str, Figure]]] = {}
    for part in parts:
        for figure in part.run.figures[:1]:
            by_metric.setdefault((part.run.task, figure.metric), []).append((part.name, figure))
    for (task, metric), named in by_metric.items():
        dots = [dot_of(name, figure) for name, figure in named]
        scale = plots.scale_of(dots, percent=named[0][1].percent)
        unit = "%" if scale.percent else metric
        yield plots.intervals(f"{metric} ({task})", dots, scale, heads=("run", unit, "answered / samples"))


def _breakdown(breakdown: Breakdown, part: RunPart, prefix: str) -> Markup:
    dots = [
        plots.Dot(
            name=share.name, value=share.value, interval=share.interval, count=f"{share.answered:,} / {share.samples:,}"
        )
        for share in breakdown.shares
    ]
    scale = plots.scale_of(dots, percent=part.share)
    return plots.intervals(
        f"{prefix}By {breakdown.name}",
        dots,
        scale,
        heads=(breakdown.name, "%" if scale.percent else "mean", "answered / samples"),
        note=f"{breakdown.note[:1].upper()}{breakdown.note[1:]}.",
    )


def _cost_against_score(parts: Sequence[RunPart]) -> Iterator[Markup]:
    """What runs of one task cost and came to, where every price is known and one was paid."""
    by_task: dict[str, list[tuple[str, float, plots.Dot]]] = {}
    for part in parts:
        figure = next(iter(part.run.figures), None)
        if figure is not None and figure.percent and not part.spent.unpriced:
            by_task.setdefault(part.run.task, []).append((part.name, part.spent.cost, dot_of(part.name, figure)))
    for task, points in by_task.items():
        if len(points) > 1 and any(cost for _, cost, _ in points):
            yield plots.scatter(
                f"Cost against score ({task})",
                points,
                across="dollars for the calls that the run made",
                note="Calls that were on record cost nothing again.",
            )
