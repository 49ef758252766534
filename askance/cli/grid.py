"""`askance eval grid`: the runs behind some tables, and the tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.eval import ConventionOption, app
from askance.cli.options import Calls, spelled_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.cli.tally import Tally
    from askance.evals.evaluation import Progress
    from askance.evals.grid import Grid
    from askance.evals.gridded import GridPlan, GridRun, Place
    from askance.evals.tables import Format
    from askance.models import Engine

FORMATS: Mapping[Format, str] = {"markdown": "md", "csv": "csv", "latex": "tex"}
"""Forms that tables are written in, and the suffixes of their files."""


@app.command()
@spelled_out
def grid(
    context: typer.Context,
    calls: Calls,
    file: Annotated[str, typer.Argument(metavar="GRID", help="A grid file; or pittads, the grid that ships.")],
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
    out: Annotated[Path, typer.Option(help="Folder for the runs and the tables.")] = Path("grid"),
    show: Annotated[
        bool, typer.Option("--show", help="Print the grid file, to begin your own with, and stop.")
    ] = False,
) -> None:
    """Run a grid: every run once, in whatever tables it stands; the same command goes on where it stopped."""
    import asyncio
    import sys

    from askance.cli.exits import INTERRUPTED, OK, SOME
    from askance.cli.process import Process
    from askance.evals.catalog import find_task
    from askance.evals.grid import read_grid
    from askance.evals.gridded import GridRunner
    from askance.prompts import overlay_prompts
    from askance.terminal import printable

    path = _place(file)
    if show:
        print(printable(path.read_text(encoding="utf-8")), end="")
        raise typer.Exit(OK)
    Process.of(context).without_langchain()
    asked = _chosen(read_grid(path), table, model)
    with calls.open(ledger=out / "budget.db") as work:
        options = {"data": data, "limit": limit, "ids": ids, "seed": seed}
        runner = GridRunner(
            asked, out=out / "runs", engine=work.engine, find=find_task, options=options, config=work.config
        )
        if calls.plan:
            with overlay_prompts(*work.library.overlays):
                print(_planned(asyncio.run(runner.plan()), work.engine))
            raise typer.Exit(OK)
        telling = _Telling(work.tally, work.engine)
        chosen = convention.value if convention else "wrong"
        try:
            with overlay_prompts(*work.library.overlays):
                result = asyncio.run(runner.run(convention=chosen, seed=seed or 0, told=telling))
        except KeyboardInterrupt:
            telling.close()
            print(f"{work.tally}\nInterrupted. The same command goes on where this one stopped.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            telling.close()
    _write(result, out / "tables")
    print(f"{many(len(result.runs), 'run')} · {work.tally}\nThe tables are in {out / 'tables'}.", file=sys.stderr)
    raise typer.Exit(OK if result.whole else SOME)


def _planned(found: GridPlan, engine: Engine) -> str:
    """The plan of a grid, and what is not in it."""
    from askance.cli.output import plan_text
    from askance.terminal import printable

    lines = [f"{many(found.runs, 'run')}."]
    lines += [plan_text(found.plan, engine)] if found.runs else []
    return printable("\n".join([*lines, *(f"· Not in it: {row.rstrip('.')}." for row in found.left_out)]))


def _place(file: str) -> Path:
    """A grid of the package by name, or a file."""
    packaged = Path(__file__).parents[1] / "evals" / file / "grid.yaml"
    return packaged if file.isidentifier() and packaged.is_file() else Path(file)


def _chosen(found: Grid, tables: list[str] | None, models: list[str] | None) -> Grid:
    """The grid with the tables and the models that are asked for.

    Raises:
        UsageError: it has no such table or model, or a model is not written as `NAME=SPEC`.
    """
    from askance.errors import UsageError

    specs: dict[str, str] = {}
    for text in models or []:
        name, given, spec = text.partition("=")
        if not given or not spec:
            raise UsageError(f"{text!r} names no model.", hint="Write --model NAME=SPEC.")
        specs[name] = spec
    chosen = found.only(tables) if tables else found
    return chosen.with_models(specs) if specs else chosen


def _write(result: GridRun, folder: Path) -> None:
    """Writes each table in all forms, beside it all metrics of its runs, and prints it."""
    from askance.evals.gridded import runs_of, tables_of
    from askance.evals.tables import rendered, table_of_runs

    folder.mkdir(parents=True, exist_ok=True)
    for name, made in tables_of(result).items():
        for form, suffix in FORMATS.items():
            (folder / f"{name}.{suffix}").write_text(rendered(made, form), encoding="utf-8")
        whole = rendered(table_of_runs(runs_of(result, name)), "csv")
        (folder / f"{name}-all.csv").write_text(whole, encoding="utf-8")
        print(rendered(made, "markdown"))


class _Telling:
    """Says which run is under way; on a terminal, where it stands."""

    def __init__(self, tally: Tally, engine: Engine) -> None:
        from askance.cli.evaluation import Watching

        self._make = lambda: Watching(tally, engine)
        self._watching = self._make()
        self._number = 0

    def __call__(self, place: Place, progress: Progress) -> None:
        import sys

        from askance.terminal import printable

        if place.number != self._number:
            self.close()
            self._number, self._watching = place.number, self._make()
            cell = place.cell
            print(printable(f"{place.number}/{place.runs}  {cell.task}  {cell.label}"), file=sys.stderr)
        self._watching(progress)

    def close(self) -> None:
        """Takes what is drawn away."""
        self._watching.close()
