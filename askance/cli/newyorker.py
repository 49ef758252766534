"""`askance newyorker`: what only the suite on the New Yorker caption contest needs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askance.amounts import many
from askance.cli.process import HELP, Process

app = typer.Typer(
    help="The New Yorker caption contest: the leaderboard's file.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def newyorker() -> None:
    """Commands about the New Yorker caption contest."""


class MissingAnswer(StrEnum):
    """What stands for a sample without an answer."""

    random = "random"
    last = "last"


@app.command(epilog=HELP)
def submit(
    context_: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run of one of the three tasks.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write; by default TASK_predictions.json, here.")
    ] = None,
    missing: Annotated[
        MissingAnswer | None,
        typer.Option(
            help="What stands for a sample without an answer: a random option, as the authors drew, or the last one, "
            "as their leaderboard script has it. Without it, a run that lacks an answer is refused."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of random options.")] = 0,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the leaderboard's task: the run must answer exactly its items (830, or 664)."),
    ] = None,
) -> None:
    """Write a run's answers as the leaderboard and the official scorer take them: {instance_id: letter}."""
    Process.of(context_).without_langchain()
    from askance.evals.newyorker import leaderboard_ids, submission_of
    from askance.evals.run import Run
    from askance.terminal import printable

    run = Run.open(folder)
    ids = None if data is None else leaderboard_ids(data, run.task)
    made = submission_of(run, missing=None if missing is None else missing.value, ids=ids, seed=seed)
    file = made.write(out or Path(f"{run.task.rpartition('/')[2]}_predictions.json"))
    rule = {"last": "the last option", "random": "drawn at random"}
    filled = f", {len(made.filled):,} of them {rule[missing.value]}" if missing and made.filled else ""
    print(printable(f"{file}: {many(len(made.answers), 'answer')}{filled}"))
