"""`askance data make-questions`: questions about images from their captions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askance.cli.exits import HELP
from askance.cli.negatives import JudgeName
from askance.cli.options import (
    AsJson,
    Budget,
    Concurrency,
    InProtocol,
    Local,
    Mode,
    Plan,
    Prompts,
    Protocol,
    Records,
    Replay,
    Retry,
    Rpm,
    Tpm,
    Yes,
    mode_of,
    outcomes_of,
)
from askance.cli.process import Process

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def made() -> None:
    """Make questions from captions; each goes through gates, and every one that is dropped says why."""


@app.command(epilog=HELP)
def whoops(  # the options of a command
    context_: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder of WHOOPS!: CSV, image folder, parquet or Arrow.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the files and the run; the same command goes on.")
    ],
    llm: Annotated[
        str | None,
        typer.Option(
            help="The model that finds answers and writes questions: a spec such as openai:gpt-4o, or a name."
        ),
    ] = None,
    reader: Annotated[str | None, typer.Option(help="Answers them from the caption; by default the LLM.")] = None,
    blind: Annotated[str | None, typer.Option(help="Answers them without anything; by default the LLM.")] = None,
    judge: Annotated[str | None, typer.Option(help="Holds two answers against each other; by default the LLM.")] = None,
    local: Local = False,
    yes: Yes = False,
    judge_form: Annotated[JudgeName, typer.Option(help="How it is asked: by a rubric, or short: true or false.")] = (
        JudgeName.rubric
    ),
    count: Annotated[int, typer.Option(min=1, help="Answers of a caption at most.")] = 5,
    limit: Annotated[int | None, typer.Option(min=1, help="So many images, the first ones.")] = None,
    ids: Annotated[Path | None, typer.Option(help="The images of a list: lines or JSON.")] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="Folder for a sheet that people check: a page, a CSV file, and the key to it.")
    ] = None,
    sheet_images: Annotated[int, typer.Option(min=1, help="Images of the sheet at most.")] = 100,
    seed: Annotated[int, typer.Option(help="Of what the sheet draws.")] = 0,
    plan: Plan = False,
    replay: Replay = False,
    mode: Mode = None,
    retry: Retry = None,
    budget: Budget = None,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    prompts: Prompts = None,
    protocol: InProtocol = Protocol.auto,
    store: Records = None,
    as_json: AsJson = False,
) -> None:
    """Make questions about the images of WHOOPS! from their captions, as section 4.2 of its paper does.

    Exit code 1 where captions are left: by the budget, or because they have no answer.
    """
    Process.of(context_).without_langchain()
    from askance.cli.questions import Making, make_by
    from askance.cli.workspace import Calls

    asked = Making(
        folder=folder,
        out=out,
        llm=llm,
        reader=reader,
        blind=blind,
        judge=judge,
        judge_form=judge_form.value,
        count=count,
        limit=limit,
        ids=ids,
        sheet=sheet,
        sheet_images=sheet_images,
        seed=seed,
        as_json=as_json,
    )
    calls = Calls(
        mode=mode_of(replay, mode),
        retry=outcomes_of(retry),
        budget=budget,
        concurrency=concurrency,
        rpm=rpm,
        tpm=tpm,
        prompts=prompts,
        paper=protocol is Protocol.paper,
        store=store,
        local=local,
        yes=yes,
        plan=plan,
    )
    raise typer.Exit(make_by(asked, calls))
