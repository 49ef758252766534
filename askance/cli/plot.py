"""`askance plot`: figures of runs for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from askance.cli.completion import figure_names
from askance.cli.options import TaskPlace
from askance.errors import UsageError
from askance.terminal import echo


def plot(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or a folder of such.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write: .pdf, .svg or .png.")],
    kind: Annotated[
        Literal["score", "category", "fold", "cost", "risk", "reliability", "confusion", "ranks", "heatmap"],
        typer.Option(
            help="score: figures with intervals; category: by tag; fold; cost: the main figure against dollars; risk: "
            "risk by coverage; reliability: of confidences; confusion: what was said of each label; ranks: how far up "
            "true entries stand; heatmap: samples by run."
        ),
    ] = "score",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="A figure that score, fold and cost draw; may be repeated. By default the main.",
            autocompletion=figure_names,
        ),
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="A tag that category draws; may be repeated. By default all.")
    ] = None,
    width: Annotated[float, typer.Option(help="Inches; by default one column of a paper.")] = 3.3,
    task: TaskPlace = None,
) -> None:
    """Draw runs as a figure for a paper, several of them in one (extra `plots`).

    Intervals are those of the runs' figures. Nothing is asked and nothing is scored again; equal runs make equal files.
    """
    from askance.evals.report.plot_file import save_plots
    from askance.evals.report.run_plots import plots_of
    from askance.evals.run import Run

    if by and kind != "category":
        raise UsageError("`--by` is for `--kind category`.", hint="Leave it out, or add `--kind category`.")
    if metric and kind not in {"score", "fold", "cost"}:
        raise UsageError(f"`--metric` does not go with `--kind {kind}`.", hint="Leave it out.")
    plots = plots_of(Run.open_all(folders), kind, only=by or metric or (), task=task)
    notes = save_plots(plots, out, width=width)
    for each in plots:
        echo(f"{each.title}{f'. {each.note}' if each.note else ''}")
    echo(f"The figure is in {out}.")
    for note in notes:
        echo(f"· {note}.", err=True)
