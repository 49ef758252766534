"""`askance run`: pictures through a chain."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askance.cli.options import Batch, Llm, PromptCalls, Vlm, spelled_out
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


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of one `askance run` beside those of its calls; None is not given."""

    chain: Annotated[ChainName, typer.Argument(help="What to find out of each image.", show_choices=True)]
    images: Annotated[list[str], typer.Argument(help="Files, folders and patterns.")]
    vlm: Vlm = None
    llm: Llm = None
    options: Annotated[
        Path | None,
        typer.Option(help="What can be chosen from: one a line, a JSON list, or a JSON map by image name."),
    ] = None
    context: Annotated[
        str | None,
        typer.Option(
            help="What the description is made of: T_V, T_V-UH, V+T, IN, UH, V+T+IN, V+T+IN+UH. "
            "For explain and identify also caption, or I (the default): the image itself."
        ),
    ] = None
    statement: Annotated[
        bool | None,
        typer.Option(
            "--statement/--no-statement", help="Whether the atypicality statement stands beside the description."
        ),
    ] = None
    choose: Annotated[
        Choose | None, typer.Option(help="multi (the default): the best options in order; single: the one best.")
    ] = None
    count: Annotated[int | None, typer.Option(min=1, help="How many options `multi` asks for; by default 3.")] = None
    step_by_step: Annotated[
        bool | None, typer.Option("--step-by-step", help="End to end: reason before the answer.")
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each image.")] = False
    out: Annotated[Path | None, typer.Option(help="Folder that keeps the run: lines, records, totals.")] = None
    html: Annotated[
        Path | None,
        typer.Option(help="Also write a page: every image with what was said of it, every prompt and reply."),
    ] = None
    batch: Batch = False
    image_policy: Annotated[
        PolicyName | None,
        typer.Option(help="clean takes metadata out of what is sent; original sends files as they are."),
    ] = None


@spelled_out
def run(context_: typer.Context, asked: RunOptions, calls: PromptCalls) -> None:
    """Read images: what is in them, what they say, what is odd, and which of the options they argue for."""
    process = Process.of(context_)
    process.without_langchain()
    from askance.cli.job import run_job

    raise typer.Exit(run_job(asked, calls, ready=process.settled))
