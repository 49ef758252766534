"""Grids: a file that names the runs behind one or more tables, row by row.

```yaml
models:
  LLaVA: openai:llava-13b@http://localhost:8000/v1
  GPT-4: openai:gpt-4o
tables:
  table-3:
    title: Action-reason retrieval
    task: pittads/arr-multi
    columns: {"P@1": p@1, "P@3": p@3, "single": {task: pittads/arr-single, metric: accuracy}}
    rows:
      - {label: "LLaVA, I", vlm: LLaVA, context: I}
      - {label: "GPT-4, T_V", vlm: LLaVA, llm: GPT-4, context: T_V}
```

A cell is a metric of the run that its row and its column ask for: the options of the grid, the table, the row and the
column, each going before those in front of it. Cells that ask for the same are one run, in whatever tables they stand.
Where the name of a model holds `{fold}`, a cell has a run for each fold, by the model of that fold, and its figure is
that over the folds. `fold: each` says of a row that its models have to be named so.

`prompts` is an option of every task: a folder of prompts, which go before the user's own. Rows that are a map of lists
are all their combinations, `rows: {vlm: [LLaVA, GPT-4], prompts: [null, short]}`; null leaves an option out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from askance.amounts import many
from askance.chat import key_of
from askance.documents import read_yaml, validation_message
from askance.errors import BadData, CallError, UsageError
from askance.evals.job import Job, plan_of
from askance.evals.published_figures import find_published_table
from askance.evals.run_plan import planning
from askance.evals.run_tables import notes_of, table_of_runs
from askance.evals.runner import RunProgress, SampleEpoch, aevaluate, configuration_of, place_of, run_job, scorer_of
from askance.evals.scorer import Scorer, figure_names, figures_of, notes_on
from askance.evals.solver import as_solver
from askance.evals.suite.breakdown import joined_over_folds
from askance.evals.suite.selection import FOLDS
from askance.evals.suite_registry import shipped_grids
from askance.evals.tables import Cell, Format, Table, rendered
from askance.evals.task_options import FOLD, ROLES, of_own_fold
from askance.models import get_model
from askance.models.encoders.embedder import EMBEDDERS
from askance.models.encoders.picture_scorer import SCORERS
from askance.models.encoders.records import allows_code
from askance.models.spec import BACKENDS
from askance.prompts import PromptLibrary, overlay_prompts
from askance.python_file import is_python
from askance.registry import near

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.evals.evaluation import Evaluation
    from askance.evals.metric import MissingAnswerPolicy
    from askance.evals.run import Run
    from askance.evals.task import Task
    from askance.models import Config, Engine


CHAT = (*ROLES, "judge")
"""Options that are chat models."""

NAMED = (*CHAT, "scorer", "embedder")
"""Options whose values may be names of the grid's models."""

PROMPTS = "prompts"
"""The option of a cell that names a folder of prompts."""

EACH = "each"
"""As `fold` of a cell: each fold of the data is answered by a model of its own."""


class GridColumn(BaseModel):
    """One column of a table."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    metric: str
    task: str | None = None
    """None is the row's, or else the table's."""
    options: Mapping[str, Any] = {}
    """Go before those of the row. In a text, `{name}` stands for what the row's `let` says."""


class GridRow(BaseModel):
    """One row of a table; what is no field here is an option of its task, with models by their names in the grid."""

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    label: str
    task: str | None = None
    """None is the table's."""
    published: tuple[str, ...] | None = None
    """The row of the published table that stands beside it."""
    let: Mapping[str, str] = {}
    """What `{name}` stands for in the options of columns."""
    columns: Mapping[str, GridColumn] = {}
    """By their heads, those that are something else in this row."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Options of the task."""
        return self.model_extra or {}


