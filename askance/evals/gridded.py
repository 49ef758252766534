"""Running a grid: each run once, in whatever tables it stands, and the tables of what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from askance.errors import CallError, UsageError
from askance.evals.evaluate import Progress, aevaluate, configuration_of, place_of
from askance.evals.reference import Suite, reference_table
from askance.evals.reports import notes_of
from askance.evals.tables import Cell, Table
from askance.evals.task import ROLES
from askance.models import Model, get_model

if TYPE_CHECKING:
    from askance.evals.figures import Convention
    from askance.evals.grid import Grid, Row, TableSpec
    from askance.evals.run import Run
    from askance.evals.task import Definition, Task
    from askance.models import Engine

Published = Callable[[str, tuple[str, ...], str], float | None]
"""From a published table, a row and a column of it to the figure there; None where it has none."""


@dataclass(frozen=True, kw_only=True)
class RowRun:
    """One row of a grid, and the run behind it."""

    table: str
    row: Row
    run: Run | None = None
    reason: str | None = None
    """Why there is no run."""


@dataclass(kw_only=True)
class GridRun:
    """A grid that was run."""

    grid: Grid
    rows: list[RowRun] = field(default_factory=list[RowRun])

    @property
    def runs(self) -> list[Run]:
        """The runs, each once."""
        return list({run.path: run for row in self.rows if (run := row.run) is not None}.values())

    @property
    def whole(self) -> bool:
        """Whether every row has a run that is finished."""
        return all(row.run is not None and row.run.finished and not row.run.left for row in self.rows)


Told = Callable[[str, int, int, Progress], None]
"""Hears of every sample: label of the row, its place among the runs, how many runs there are, and where it stands."""


class GridRunner:
    """Runs the rows of a grid one after the other; within a row, samples run side by side.

    Args:
        grid: with its models filled in.
        out: folder for the runs; those that are in it are finished or taken over.
        engine: of all runs, so that calls which rows share are made once.
        find: the definition of a task, by name.
        options: of all rows, where a task takes them, such as `data` and `limit`; they go before the grid's.
    """

    def __init__(
        self,
        grid: Grid,
        *,
        out: Path,
        engine: Engine,
        find: Callable[[str], Definition],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._grid = grid
        self._out = out
        self._engine = engine
        self._find = find
        self._options = {name: value for name, value in (options or {}).items() if value is not None}
        self.models: dict[str, Model] = {}
        """By spec, made when they are first needed."""

    async def run(self, *, convention: Convention = "wrong", seed: int = 0, told: Told | None = None) -> GridRun:
        """Every row; one that cannot be run says why and stops no other.

        Raises:
            StoreError: records or folders cannot be read or written.
        """
        result = GridRun(grid=self._grid)
        rows = [(name, table, row) for name, table in self._grid.tables.items() for row in table.rows]
        for place, (name, table, row) in enumerate(rows, start=1):

            def tell(progress: Progress, row: Row = row, place: int = place) -> None:
                if told is not None:
                    told(row.label, place, len(rows), progress)

            try:
                task = self.task(table, row)
                out = self._out / place_of(configuration_of(task, epochs=1)).name
                run = await aevaluate(task, out=out, engine=self._engine, convention=convention, seed=seed, told=tell)
                result.rows.append(RowRun(table=name, row=row, run=run))
            except (UsageError, CallError) as error:
                result.rows.append(RowRun(table=name, row=row, reason=error.message))
        return result

    def task(self, table: TableSpec, row: Row) -> Task:
        """The task behind a row.

        Raises:
            UsageError: there is no such task, it lacks something, or a model of it is not set.
        """
        definition = self._find(self._grid.task_of(table, row))
        general = {name: value for name, value in self._options.items() if name in definition.takes}
        options = {**self._grid.options_of(table, row), **general}
        for role in ROLES:
            if isinstance(options.get(role), str):
                options[role] = self._model(options[role])
        return definition(**options)

    def _model(self, spec: str) -> Model:
        if spec not in self.models:
            self.models[spec] = get_model(spec, engine=self._engine)
        return self.models[spec]


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


def tables_of(result: GridRun, *, published: Published = published_figure) -> dict[str, Table]:
    """The tables of a grid, by name: our figures, and in columns of their own the published ones.

    Raises:
        UsageError: the grid names a published table that there is not.
    """
    tables: dict[str, Table] = {}
    for name, spec in result.grid.tables.items():
        rows = [row for row in result.rows if row.table == name]
        runs = [row.run for row in rows if row.run is not None]
        notes = [f"{row.row.label}: {row.reason}" for row in rows if row.reason is not None]
        beside = [f"{head} †" for head in spec.columns] if spec.published is not None else []
        if beside:
            notes.append("Columns marked † are published figures, not ours.")
        tables[name] = Table(
            title=spec.title,
            columns=("run", "samples", "answered", *spec.columns, *beside),
            rows=tuple((*_ours(row, spec), *(_theirs(row.row, spec, published) if beside else ())) for row in rows),
            notes=(*spec.notes, *notes, *notes_of(runs)),
        )
    return tables


def _ours(row: RowRun, spec: TableSpec) -> Iterator[Cell]:
    yield row.row.label
    outcomes: Mapping[str, int] = {} if row.run is None else row.run.totals.get("outcomes", {})
    yield None if row.run is None else sum(outcomes.values())
    yield None if row.run is None else outcomes.get("answered", 0)
    figures = {} if row.run is None else {figure.metric: figure for figure in row.run.figures}
    yield from (figures.get(metric) for metric in spec.columns.values())


def _theirs(row: Row, spec: TableSpec, published: Published) -> Iterator[Cell]:
    for head in spec.columns:
        if spec.published is None or row.published is None:
            yield None
        else:
            yield published(spec.published, row.published, head)
