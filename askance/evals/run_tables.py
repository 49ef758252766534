"""Tables of runs: a row a run, a column a metric; and the names and notes that they have there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.evals.tables import Cell, Table, conventions_of, rendered

if TYPE_CHECKING:
    from askance.evals.run import Run


def table_of_runs(runs: Sequence[Run], *, metrics: Sequence[str] | None = None) -> Table:
    """A table with one row a run: its samples and answers, and every metric with its interval.

    Args:
        runs: finished or not.
        metrics: names of the metrics to show; None shows all that any sample has, in the order of the first run that
            has them.

    Raises:
        UsageError: no run has a metric of that name.
    """
    names = tuple(dict.fromkeys(figure.metric for run in runs for figure in run.figures))
    unknown = [name for name in metrics or () if name not in names]
    if unknown:
        raise UsageError(f"None of the runs has a metric {unknown[0]!r}.", hint=f"They have {', '.join(names)}.")
    counted = {figure.metric for run in runs for figure in run.figures if figure.samples}
    shown = tuple(metrics) if metrics else tuple(name for name in names if name in counted)
    rows = tuple((name, *_counts(run), *_cells(run, shown)) for name, run in zip(names_of(runs), runs, strict=True))
    title = runs[0].task if len({run.task for run in runs}) == 1 else ""
    return Table(columns=("run", "samples", "answered", *shown), rows=rows, notes=notes_of(runs), title=title)


LEADING = 8
"""How many metrics of a task the Markdown table shows, the first ones; the CSV table shows all."""


def task_tables(runs: Sequence[Run]) -> dict[str, str]:
    """The tables of runs, one for each task, by file name: Markdown for readers, CSV for programs."""
    tasks: dict[str, list[Run]] = {}
    for run in runs:
        tasks.setdefault(run.task, []).append(run)
    texts: dict[str, str] = {}
    for task, several in tasks.items():
        name, whole = "-".join(task.split("/")), table_of_runs(several)
        first = whole.columns[3 : 3 + LEADING]
        texts[f"{name}.md"] = rendered(table_of_runs(several, metrics=first), "markdown")
        texts[f"{name}.csv"] = rendered(whole, "csv")
    return texts


def names_of(runs: Sequence[Run]) -> list[str]:
    """Names that tell the runs apart: with the task if there are several, with the folder if two names are equal."""
    several = len({run.task for run in runs}) > 1
    names = [f"{run.task}: {run.name}" if several else run.name for run in runs]
    folders = [run.path.name for run in runs]
    return [
        name if names.count(name) == 1 else f"{name} ({folder if folders.count(folder) == 1 else run.path.as_posix()})"
        for name, folder, run in zip(names, folders, runs, strict=True)
    ]


def notes_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """Notes on the figures of several runs: the convention, the level of intervals, and the runs' own notes."""
    figures = [figure for run in runs for figure in run.figures]
    notes = [f"Convention: {words}." for words in conventions_of(figures)]
    levels = sorted({figure.interval.level for figure in figures if figure.interval is not None})
    notes += [f"In brackets: {100 * level:.0f} % intervals." for level in levels]
    notes += [f"{run.path.name} is not finished." for run in runs if run.kept and (run.finished is None or run.left)]
    return tuple(dict.fromkeys([*notes, *(note for run in runs for note in run.notes)]))


def _counts(run: Run) -> tuple[Cell, Cell]:
    outcomes: Mapping[str, int] = run.totals.get("outcomes", {})
    return sum(outcomes.values()), outcomes.get("answered", 0)


def _cells(run: Run, metrics: Sequence[str]) -> Iterator[Cell]:
    by_metric = {figure.metric: figure for figure in run.figures}
    yield from (by_metric.get(name) for name in metrics)
