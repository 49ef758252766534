"""`askance eval grid`: the runs behind some tables, and the tables."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.columns import Report
from askance.cli.completion import grid_names
from askance.cli.options import Calls, ConventionOption, spelled_out
from askance.cli.process import OK, SOME, Process
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.cli.tally import Tally
    from askance.evals.analysis.grid import Grid, GridPlan, GridPosition, GridRun
    from askance.evals.runner import RunProgress
    from askance.models import Engine


@spelled_out
def grid(
    context: typer.Context,
    calls: Calls,
    file: Annotated[
        str,
        typer.Argument(
            metavar="GRID",
            help="A grid file; or one that ships: pittads, whoops, newyorker, sherlock.",
            autocompletion=grid_names,
        ),
    ],
    data: Annotated[Path | None, typer.Option(help="Folder of the data, for all runs.")] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table; may be repeated. By default all.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME=SPEC", help="What stands for a model of the grid; may be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many images for each run.")] = None,
    ids: Annotated[Path | None, typer.Option(help="The images of these ids: a file, one a line or JSON.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of all that is drawn; by default 0.")] = None,
    convention: ConventionOption = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the runs and the tables.")] = Path("grid"),
    show: Annotated[
        bool, typer.Option("--show", help="Print the grid file, to begin your own with, and stop.")
    ] = False,
) -> None:
    """Run a grid: every run once, in whatever tables it stands; the same command goes on where it stopped."""
    from askance.cli.execute import GOES_ON, execute
    from askance.cli.workspace import open_workspace
    from askance.evals.analysis.grid import GridRunner, grid_file, read_grid
    from askance.evals.task_catalog import find_task
    from askance.prompts import overlay_prompts

    if show:
        echo(grid_file(file).read_text(encoding="utf-8"), end="")
        raise typer.Exit(OK)
    Process.of(context).without_langchain()
    selected = _chosen(read_grid(file), table, model)
    with open_workspace(calls, ledger=out / "budget.db") as work:
        options = {"data": data, "limit": limit, "ids": ids, "seed": seed}
        runner = GridRunner(
            selected, out=out / "runs", engine=work.engine, find=find_task, options=options, config=work.config
        )
        chosen = convention or "wrong"
        with overlay_prompts(*work.library.overlays):
            code = execute(
                work,
                lambda progress: runner.run(convention=chosen, seed=seed or 0, on_progress=progress),
                lambda result: _tables_report(result, out / "tables", work.tally),
                plan=runner.plan,
                planned=lambda plan: _plan_report(plan, work.engine),
                progress=lambda: closing(_GridProgress(work.tally, work.engine)),
                interrupted=lambda _: f"{work.tally}\n{GOES_ON}.",
            )
    raise typer.Exit(code)


def _tables_report(result: GridRun, folder: Path, tally: Tally) -> Report:
    """The tables, which are written first."""
    from askance.evals.analysis.grid import write_tables

    made = write_tables(result, folder)

    def end() -> int:
        echo(f"{many(len(result.runs), 'run')} · {tally}\nThe tables are in {folder}.", err=True)
        return OK if result.whole else SOME

    return Report(None, made.values, ends=end)


def _plan_report(planned: GridPlan, engine: Engine) -> Report:
    """The plan of a grid, and what is not in it."""
    from askance.cli.output import plan_text

    lines = [f"{many(planned.runs, 'run')}."]
    lines += [plan_text(planned.plan, engine)] if planned.runs else []
    return Report(
        None, lambda: [*lines, *(f"· Not in it: {row.rstrip('.')}." for row in planned.left_out)], breaks=False
    )


def _chosen(grid: Grid, tables: list[str] | None, models: list[str] | None) -> Grid:
    """The grid with the tables and the models that are asked for.

    Raises:
        UsageError: it has no such table or model, or a model is not written as `NAME=SPEC`.
    """
    specs: dict[str, str] = {}
    for text in models or []:
        name, equals, spec = text.partition("=")
        if not equals or not spec:
            raise UsageError(f"{text!r} names no model.", hint="Write --model NAME=SPEC.")
        specs[name] = spec
    chosen = grid.only(tables) if tables else grid
    return chosen.with_models(specs) if specs else chosen


class _GridProgress:
    """Says which run of the grid is under way, and how far it is."""

    def __init__(self, tally: Tally, engine: Engine) -> None:
        from askance.cli.progress import EvaluationProgress

        self._make = lambda: EvaluationProgress(tally, engine)
        self._run = self._make()
        self._number = 0

    def __call__(self, place: GridPosition, progress: RunProgress) -> None:

        if place.number != self._number:
            self.close()
            self._number, self._run = place.number, self._make()
            cell = place.cell
            echo(f"{place.number}/{place.runs}  {cell.task}  {cell.label}", err=True)
        self._run(progress)

    def close(self) -> None:
        """Ends the progress of the last run."""
        self._run.close()