class TableSpec(BaseModel):
    """One table of a grid."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    title: str
    task: str | None = None
    columns: Annotated[Mapping[str, GridColumn], Field(min_length=1)]
    """By their heads; published figures stand under the same heads. A text is a metric."""
    rows: Annotated[tuple[GridRow, ...], Field(min_length=1)]
    options: Mapping[str, Any] = {}
    """Of all rows."""
    published: str | None = None
    """The published table that it stands beside, such as `pittads/3`."""
    notes: tuple[str, ...] = ()

    @field_validator("columns", mode="before")
    @classmethod
    def _metrics(cls, columns: Any) -> Any:
        if not isinstance(columns, dict):
            return columns
        named = cast("dict[str, Any]", columns)
        return {head: {"metric": column} if isinstance(column, str) else column for head, column in named.items()}

    @field_validator("rows", mode="before")
    @classmethod
    def _combined(cls, rows: Any) -> Any:
        """The combinations of a map of lists; each row is labelled by its values."""
        if not isinstance(rows, dict):
            return rows
        listed = cast("dict[str, Any]", rows)
        lists: dict[str, list[Any]] = {
            name: cast("list[Any]", each) if isinstance(each, list) else [each] for name, each in listed.items()
        }
        combined = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
        return [
            {"label": ", ".join("own" if value is None else str(value) for value in row.values()), **row}
            for row in combined
        ]


class SameSetting(BaseModel):
    """A task that some options make the task of published tables, though no cell of the grid is a run of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: tuple[str, ...]
    """Tables of the grid whose published figures stand beside its runs."""
    options: Mapping[str, Any]
    """That a run has to have."""


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """One cell of a grid: a metric of the run of a task with options."""

    table: str
    row: int
    """Place of the row in its table, from 0."""
    head: str
    """Of the column."""
    label: str
    """Of the row."""
    metric: str
    task: str
    """Empty where nobody names one."""
    options: Mapping[str, Any]
    """Models by their names in the grid."""

    @property
    def asked(self) -> str:
        """Equal for cells that one run is behind."""
        return key_of("grid", {"task": self.task, "options": dict(self.options)})


class Grid(BaseModel):
    """What a grid file says."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    summary: str = ""
    models: Mapping[str, str | None] = {}
    """Specs by the names that rows use; null is to be filled in by whoever runs it."""
    options: Mapping[str, Any] = {}
    """Of all rows; those of a table go before them."""
    tables: Annotated[Mapping[str, TableSpec], Field(min_length=1)]
    same_setting: Mapping[str, SameSetting] = {}
    """By name, tasks beside whose runs published figures stand, too."""

    def only(self, names: Sequence[str]) -> Grid:
        """This grid with some of its tables.

        Raises:
            UsageError: it has no table of a name.
        """
        unknown = [name for name in names if name not in self.tables]
        if unknown:
            raise UsageError(f"The grid has no table {unknown[0]!r}.", hint=f"It has {', '.join(self.tables)}.")
        return self.model_copy(update={"tables": {name: self.tables[name] for name in names}})

    def with_models(self, models: Mapping[str, str]) -> Grid:
        """This grid with specs for its models.

        Raises:
            UsageError: it has no model of a name.
        """
        unknown = [name for name in models if name not in self.models]
        if unknown:
            named = ", ".join(self.models) or "none; name it under `models` in the file"
            raise UsageError(f"The grid has no model {unknown[0]!r}.", hint=f"It has {named}.")
        return self.model_copy(update={"models": {**self.models, **models}})

    @property
    def cells(self) -> Iterator[CellSpec]:
        """Every cell, table by table and row by row."""
        for name, table in self.tables.items():
            for number, row in enumerate(table.rows):
                for head, general in table.columns.items():
                    column = row.columns.get(head, general)
                    yield CellSpec(
                        table=name,
                        row=number,
                        head=head,
                        label=row.label,
                        metric=column.metric,
                        task=column.task or row.task or table.task or "",
                        options=_stated(
                            {**self.options, **table.options, **row.options, **_filled(column.options, row)}
                        ),
                    )

    def runs_behind(self, cell: CellSpec) -> tuple[CellSpec, ...]:
        """What is run for a cell: itself, or each fold of it where each is answered by a model of its own.

        Raises:
            UsageError: its `fold` is `each`, and its models are named alike for all folds.
        """
        wanted = cell.options.get("fold", "all")
        if self.unset(cell.options) or wanted not in {EACH, "all"}:
            return (cell,)
        given = [value for name, value in cell.options.items() if name in NAMED and isinstance(value, str)]
        specs = [self.models.get(value) or value for value in given]
        if not any(FOLD in spec for spec in specs):
            if wanted == "all":
                return (cell,)
            one = f"{specs[0]!r} is one model for all folds" if specs else "it names no model"
            raise UsageError(
                f"The row {cell.label!r} needs a model for each fold, and {one}.",
                hint=f"Write {FOLD} in its name: `--model 'NAME=hf:w/fold-{FOLD}'`.",
            )
        return tuple(
            replace(cell, label=f"{cell.label}, fold {fold}", options={**cell.options, "fold": fold})
            for fold in range(FOLDS)
        )

    def with_specs(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """`options` with the specs of models in place of their names.

        Raises:
            UsageError: nothing stands for a model.
        """
        return {name: self._spec(value) if name in NAMED else value for name, value in options.items()}

    def _spec(self, name: Any) -> Any:
        if not isinstance(name, str) or (name not in self.models and ":" in name):
            return name
        if name not in self.models:
            raise UsageError(
                f"The grid has no model {name!r}.",
                hint=f"{near(name, self.models)}Name it under `models` in the file, or give a spec.",
            )
        spec = self.models[name]
        if spec is None:
            raise UsageError(
                f"Nothing stands for the model {name!r} of the grid.",
                hint=f"Set it under `models` in the file, or with `--model {name}=openai:…`.",
            )
        return spec

    def unset(self, options: Mapping[str, Any]) -> bool:
        """Whether `options` name a model that is to be filled in by whoever runs the grid."""
        named = (value for name, value in options.items() if name in NAMED)
        return any(value is None or self.models.get(value, "") is None for value in named)


def _stated(options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` without those that are null, but for models, of which null says that none is set yet."""
    return {name: value for name, value in options.items() if value is not None or name in NAMED}


