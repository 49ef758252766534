"""`askance export`: a run for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from askance.amounts import many
from askance.terminal import echo

ExportFormat = Literal["csv", "xlsx", "jsonl", "parquet", "inspect", "mlflow", "hf"]


def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, of `eval run` or `run --out`.")],
    to: Annotated[
        ExportFormat,
        typer.Option(
            help="csv; xlsx: for Excel (extra `excel`); jsonl; parquet (extra `arrow`); inspect: a log for Inspect; "
            "mlflow: a file store (extra `mlflow`); hf: a folder for `datasets` (extra `hf`)."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File or folder to write; by default RUN.csv and the like, here.")
    ] = None,
) -> None:
    """Write a run for other tools: a row a sample or a picture, or a log with all that was asked and said.

    Tables of figures, as Markdown, CSV or LaTeX, are written by `askance eval table`.
    """
    from askance.evals.exports import export as write
    from askance.evals.run import Run

    run = Run.open(folder)
    what = many(len(run.answers), "picture" if run.of_pictures else "answer")
    echo(f"{write(run, to, out)}: {what}")
