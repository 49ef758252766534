"""Runs side by side: one row a run, one column a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.evals.figures import CONVENTIONS, Convention, Figure
from askance.evals.tables import Cell, Table

if TYPE_CHECKING:
    from askance.evals.run import Run


def table_of_runs(runs: Sequence[Run], *, metrics: Sequence[str] | None = None) -> Table:
    """One row a run: its samples and answers, and every metric with its interval.

    Args:
        runs: finished or not.
        metrics: names of those to show; None is all that any sample counts for, in the order of the first run that has
            them.

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


def names_of(runs: Sequence[Run]) -> list[str]:
    """What runs are called beside each other: by task where there are several, by folder where two have one name."""
    several = len({run.task for run in runs}) > 1
    names = [f"{run.task}: {run.name}" if several else run.name for run in runs]
    folders = [run.path.name for run in runs]
    return [
        name if names.count(name) == 1 else f"{name} ({folder if folders.count(folder) == 1 else run.path.as_posix()})"
        for name, folder, run in zip(names, folders, runs, strict=True)
    ]


def notes_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """What a reader of several runs' figures has to know: the convention, the level, and what the runs say."""
    figures = [figure for run in runs for figure in run.figures]
    notes = [f"Convention: {words}." for words in conventions_of(figures)]
    levels = sorted({figure.interval.level for figure in figures if figure.interval is not None})
    notes += [f"In brackets: {100 * level:.0f} % intervals." for level in levels]
    notes += [f"{run.path.name} is not finished." for run in runs if run.finished is None or run.left]
    return tuple(dict.fromkeys([*notes, *(note for run in runs for note in run.notes)]))


def conventions_of(figures: Sequence[Figure]) -> list[str]:
    """The conventions of `figures` in words, each once."""
    kinds: dict[Convention, None] = dict.fromkeys(figure.convention for figure in figures)
    return [CONVENTIONS[kind] for kind in kinds]


def _counts(run: Run) -> tuple[Cell, Cell]:
    outcomes: Mapping[str, int] = run.totals.get("outcomes", {})
    return sum(outcomes.values()), outcomes.get("answered", 0)


def _cells(run: Run, metrics: Sequence[str]) -> Iterator[Cell]:
    there = {figure.metric: figure for figure in run.figures}
    yield from (there.get(name) for name in metrics)