def _filled(options: Mapping[str, Any], row: GridRow) -> dict[str, Any]:
    """`options` with what the row lets names in braces be."""
    filled = dict(options)
    for name, value in options.items():
        for own, text in row.let.items() if isinstance(value, str) else ():
            filled[name] = filled[name].replace(f"{{{own}}}", text)
    return filled


def read_grid(name: str | Path) -> Grid:
    """The grid in a file, or one that ships, by the name of its suite.

    Raises:
        UsageError: it cannot be read, or says what no grid says; the message names the place.
    """
    path = grid_file(name)
    form = read_yaml(path, what="a grid")
    try:
        grid = Grid.model_validate(form)
    except ValidationError as error:
        raise _unusable(path, error) from error
    # A grid may be a stranger's, and its word runs no code.
    python = next((cell.task for cell in grid.cells if cell.task.partition("@")[0].lower().endswith(".py")), None)
    if python is not None:
        raise UsageError(
            f"The grid {str(path)!r} names a Python file: {python!r}.", hint="Name a YAML task, or one of a suite."
        )
    texts = [*grid.models.values(), *(value for cell in grid.cells for value in cell.options.values())]
    code = next((text for text in texts if isinstance(text, str) and _runs_code(text)), None)
    if code is not None:
        raise UsageError(
            f"The grid {str(path)!r} names what would run code: {code[:80]!r}.",
            hint="Run its task with `askance eval run`, or say a model yourself: `--model NAME=SPEC`.",
        )
    return grid


def _runs_code(text: str) -> bool:
    """Whether an option names Python, weights that may bring code, or what another package brings."""
    provider, colon, _ = text.partition(":")
    others = (each for each in (BACKENDS, EMBEDDERS, SCORERS) if colon and provider not in each.built_in)
    return is_python(text) or allows_code(text) or any(provider in each for each in others)


Published = Callable[[str, tuple[str, ...], str], float | None]
"""From a published table, a row and a column of it to the figure there; None where it has none."""


def _unusable(path: Path, error: ValidationError) -> UsageError:
    """The error for a grid that says what no grid says; an unknown key is named before what is missing beside it."""
    errors = error.errors(include_url=False)
    unknown = next((each for each in errors if each["type"] == "extra_forbidden"), None)
    place = [str(step) for step in (unknown or errors[0])["loc"]]
    kind, takes = _keys_at(place)
    hint = f"{kind} takes {', '.join(map(repr, takes))}."
    if unknown is None:
        return UsageError(f"The grid {str(path)!r} cannot be used: {validation_message(error)}.", hint=hint)
    where = f" at {'.'.join(place[:-1])}" if place[:-1] else ""
    return UsageError(
        f"The grid {str(path)!r} has the key {place[-1]!r}{where}, which is not known.",
        hint=f"{near(place[-1], takes)}{hint}",
    )


