"""`askance run`: pictures through a chain."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askance.cli.alone import Process


class ChainName(StrEnum):
    """The chains that ship."""

    verbalize = "verbalize"
    atypicality = "atypicality"
    action_reason = "action-reason"
    end_to_end = "end-to-end"
    explain = "explain"
    identify = "identify"


class ModeName(StrEnum):
    """How answers on record are used."""

    live = "live"
    auto = "auto"
    replay = "replay"
    refresh = "refresh"


class Protocol(StrEnum):
    """The form in which answers are asked for."""

    auto = "auto"
    paper = "paper"


class Choose(StrEnum):
    """How many options are chosen."""

    multi = "multi"
    single = "single"


class PolicyName(StrEnum):
    """How pictures are prepared."""

    clean = "clean"
    original = "original"


Local = Annotated[
    bool,
    typer.Option(
        "--local", help="A small open model on this machine for roles that are given no other; asks before a download."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree to the download of --local beforehand.")]


def run(
    context_: typer.Context,
    chain: Annotated[ChainName, typer.Argument(help="What to find out of each image.", show_choices=True)],
    images: Annotated[list[str], typer.Argument(help="Files, folders and patterns.")],
    vlm: Annotated[
        str | None, typer.Option(help="The model that sees: a spec such as openai:gpt-4o, or a name from askance.toml.")
    ] = None,
    llm: Annotated[str | None, typer.Option(help="The model that reads words; by default the VLM.")] = None,
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
    replay: Annotated[bool, typer.Option("--replay", help="Short for --mode replay: nothing is asked.")] = False,
    mode: Annotated[
        ModeName | None, typer.Option(help="auto: answers on record, else ask. live and refresh ask always.")
    ] = None,
    retry: Annotated[
        str | None, typer.Option(help="Ask again for answers on record that are: invalid,refused,filtered,truncated.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what would be asked and what that would cost; ask nothing.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            help="The most that the run may spend, all starts together: 5.00 (dollars), 20000tokens, 100calls."
        ),
    ] = None,
    batch: Annotated[
        bool,
        typer.Option("--batch", help="Ask by the provider's batch interface: half the price, an answer within a day."),
    ] = False,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Calls to one endpoint at a time; by default as many as it takes well.")
    ] = None,
    rpm: Annotated[
        float | None, typer.Option(help="Calls to one endpoint per minute; by default as many as it lets through.")
    ] = None,
    tpm: Annotated[float | None, typer.Option(help="Tokens per minute, in and out, likewise.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="Folder with prompts of your own; by default ./prompts.")] = None,
    protocol: Annotated[Protocol, typer.Option(help="paper asks in the text form of the paper.")] = Protocol.auto,
    image_policy: Annotated[
        PolicyName | None,
        typer.Option(help="clean takes metadata out of what is sent; original sends files as they are."),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of the records; by default .askance of the project.")
    ] = None,
) -> None:
    """Read images: what is in them, what they say, what is odd, and which of the options they argue for."""
    process = Process.of(context_)
    process.without_langchain()
    from askance.cli.job import Job, run_job

    job = Job(
        chain=chain.value,
        images=images,
        vlm=vlm,
        llm=llm,
        local=local,
        yes=yes,
        options=options,
        context=context,
        statement=statement,
        choose=choose.value if choose else None,
        count=count,
        step_by_step=step_by_step or None,
        as_json=as_json,
        out=out,
        html=html,
        mode=mode_of(replay, mode),
        retry=outcomes_of(retry),
        plan=plan,
        budget=budget,
        batch=batch,
        concurrency=concurrency,
        rpm=rpm,
        tpm=tpm,
        prompts=prompts,
        paper=protocol is Protocol.paper,
        image_policy=image_policy.value if image_policy else None,
        store=store,
    )
    raise typer.Exit(run_job(job, ready=process.settled))


def mode_of(replay: bool, mode: ModeName | None) -> str:
    """The mode that two options name.

    Raises:
        UsageError: they contradict each other.
    """
    from askance.errors import UsageError

    if replay and mode not in {None, ModeName.replay}:
        raise UsageError(
            f"--replay and --mode {mode.value if mode else ''} contradict each other.", hint="Leave one out."
        )
    return "replay" if replay else (mode or ModeName.auto).value


def outcomes_of(names: str | None) -> frozenset[str]:
    """Outcomes in a text with commas between them."""
    return frozenset(name.strip() for name in names.split(",") if name.strip()) if names else frozenset()
