"""`askance judge`: how far a judge of free text can be trusted."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askance.cli.exits import HELP
from askance.cli.options import (
    Budget,
    Concurrency,
    InProtocol,
    Local,
    Mode,
    Plan,
    PromptCalls,
    Prompts,
    Protocol,
    Records,
    Replay,
    Retry,
    Rpm,
    Tpm,
    Yes,
)
from askance.cli.process import Process

app = typer.Typer(help="Judges of free text: how far they can be trusted.", no_args_is_help=True, rich_markup_mode=None)


class FormName(StrEnum):
    """Forms of the question to a judge."""

    rubric = "rubric"
    short = "short"


@app.callback()
def judged() -> None:
    """What there is to say of judges."""


@app.command("card", epilog=HELP)
def card(
    context_: typer.Context,
    labels: Annotated[
        Path,
        typer.Option(
            help="What people say: CSV or JSONL with reference, candidate, and verdict or votes; question, group, id."
        ),
    ],
    judge: Annotated[
        list[str] | None,
        typer.Option(help="The judge: a spec such as openai:gpt-4o, or a name from askance.toml; several are a panel."),
    ] = None,
    local: Local = False,
    yes: Yes = False,
    form: Annotated[
        FormName, typer.Option(help="rubric compares first and may be unclear; short asks True or False.")
    ] = FormName.rubric,
    draws: Annotated[int, typer.Option(min=1, help="How often each pair is asked about, for self-consistency.")] = 3,
    swaps: Annotated[
        bool, typer.Option("--swaps/--no-swaps", help="Ask once more with the texts in each other's place.")
    ] = True,
    question: Annotated[str | None, typer.Option(help="What the texts answer, where a pair does not say so.")] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="A run that this judge has scored: its rate, corrected.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the bootstraps.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; tasks take it as the card.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Also write the card as a page, with plots.")] = None,
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
) -> None:
    """Hold a judge against people's labels: how often it is right, beyond chance, and how steady it is."""
    Process.of(context_).without_langchain()
    from askance.cli.judge_card import Carding, card_by

    asked = Carding(
        labels=labels,
        judge=judge or [],
        form=form.value,
        draws=draws,
        swaps=swaps,
        question=question,
        run=run,
        seed=seed,
        as_json=as_json,
        html=html,
    )
    calls = PromptCalls(
        replay=replay,
        mode=mode,
        retry=retry,
        budget=budget,
        concurrency=concurrency,
        rpm=rpm,
        tpm=tpm,
        prompts=prompts,
        protocol=protocol,
        store=store,
        local=local,
        yes=yes,
        plan=plan,
    )
    raise typer.Exit(card_by(asked, calls))
