"""The table of runs as a paper shows it: the best value of a column in bold, marks of paired tests against one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.errors import UsageError
from askance.evals.abstention import AMONG_ANSWERED, AREA, BRIER, CALIBRATION
from askance.evals.analysis.asked_cost import asked_costs, paid, sum_of
from askance.evals.analysis.compare import HEAD, compare, counts_of, letter, line_of, notes_of_tests
from askance.evals.metric import Figure
from askance.evals.run_tables import names_of, table_of_runs
from askance.evals.tables import Mark, Place, Table, shown_value
from askance.evals.task_catalog import task_of
from askance.models import Engine

if TYPE_CHECKING:
    from askance.evals.analysis.compare import RunsComparison
    from askance.evals.metric import Better
    from askance.evals.run import Run

BETTER: Mark = "*"
WORSE: Mark = "†"


def marked_table(
    runs: Sequence[Run],
    *,
    metrics: Sequence[str] | None = None,
    bold: bool = False,
    against: Run | None = None,
    task: str | None = None,
    digits: int | None = None,
    costs: bool = False,
) -> Table:
    """The table of runs with the best value of each column in bold, and marks of tests against one of the runs.

    Its notes also say which samples have no answer.

    Values that are shown alike are equally good. A figure of which neither more nor less is better has no best value
    and is not tested. The tests are those of `compare`, on the samples that all runs have; their p is adjusted by
    Holm's method over all metrics and runs of the table.

    Args:
        runs: the rows.
        metrics: as `table_of_runs` takes them.
        bold: whether the best values are in bold.
        against: the run that the others are tested against; it is the first row where it is none of them.
        task: where the task is defined, if not where the runs say.
        digits: places with which values are shown; see `TableLayout`.
        costs: whether columns say what the answers of each run cost, in US dollars: what the run paid, and what its
            calls cost at list price as they were asked, also where they were on record.

    Raises:
        UsageError: no run has such a metric, or the runs cannot be compared.
    """
    rows = list(runs)
    if against is not None and _place_of(against, rows) is None:
        rows.insert(0, against)
    table = table_of_runs(rows, metrics=metrics)
    table = replace(table, notes=(*table.notes, *_left_out(rows)))
    if costs:
        table = _with_costs(table, rows)
    scored, withheld = _better(rows, task) if bold or against is not None else ({}, {})
    if bold:
        table = replace(table, bold=frozenset(_best(table, {**withheld, **scored}, digits)))
    if against is None:
        return table
    place = _place_of(against, rows) or 0
    order = [place, *(number for number in range(len(rows)) if number != place)]
    tested = [name for name in table.columns if scored.get(name, "neither") != "neither"]
    return _tested(table, compare(*(rows[number] for number in order), metric=tested, task=task), order)


def _with_costs(table: Table, runs: Sequence[Run]) -> Table:
    cells = [(paid(run.answers), sum_of(each.dollars for each in asked_costs(run, run.answers))) for run in runs]
    rows = tuple((*row, *map(_rounded, pair)) for row, pair in zip(table.rows, cells, strict=True))
    note = "Paid is what the run itself paid; as asked, every call counts at list price, also where it was on record"
    return replace(table, columns=(*table.columns, "paid, $", "as asked, $"), rows=rows, notes=(*table.notes, note))


def _rounded(dollars: float | None) -> float | None:
    return None if dollars is None else round(dollars, 6)


def _left_out(runs: Sequence[Run]) -> Iterator[str]:
    """Which runs have samples without an answer, why, and what becomes of these where not all runs do the same."""
    several = len({run.convention for run in runs if run.figures}) > 1
    for name, run in zip(names_of(runs), runs, strict=True):
        outcomes: Mapping[str, int] = run.totals.get("outcomes", {})
        why = [f"{number:,} {outcome}" for outcome, number in outcomes.items() if outcome != "answered" and number]
        if why:
            count = sum(outcomes.values())
            lacking = f"{count - outcomes.get('answered', 0):,} of {count:,} {run.noun}s"
            kept = f"; they {'count as wrong' if run.convention == 'wrong' else 'are left out'}" if several else ""
            yield f"{name}: {lacking} without an answer ({', '.join(why)}){kept}."


def _place_of(run: Run, runs: Sequence[Run]) -> int | None:
    paths = [each.path.resolve() for each in runs]
    return paths.index(run.path.resolve()) if run.path.resolve() in paths else None


def _better(runs: Sequence[Run], task: str | None) -> tuple[dict[str, Better], dict[str, Better]]:
    """By metric whether more or less is better: of those of the tasks, and of those of answers that may be withheld."""
    scored: dict[str, Better] = {}
    withheld: dict[str, Better] = {AREA: "lower", CALIBRATION: "lower", BRIER: "lower"}
    for run in {each.task: each for each in runs}.values():
        engine = Engine(mode="replay", records=run.records)
        metrics = task_of(run, task).of_run(run.configuration["options"], engine=engine).scorer().metrics
        scored |= {each.name: each.better for each in metrics}
        withheld |= {f"{each.name} {AMONG_ANSWERED}": each.better for each in metrics[:1]}
    return scored, withheld


def _best(table: Table, better: Mapping[str, Better], digits: int | None) -> list[Place]:
    """The cells with the best value of each column that has several."""
    places: list[Place] = []
    for column, name in enumerate(table.columns):
        way = better.get(name, "neither")
        cells = {row: cells[column] for row, cells in enumerate(table.rows)}
        figures = {row: each for row, each in cells.items() if isinstance(each, Figure) and each.value is not None}
        if way == "neither" or len(figures) < 2:
            continue
        ranked = sorted(figures.values(), key=lambda each: each.value or 0.0, reverse=way == "higher")
        best = shown_value(ranked[0].value, percent=ranked[0].percent, digits=digits)
        places += [
            (row, column)
            for row, each in figures.items()
            if shown_value(each.value, percent=each.percent, digits=digits) == best
        ]
    return places


def _tested(table: Table, comparison: RunsComparison, order: Sequence[int]) -> Table:
    """The table with the marks of a comparison, and what they mean.

    Args:
        table: of the runs.
        comparison: of the same runs, the first with each other one.
        order: by run of the comparison its row.
    """
    marks: dict[Place, Mark] = {}
    for each in comparison:
        if each.verdict in {"better", "worse"}:
            marks[order[each.b], table.columns.index(each.metric)] = WORSE if each.verdict == "better" else BETTER
    meaning = (
        f"{BETTER} better, {WORSE} worse than {table.rows[order[0]][0]}: p < 0.05 by paired tests on the "
        f"{many(len(comparison.common.rows), 'sample')} that all runs have, by Holm's method over "
        f"{many(len(comparison), 'test')}."
    )
    tests = (f"{note}." for note in notes_of_tests(comparison) if "test" in note.partition(":")[0])
    undecided = (each.sentence for each in comparison if each.verdict == "undecided")
    return replace(table, marks=marks, notes=(meaning, *tests, *undecided, *table.notes))


def table_of_comparison(comparison: RunsComparison, *, digits: int | None = None) -> Table:
    """A comparison as a table: a row for each figure of two runs, with what is compared in the notes.

    Args:
        comparison: of scored runs.
        digits: places with which figures are shown; see `TableLayout`.

    Raises:
        UsageError: it is of runs over pictures, which have no figures.
    """
    if comparison.of_pictures:
        raise UsageError("Runs over pictures have no figures for a table.", hint="Leave `--format` out.")
    numbers = frozenset({2, 3, 4, 5, 6, 8, 9, 10})
    lines = (line_of(each, digits=digits) for each in comparison)
    rows = tuple(
        tuple(
            cell.replace("-", "−") if place in numbers else cell.replace("\u00a0", " ")
            for place, cell in enumerate(line)
        )
        for line in lines
    )
    names = (f"{letter(place)}: {name}" for place, name in enumerate(comparison.names))
    notes = (f"{note}." for note in (*names, *counts_of(comparison), *notes_of_tests(comparison)))
    undecided = (each.sentence for each in comparison if each.verdict == "undecided")
    return Table(
        columns=HEAD,
        rows=rows,
        notes=(*notes, *undecided, *comparison.ways_out),
        title=comparison.runs[0].task,
        right=numbers,
    )
