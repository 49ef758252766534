"""`askance run`: pictures through a chain."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askance.cli.options import (
    Batch,
    Budget,
    Concurrency,
    InProtocol,
    Llm,
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
    Vlm,
    Yes,
    mode_of,
    outcomes_of,
)
from askance.cli.process import Process


class ChainName(StrEnum):
    """The chains that ship."""

    verbalize = "verbalize"
    atypicality = "atypicality"
    action_reason = "action-reason"
    end_to_end = "end-to-end"
    explain = "explain"
    identify = "identify"


class Choose(StrEnum):
    """How many options are chosen."""

    multi = "multi"
    single = "single"


class PolicyName(StrEnum):
    """How pictures are prepared."""

    clean = "clean"
    original = "original"


def run(
    context_: typer.Context,
    chain: Annotated[ChainName, typer.Argument(help="What to find out of each image.", show_choices=True)],
    images: Annotated[list[str], typer.Argument(help="Files, folders and patterns.")],
    vlm: Vlm = None,
    llm: Llm = None,
    local: Local = False,
    yes: Yes = False,
    options: Annotated[
        Path | None,
        typer.Option(help="What can be chosen from: one a line, a JSON list, or a JSON map by image name."),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            help="What the description is made of: T_V, T_V-UH, V+T, IN, UH, V+T+IN, V+T+IN+UH. "
            "For explain and identify also caption, or I (the default): the image itself."
        ),
    ] = None,
    statement: Annotated[
        bool | None,
        typer.Option(
            "--statement/--no-statement", help="Whether the atypicality statement stands beside the description."
        ),
    ] = None,
    choose: Annotated[
        Choose | None, typer.Option(help="multi (the default): the best options in order; single: the one best.")
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="How many options `multi` asks for; by default 3.")] = None,
    step_by_step: Annotated[bool, typer.Option("--step-by-step", help="End to end: reason before the answer.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each image.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder that keeps the run: lines, records, totals.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Also write a page: every image with what was said of it, every prompt and reply."),
    ] = None,
    replay: Replay = False,
    mode: Mode = None,
    retry: Retry = None,
    plan: Plan = False,
    budget: Budget = None,
    batch: Batch = False,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    prompts: Prompts = None,
    protocol: InProtocol = Protocol.auto,
    image_policy: Annotated[
        PolicyName | None,
        typer.Option(help="clean takes metadata out of what is sent; original sends files as they are."),
    ] = None,
    store: Records = None,
) -> None:
    """Read images: what is in them, what they say, what is odd, and which of the options they argue for."""
    process = Process.of(context_)
    process.without_langchain()
    from askance.cli.job import Job, run_job
    from askance.cli.workspace import Calls

    job = Job(
        chain=chain.value,
        images=images,
        vlm=vlm,
        llm=llm,
        options=options,
        context=context,
        statement=statement,
        choose=choose.value if choose else None,
        count=count,
        step_by_step=step_by_step or None,
        as_json=as_json,
        out=out,
        html=html,
        batch=batch,
    )
    calls = Calls(
        mode=mode_of(replay, mode),
        retry=outcomes_of(retry),
        plan=plan,
        budget=budget,
        concurrency=concurrency,
        rpm=rpm,
        tpm=tpm,
        prompts=prompts,
        paper=protocol is Protocol.paper,
        image_policy=image_policy.value if image_policy else None,
        store=store,
        local=local,
        yes=yes,
    )
    raise typer.Exit(run_job(job, calls, ready=process.settled))
