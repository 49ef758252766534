"""Running a grid: each run once, in whatever tables it stands, and the tables of what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from askance.errors import CallError, UsageError
from askance.evals.evaluation import Progress, aevaluate, configuration_of, place_of
from askance.evals.grid import CHAT, NAMED
from askance.evals.plan import Plannable, plan_runs
from askance.evals.predicting import Turn
from askance.evals.reference import Suite, reference_table
from askance.evals.solving import ChainSolver
from askance.evals.tables import Cell, Table, notes_of
from askance.models import get_model

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.evals.figures import Convention
    from askance.evals.grid import CellSpec, Grid, Row, TableSpec
    from askance.evals.plan import Work
    from askance.evals.run import Run
    from askance.evals.tasks import Definition, Task
    from askance.models import Config, Engine

Published = Callable[[str, tuple[str, ...], str], float | None]
"""From a published table, a row and a column of it to the figure there; None where it has none."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The run behind one or more cells."""

    run: Run | None = None
    reason: str = ""
    """Why there is none."""


@dataclass(frozen=True, kw_only=True)
class GridRun:
    """A grid that was run."""

    grid: Grid
    found: Mapping[str, Found] = field(default_factory=dict[str, Found])
    """By what cells ask for (`CellSpec.asked`)."""

    @property
    def runs(self) -> list[Run]:
        """The runs, each once."""
        return [found.run for found in self.found.values() if found.run is not None]

    @property
    def whole(self) -> bool:
        """Whether there is a finished run behind every cell."""
        return all(found.run and found.run.finished and not found.run.left for found in self.found.values())


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the running of a grid stands."""

    cell: CellSpec
    """The first one that the run is behind."""
    number: int
    """Of the run, counted from 1."""
    runs: int


@dataclass(frozen=True, kw_only=True)
class GridPlan:
    """What a grid would ask and cost."""

    plan: Plan
    runs: int
    left_out: tuple[str, ...]
    """Rows that are not in it, and why."""


Told = Callable[[Place, Progress], None]
"""Hears of every sample."""


class GridRunner:
    """Runs what a grid asks for, one run after the other; within a run, samples go side by side.

    Args:
        grid: with its models filled in.
        out: folder for the runs; those that are in it are finished or taken over.
        engine: of all runs, so that calls which they share are made once.
        find: the definition of a task, by name.
        options: of all tasks that take them, such as `data` and `limit`; they go before the grid's.
        config: the settings file; None is the project's.
    """

    def __init__(
        self,
        grid: Grid,
        *,
        out: Path,
        engine: Engine,
        find: Callable[[str], Definition],
        options: Mapping[str, Any] | None = None,
        config: Config | None = None,
    ) -> None:
        self._grid = grid
        self._config = config
        self._out = out
        self._engine = engine
        self._find = find
        self._options = {name: value for name, value in (options or {}).items() if value is not None}
        self.models: dict[str, Any] = {}
        """By spec: models, made when they are first needed, and whatever else is to stand for a spec."""

    @cached_property
    def wanted(self) -> Mapping[str, CellSpec]:
        """The runs that are asked for, each by the first cell that it is behind."""
        cells: dict[str, CellSpec] = {}
        for cell in self._grid.cells:
            cells.setdefault(cell.asked, cell)
        return cells

    async def run(self, *, convention: Convention = "wrong", seed: int = 0, told: Told | None = None) -> GridRun:
        """Makes every run; one that cannot be made says why and stops no other.

        Raises:
            StoreError: records or folders cannot be read or written.
        """
        found: dict[str, Found] = {}
        for number, (asked, cell) in enumerate(self.wanted.items(), start=1):
            place = Place(cell=cell, number=number, runs=len(self.wanted))
            try:
                task = self.task(cell)
                run = await aevaluate(
                    task,
                    out=self._out / place_of(configuration_of(task, epochs=1)).name,
                    engine=self._engine,
                    convention=convention,
                    seed=seed,
                    told=None if told is None else partial(told, place),
                )
                found[asked] = Found(run=run)
            except (UsageError, CallError) as error:
                found[asked] = Found(reason=str(error))
        return GridRun(grid=self._grid, found=found)

    async def plan(self) -> GridPlan:
        """What all runs would ask and cost, without asking anybody; a call that several make counts once.

        Raises:
            UsageError: the mode is `replay`, which asks nothing.
        """
        reasons: dict[str, str] = {}
        work: list[Work] = []
        for asked, cell in self.wanted.items():
            try:
                task = self.task(cell)
            except UsageError as error:
                reasons[asked] = str(error)
                continue
            if isinstance(task.solver, (ChainSolver, Plannable)):
                work.append((task, [Turn(sample=sample, epoch=0) for sample in task.samples]))
            else:
                reasons[asked] = "nobody can tell what a solver will ask that is no chain"
        found = await plan_runs(work, self._engine)
        left_out = _by_reason((self.wanted[asked].label, reason) for asked, reason in reasons.items())
        return GridPlan(plan=found, runs=len(self.wanted) - len(reasons), left_out=left_out)

    def task(self, cell: CellSpec) -> Task:
        """The task behind a cell.

        Raises:
            UsageError: there is no such task, it lacks something, or a model of it is not set.
        """
        if not cell.task:
            raise UsageError(f"Nothing says which task the row {cell.label!r} is of.", hint="Give its table a `task`.")
        definition = self._find(cell.task)
        general = {name: value for name, value in self._options.items() if name in definition.takes}
        options = {**self._grid.with_specs(cell.options), **general}
        for name in NAMED:
            if isinstance(options.get(name), str):
                options[name] = self._named(options[name], as_model=name in CHAT)
        if "engine" in definition.takes:
            options["engine"] = self._engine
        return definition(**options)

    def _named(self, spec: str, *, as_model: bool) -> Any:
        """What stands for a spec; scorers and embedders are made by their tasks."""
        if spec not in self.models and as_model:
            self.models[spec] = get_model(spec, engine=self._engine, config=self._config)
        return self.models.get(spec, spec)


def published_figure(table: str, row: tuple[str, ...], column: str) -> float | None:
    """A figure of a published table, which is named by suite and number: `pittads/3`.

    Raises:
        UsageError: there is no such suite or table.
    """
    name, _, number = table.partition("/")
    suite: Suite | None = next((each for each in get_args(Suite) if each == name), None)
    if suite is None or not number.isdecimal():
        raise UsageError(f"No published table is called {table!r}.", hint="Write suite and number, such as pittads/3.")
    found = reference_table(suite, int(number))
    return found.value(*row, column=column) if column in found.columns else None


def runs_of(result: GridRun, table: str) -> list[Run]:
    """The runs behind one table, each once."""
    cells = [cell for cell in result.grid.cells if cell.table == table]
    found = [result.found[cell.asked].run for cell in cells]
    return [*{run.path: run for run in found if run is not None}.values()]


def tables_of(result: GridRun, *, published: Published = published_figure) -> dict[str, Table]:
    """The tables of a grid, by name: our figures, and in columns of their own the published ones.

    Raises:
        UsageError: the grid names a published table that there is not.
    """
    return {name: _table(name, spec, result, published=published) for name, spec in result.grid.tables.items()}


def _table(name: str, spec: TableSpec, result: GridRun, *, published: Published) -> Table:
    cells = [cell for cell in result.grid.cells if cell.table == name]
    found = [result.found[cell.asked] for cell in cells]
    beside = [f"{head} †" for head in spec.columns] if spec.published is not None else []
    rows: list[tuple[Cell, ...]] = []
    for number, row in enumerate(spec.rows):
        own = [cell for cell in cells if cell.row == number]
        theirs = _published(row, spec, published) if beside else ()
        rows.append((row.label, *_counts(own, result), *(_figure(cell, result) for cell in own), *theirs))
    reasons = _by_reason((cell.label, each.reason) for cell, each in zip(cells, found, strict=True) if not each.run)
    marked = ("Columns marked † are published figures, not ours.",) if beside else ()
    return Table(
        title=spec.title,
        columns=("", "samples", "answered", *spec.columns, *beside),
        rows=tuple(rows),
        notes=(*spec.notes, *marked, *reasons, *notes_of(runs_of(result, name))),
    )


def _by_reason(left_out: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Why rows are empty, each reason once, with the rows that it holds for."""
    labels: dict[str, dict[str, None]] = {}
    for label, reason in left_out:
        labels.setdefault(reason, {})[label] = None
    return tuple(f"{'; '.join(rows)}: {reason}" for reason, rows in labels.items())


def _figure(cell: CellSpec, result: GridRun) -> Cell:
    run = result.found[cell.asked].run
    return None if run is None else next((each for each in run.figures if each.metric == cell.metric), None)


def _counts(cells: list[CellSpec], result: GridRun) -> tuple[Cell, Cell]:
    """Samples and answers of a row: one number, or those of each of its runs."""
    runs = {found.run.path: found.run for cell in cells if (found := result.found[cell.asked]).run is not None}
    outcomes: list[Mapping[str, int]] = [run.totals.get("outcomes", {}) for run in runs.values()]
    return _once([sum(each.values()) for each in outcomes]), _once([each.get("answered", 0) for each in outcomes])


def _once(counts: list[int]) -> Cell:
    if len(set(counts)) == 1:
        return counts[0]
    return " / ".join(map(str, counts)) or None


def _published(row: Row, spec: TableSpec, published: Published) -> Iterator[Cell]:
    for head in spec.columns:
        if spec.published is None or row.published is None:
            yield None
        else:
            yield published(spec.published, row.published, head)
