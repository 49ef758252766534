"""`askance blame`: which link of a run's chain its wrong answers come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askance.cli.eval import TaskPlace
from askance.cli.options import AsJson, Budget, Concurrency, Local, ModelCalls, Plan, Records, Replay, Yes
from askance.cli.process import Process


def blame(
    context_: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    other: Annotated[
        Path | None, typer.Option("--with", metavar="OTHER", help="Take links from this run; by default drop them.")
    ] = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="Take links from what the samples say is true of them.")
    ] = False,
    truth_from: Annotated[
        Path | None, typer.Option(help="Take links from this file of JSON lines: `id`, and links by name.")
    ] = None,
    link: Annotated[
        list[str] | None,
        typer.Option("--link", help="A link to try: V, T, IN, UH, T_V, s. May be repeated; by default all."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What tells right from wrong; by default the metric that stands for the task.")
    ] = None,
    vlm: Annotated[
        str | None, typer.Option(help="The model that sees; by default the run's, if its name says who it is.")
    ] = None,
    llm: Annotated[str | None, typer.Option(help="The model that reads words, likewise.")] = None,
    combiner: Annotated[str | None, typer.Option(help="The model that makes T_V, where it is another one.")] = None,
    local: Local = False,
    yes: Yes = False,
    images: Annotated[
        list[str] | None,
        typer.Option("--images", help="Where the run's images are, for chains that answer from the image itself."),
    ] = None,
    plan: Plan = False,
    budget: Budget = None,
    replay: Replay = False,
    concurrency: Concurrency = None,
    store: Records = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default the run's.")] = None,
    seed: Annotated[int, typer.Option(help="Of the intervals.")] = 0,
    task: TaskPlace = None,
    as_json: AsJson = False,
) -> None:
    """Replace one link at a time, ask what follows from it again, and see which link turns wrong answers right."""
    Process.of(context_).without_langchain()
    from askance.cli.trials import BlameOptions, blame_by

    asked = BlameOptions(
        folder=folder,
        other=other,
        truth=truth,
        truth_from=truth_from,
        links=link or [],
        metric=metric,
        models={"vlm": vlm, "llm": llm, "combiner": combiner},
        images=images or [],
        out=out,
        seed=seed,
        task=task,
        as_json=as_json,
    )
    calls = ModelCalls(
        replay=replay,
        plan=plan,
        budget=budget,
        concurrency=concurrency,
        store=store,
        local=local,
        yes=yes,
    )
    raise typer.Exit(blame_by(asked, calls))