def _keys_at(place: Sequence[str]) -> tuple[str, Collection[str]]:
    """What stands at a place of a grid file, and the keys that it takes."""
    match place:
        case [*_, "columns", _, _]:
            return "A column", GridColumn.model_fields
        case ["tables", _, "rows", _, _]:
            return "A row, beside options of its task,", GridRow.model_fields
        case ["tables", _, _]:
            return "A table", TableSpec.model_fields
        case ["same_setting", _, _]:
            return "A setting", SameSetting.model_fields
        case _:
            return "A grid", Grid.model_fields


def grid_file(name: str | Path) -> Path:
    """The file of a grid that ships, by the name of its suite; any other name is that of a file.

    Raises:
        UsageError: there is neither.
    """
    shipped = shipped_grids()
    file = shipped.get(str(name), Path(name))
    if not file.exists():
        raise UsageError(
            f"There is no grid {str(name)!r}.", hint=f"Name a file, or one that ships: {', '.join(shipped)}."
        )
    return file


# --- running it ---


@dataclass(frozen=True, kw_only=True)
class CellRun:
    """The run behind one or more cells."""

    run: Run | None = None
    reason: str = ""
    """Why there is none."""


@dataclass(frozen=True, kw_only=True)
class GridRun:
    """A grid that was run."""

    grid: Grid
    found: Mapping[str, CellRun] = field(default_factory=dict[str, CellRun])
    """By what cells ask for (`CellSpec.asked`). A cell with a run for each fold has the run joined over its folds."""

    @property
    def runs(self) -> list[Run]:
        """The runs that have folders, each once."""
        return [each.run for each in self.found.values() if each.run is not None and each.run.kept]

    def runs_of(self, table: str) -> list[Run]:
        """The runs behind one table, each once; a row with a run for each fold has the run joined over its folds."""
        asked = dict.fromkeys(cell.asked for cell in self.grid.cells if cell.table == table)
        return [run for each in asked if (run := self.found[each].run) is not None]

    @property
    def whole(self) -> bool:
        """Whether there is a finished run behind every cell."""
        return all(cell_run.run and cell_run.run.finished and not cell_run.run.left for cell_run in self.found.values())


@dataclass(frozen=True, kw_only=True)
class GridPosition:
    """The run of a grid that is under way."""

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


OnGridProgress = Callable[[GridPosition, RunProgress], None]
"""Is called after every sample with the run that is under way and how far it is."""


class GridRunner:
    """Runs what a grid asks for, one run after the other; within a run, samples go side by side.

    Args:
        grid: with its models filled in.
        out: folder for the runs; those that are in it are finished or taken over.
        engine: of all runs, so that calls which they share are made once.
        find: the class of a task, by name.
        options: of all tasks that take them, such as `data` and `limit`; they go before the grid's.
        config: the settings file; None is the project's.
    """

    def __init__(
        self,
        grid: Grid,
        *,
        out: Path,
        engine: Engine,
        find: Callable[[str], type[Task]],
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
        self._labels: dict[str, tuple[str, str]] = {}
        """Of each run the task's name and the label that the task gives, by what its cells ask for."""

    @cached_property
    def wanted(self) -> Mapping[str, CellSpec]:
        """The runs that are asked for, each by the first cell that it is behind."""
        cells: dict[str, CellSpec] = {}
        for cell in self._grid.cells:
            for each in self._grid.runs_behind(cell):
                cells.setdefault(each.asked, each)
        return cells

    async def run(
        self, *, convention: MissingAnswerPolicy = "wrong", seed: int = 0, on_progress: OnGridProgress | None = None
    ) -> GridRun:
        """Makes every run; one that is left out, or whose calls fail, says why and stops no other.

        Raises:
            UsageError: as `check`, before anything is asked.
            StoreError: records or folders cannot be read or written.
        """
        self.check()
        cell_runs: dict[str, CellRun] = {}
        scorers: dict[str, Scorer] = {}
        of_folds = {key for cell in self._grid.cells if cell.asked not in self.wanted for key in self._keys(cell)}
        for number, (key, cell) in enumerate(self.wanted.items(), start=1):
            position = GridPosition(cell=cell, number=number, runs=len(self.wanted))
            try:
                task = self._named_task(key, cell)
                run = await aevaluate(
                    task,
                    out=self._out / place_of(configuration_of(task, epochs=1)).name,
                    engine=self._engine,
                    convention=convention,
                    seed=seed,
                    on_progress=None if on_progress is None else partial(on_progress, position),
                )
                cell_runs[key] = CellRun(run=run)
                if key in of_folds:
                    scorers[key] = scorer_of(task, self._engine)
                    for opened in scorers[key].closing:
                        await opened.aclose()
            except (UsageError, CallError) as error:
                cell_runs[key] = CellRun(reason=str(error))
        for cell in self._grid.cells:
            if cell.asked not in cell_runs:
                folds = self._keys(cell)
                runs = [run for key in folds if (run := cell_runs[key].run) is not None]
                lacking = next((each for key in folds if (each := cell_runs[key]).run is None), None)
                cell_runs[cell.asked] = lacking or CellRun(
                    run=self._joined(cell, runs, [scorers[key] for key in folds], convention=convention, seed=seed)
                )
        return GridRun(grid=self._grid, found=cell_runs)

    def _keys(self, cell: CellSpec) -> list[str]:
        """What the runs behind a cell go by."""
        return [each.asked for each in self._grid.runs_behind(cell)]

    def _joined(
        self,
        cell: CellSpec,
        runs: Sequence[Run],
        scorers: Sequence[Scorer],
        *,
        convention: MissingAnswerPolicy,
        seed: int,
    ) -> Run:
        """The run joined over the folds of a cell, whose figures are those over the folds."""
        metrics = [each.metric for each in self._grid.cells if each.asked == cell.asked]
        over, answers = joined_over_folds(scorers, {fold: run.answers for fold, run in enumerate(runs)}, *metrics)
        outcomes = Counter(answer.prediction.outcome for answer in answers)
        left = sum(run.left for run in runs)
        shared = [note for note in runs[0].data_notes if all(note in run.data_notes for run in runs)]
        limit = {**cell.options, **self._options}.get("limit") if "limit" in self._find(cell.task).takes() else None
        limited = "" if limit is None else f"; the limit of {limit:,} is that of each run"
        data_notes = (
            f"{cell.label!r} is {len(runs)} runs, each of a fold and its model{limited}",
            *(f"Each run of {cell.label!r}: {note}" for note in shared),
        )
        notes = (
            *over.notes,
            *data_notes,
            *notes_on(answers, over, convention=convention),
            *([f"{many(left, 'sample')} of {cell.label!r} left: its folds are not finished"] if left else []),
        )
        whole = replace(
            runs[0],
            label=self._names[cell.asked],
            kept=False,
            notes=notes,
            data_notes=data_notes,
            left=left,
            totals={"outcomes": outcomes},
        )
        return whole.scored(answers, figures_of(answers, over, convention=convention, seed=seed))

    def check(self) -> None:
        """Checks every run: what is wrong with one is said before anything is asked.

        Nothing is wrong with a run that has a model which is not set, or lacks its data: it is left out.

        Raises:
            UsageError: there is no such task, model, figure or folder of prompts, or a task does not take its options.
        """
        for _ in self._planned():
            pass

    def _planned(self) -> Iterator[tuple[str, Evaluation | str]]:
        """Each run, made to be planned, by what its cells ask for; or why it is left out."""
        for cell in self.wanted.values():
            self._check(cell)
        metrics: dict[str, Collection[str] | None] = {}
        for key, cell in self.wanted.items():
            try:
                with planning():
                    task = self.task(cell)
                metrics[key] = figure_names(scorer_of(task, self._engine))
            except UsageError as error:
                if not isinstance(error, BadData) and not self._grid.unset(cell.options):
                    raise UsageError(f"The row {cell.label!r} of the grid: {error.message}", hint=error.hint) from error
                metrics[key] = None
                yield key, str(error)
            else:
                self._labels[key] = (task.name, task.label)
                yield key, task
        self._check_metrics(metrics)

    def _check(self, cell: CellSpec) -> None:
        """Checks what needs no data.

        Raises:
            UsageError: there is no such task, it takes no such option, or a folder of prompts does not exist.
        """
        if not cell.task:
            raise UsageError(
                f"Nothing says which task the row {cell.label!r} is of.",
                hint=f"{near('task', cell.options)}Give its table a `task`.",
            )
        takes = self._find(cell.task).takes()
        unknown = next((name for name in cell.options if name != PROMPTS and name not in takes), None)
        if unknown is not None:
            raise UsageError(
                f"The row {cell.label!r} of the grid: the task {cell.task!r} takes no {unknown!r}.",
                hint=f"{near(unknown, {*takes, *GridRow.model_fields})}It takes {', '.join(takes)}, and `{PROMPTS}`, a "
                "folder.",
            )
        with self._prompts_of(cell):
            pass

    def _check_metrics(self, metrics: Mapping[str, Collection[str] | None]) -> None:
        """Checks that some run has the figure of each column; a figure may be of some rows alone, such as a perplexity.

        Args:
            metrics: of each run, by what its cells ask for; None where it is left out.

        Raises:
            UsageError: no run has such a figure.
        """
        cells = defaultdict[str, list[CellSpec]](list)
        for cell in self._grid.cells:
            cells[cell.metric].append(cell)
        for metric, of_metric in cells.items():
            known = [metrics[each.asked] for cell in of_metric for each in self._grid.runs_behind(cell)]
            if all(each is not None and metric not in each for each in known):
                named = sorted({name for each in known for name in each or ()})
                raise UsageError(
                    f"The column {of_metric[0].head!r} of the grid is of {metric!r}, which no run of it has.",
                    hint=f"{near(metric, named)}They have {', '.join(named)}.",
                )

    async def plan(self) -> GridPlan:
        """What all runs would ask and cost, without asking anybody; a call that several make counts once.

        Raises:
            UsageError: as `check`; or the mode is `replay`, which asks nothing.
        """
        reasons: dict[str, str] = {}
        jobs: list[Job[Any, Any, Any]] = []
        for key, task in self._planned():
            if isinstance(task, str):
                reasons[key] = task
            elif as_solver(task.solver).plannable:
                every = [SampleEpoch(sample=sample, epoch=0) for sample in task.samples]
                jobs.append(run_job(task, every, self._engine))
            else:
                reasons[key] = "nobody can tell what a solver will ask that is no chain"
        counted = await plan_of(jobs)
        left_out = _by_reason((self.wanted[key].label, reason) for key, reason in reasons.items())
        return GridPlan(plan=counted, runs=len(self.wanted) - len(reasons), left_out=left_out)

    def task(self, cell: CellSpec) -> Evaluation:
        """The task behind a cell.

        Raises:
            UsageError: there is no such task, it lacks something, or a model of it is not set.
        """
        with self._prompts_of(cell):
            return self._evaluation(cell)

    def _named_task(self, key: str, cell: CellSpec) -> Evaluation:
        """The task behind a cell, under a name that tells its run apart: the row's, where the task's own does not.

        Raises:
            UsageError: as `task`.
        """
        task, labels = self.task(cell), Counter(self._labels.values())
        if task.label and labels[task.name, task.label] < 2:
            return task
        return replace(task, label=f"{task.label}, {self._names[key]}" if task.label else self._names[key])

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Names of the runs, and of those joined over folds, by the labels of their rows.

        Where several of a task have one label, the column stands beside it; else the table, and the number of the row.
        """
        cells = {**self.wanted, **{cell.asked: cell for cell in self._grid.cells if cell.asked not in self.wanted}}
        names: dict[str, str] = {}
        forms: Sequence[Callable[[CellSpec], str]] = (
            lambda cell: cell.label,
            lambda cell: f"{cell.label}, {cell.head}",
            lambda cell: f"{cell.label}, {cell.head}, {cell.table}",
            lambda cell: f"{cell.label}, {cell.head}, {cell.table}, row {cell.row + 1}",
        )
        for form in forms:
            shared = Counter((cell.task, form(cell)) for cell in cells.values())
            for key, cell in cells.items():
                if shared[cell.task, form(cell)] == 1 or form is forms[-1]:
                    names.setdefault(key, form(cell))
        return names

    @contextmanager
    def _prompts_of(self, cell: CellSpec) -> Generator[None]:
        """Within it the prompts of a cell go before the user's own.

        Raises:
            UsageError: their folder does not exist.
        """
        own = [] if PROMPTS not in cell.options else [cell.options[PROMPTS]]
        with overlay_prompts(*own, *PromptLibrary().overlays):
            _ = PromptLibrary()  # it refuses a folder that does not exist
            yield

    def _evaluation(self, cell: CellSpec) -> Evaluation:
        task = self._find(cell.task)
        general = {name: value for name, value in self._options.items() if name in task.takes()}
        own = {name: value for name, value in cell.options.items() if name != PROMPTS}
        options = of_own_fold({**self._grid.with_specs(own), **general})
        for name in NAMED:
            if isinstance(options.get(name), str):
                options[name] = self._named(options[name], as_model=name in CHAT)
        return task(**options, engine=self._engine).evaluation()

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
    published = find_published_table(table)
    return published.value(*row, column=column) if column in published.columns else None


def grid_tables(result: GridRun, *, published: Published = published_figure) -> dict[str, Table]:
    """The tables of a grid, by name: our figures, and in columns of their own the published ones.

    Raises:
        UsageError: the grid names a published table that there is not.
    """
    return {name: _table(name, spec, result, published=published) for name, spec in result.grid.tables.items()}


def write_tables(result: GridRun, folder: Path) -> dict[str, Table]:
    """Writes each table in all forms, and beside it all metrics of its runs as CSV; returns the tables by name.

    Raises:
        UsageError: the grid names a published table that there is not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables = grid_tables(result)
    for name, table in tables.items():
        for form, suffix in SUFFIXES.items():
            (folder / f"{name}.{suffix}").write_text(rendered(table, form), encoding="utf-8")
        whole = rendered(table_of_runs(result.runs_of(name)), "csv")
        (folder / f"{name}-all.csv").write_text(whole, encoding="utf-8")
    return tables


SUFFIXES: Mapping[Format, str] = {"markdown": "md", "csv": "csv", "latex": "tex"}
"""Forms that tables are written in, and the suffixes of their files."""


def _table(name: str, spec: TableSpec, result: GridRun, *, published: Published) -> Table:
    cells = [cell for cell in result.grid.cells if cell.table == name]
    cell_runs = [result.found[cell.asked] for cell in cells]
    beside = [f"{head} †" for head in spec.columns] if spec.published is not None else []
    rows: list[tuple[Cell, ...]] = []
    for number, row in enumerate(spec.rows):
        own = [cell for cell in cells if cell.row == number]
        theirs = _published(row, spec, published) if beside else ()
        rows.append((row.label, *_counts(own, result), *(_figure(cell, result) for cell in own), *theirs))
    reasons = _by_reason((cell.label, each.reason) for cell, each in zip(cells, cell_runs, strict=True) if not each.run)
    marked = ("Columns marked † are published figures, not ours.",) if beside else ()
    return Table(
        title=spec.title,
        columns=("", "samples", "answered", *spec.columns, *beside),
        rows=tuple(rows),
        notes=(*spec.notes, *marked, *reasons, *notes_of(result.runs_of(name))),
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
    runs = {cell_run.run.path: cell_run.run for cell in cells if (cell_run := result.found[cell.asked]).run is not None}
    outcomes: list[Mapping[str, int]] = [run.totals.get("outcomes", {}) for run in runs.values()]
    return _once([sum(each.values()) for each in outcomes]), _once([each.get("answered", 0) for each in outcomes])


def _once(counts: list[int]) -> Cell:
    if len(set(counts)) == 1:
        return counts[0]
    return " / ".join(map(str, counts)) or None


def _published(row: GridRow, spec: TableSpec, published: Published) -> Iterator[Cell]:
    for head in spec.columns:
        if spec.published is None or row.published is None:
            yield None
        else:
            yield published(spec.published, row.published, head)
