"""`askance negatives`: writing hard negatives, auditing them, and putting them before people."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from askance.cli.exits import HELP
from askance.cli.options import (
    AsJson,
    Budget,
    Concurrency,
    InProtocol,
    Local,
    Mode,
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

app = typer.Typer(
    help="Hard negatives: write them for true statements, audit them, put them before people.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class DomainName(StrEnum):
    """What the statements are."""

    ads = "ads"
    explanations = "explanations"


class JudgeName(StrEnum):
    """Prompts of the judge."""

    rubric = "rubric"
    short = "short"


Sidecar = Annotated[
    Path | None,
    typer.Option(help="What is known of each negative; by default negatives.jsonl beside the file, where it is there."),
]


@app.command(epilog=HELP)
def generate(
    context_: typer.Context,
    data: Annotated[
        Path,
        typer.Argument(
            help="What is true: a file of PittAds or of its shape, a folder with one, or a folder of WHOOPS!."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the files, and for the run; the same command finishes it.")],
    llm: Annotated[
        str | None,
        typer.Option(help="The model that writes: a spec such as openai:gpt-4o, or a name; random needs none."),
    ] = None,
    local: Local = False,
    yes: Yes = False,
    domain: Annotated[
        DomainName | None,
        typer.Option(
            help="ads: action-reasons. explanations: of what is unusual. "
            "By default explanations for a folder of WHOOPS!, else ads."
        ),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="Some kinds alone, with commas. Ads: action,reason,adjective,object,statement. "
            "Explanations: verb,object,adjective,causal,random."
        ),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="True statements of an image that negatives are made from.")] = 3,
    count: Annotated[int, typer.Option(min=1, help="Negatives of each kind for each true statement.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the order of options, and of what `random` draws.")] = 0,
    draw: Annotated[int, typer.Option(min=0, help="Another number asks all anew, for other negatives.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="So many images, the first ones.")] = None,
    ids: Annotated[Path | None, typer.Option(help="The images of a list: lines, JSON or CSV.")] = None,
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
    """Write hard negatives for true statements, one kind a call, into files of the authors' shape."""
    Process.of(context_).without_langchain()
    from askance.agents.negatives import kinds_of
    from askance.cli.hard_negatives import generate_by, read_statements
    from askance.evals.negatives import Recipe

    told, sources = read_statements(data, None if domain is None else domain.value, ids=ids, limit=limit)
    named = None if kinds is None else [kind.strip() for kind in kinds.split(",") if kind.strip()]
    recipe = Recipe(domain=told, kinds=kinds_of(told, named), most=most, count=count, seed=seed, draw=draw)
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
    )
    raise typer.Exit(generate_by(sources, llm, out=out, recipe=recipe, calls=calls, as_json=as_json))


@app.command(epilog=HELP)
def audit(
    context_: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file of options: [true statements, options] by image.")],
    judge: Annotated[
        str | None, typer.Option(help="A model that says whether a negative means the same as a true statement.")
    ] = None,
    judge_form: Annotated[JudgeName, typer.Option(help="How it is asked: by a rubric, or short: true or false.")] = (
        JudgeName.rubric
    ),
    question: Annotated[str | None, typer.Option(help="What the statements answer, as the judge is told.")] = None,
    blind: Annotated[
        str | None, typer.Option(help="A model that chooses among the options without knowing the image.")
    ] = None,
    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="A small open model on this machine judges, and chooses blindly, where no other does; "
            "asks before a download.",
        ),
    ] = False,
    yes: Yes = False,
    orders: Annotated[int, typer.Option(min=1, help="Orders of the options in which it is asked.")] = 4,
    embedder: Annotated[
        str | None, typer.Option(help="How similar a negative is to its source: st:FOLDER, a sentence encoder.")
    ] = None,
    wording: Annotated[
        bool, typer.Option("--wording/--no-wording", help="Whether classifiers look for what wording gives away.")
    ] = True,
    rules: Annotated[Path | None, typer.Option(help="What is dropped and flagged: JSON, as `rules` prints it.")] = None,
    seed: Annotated[int, typer.Option(help="Of orders, folds and bootstraps.")] = 0,
    sidecar: Sidecar = None,
    apply: Annotated[
        Path | None, typer.Option("--apply", help="Write the options without what is dropped to this file.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the audit as JSON to this file, every column.")] = None,
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
    """Audit negatives: are they wrong, do they change what they say, can they be told without the image?

    Exit code 1 where something should be dropped and --apply is not given.
    """
    Process.of(context_).without_langchain()
    from askance.cli.audit import Auditing, audit_by

    asked = Auditing(
        file=file,
        judge=judge,
        judge_form=judge_form.value,
        question=question,
        blind=blind,
        orders=orders,
        embedder=embedder,
        wording=wording,
        rules=rules,
        seed=seed,
        sidecar=sidecar,
        apply=apply,
        report=report,
        as_json=as_json,
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
    )
    raise typer.Exit(audit_by(asked, calls))


@app.command()
def rules() -> None:
    """Print the rules and thresholds of audits as JSON, to be edited and given to --rules."""
    import json

    from askance.evals.negatives import Rules

    print(json.dumps(Rules().form(), indent=2))


@app.command()
def sample(
    context_: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="A file of options to draw images from.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for sheet.html, sheet.csv and key.json.")] = None,
    images: Annotated[Path | None, typer.Option(help="Folder with the images, in any layout.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Images of the sheet.")] = 100,
    seed: Annotated[int, typer.Option(help="Of what is drawn and of every order; reading: of the bootstraps.")] = 0,
    question: Annotated[str | None, typer.Option(help="Asked of every statement.")] = None,
    sidecar: Sidecar = None,
    key: Annotated[Path | None, typer.Option(help="Read answers back: the sheet's key.json.")] = None,
    answers: Annotated[
        list[Path] | None, typer.Option(help="Read answers back: a filled CSV file; once for each rater.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a blind validation sheet for people, or read their answers back: share of true negatives, agreement."""
    Process.of(context_).without_langchain()
    from askance.cli.audit import read_back, write_by
    from askance.errors import UsageError

    if key is not None or answers:
        if file is not None or key is None or not answers:
            raise UsageError(
                "Answers are read back with --key and --answers alone.",
                hint="askance negatives sample --key sheet/key.json --answers ann.csv --answers ben.csv",
            )
        read_back(key, answers, seed=seed, as_json=as_json)
        return
    if file is None or out is None or images is None:
        raise UsageError(
            "A sheet needs a file of options, --images and --out.",
            hint="askance negatives sample FILE --images DIR --out sheet; with --key and --answers it is read back.",
        )
    write_by(file, images, out, count=count, seed=seed, question=question, sidecar=sidecar, as_json=as_json)
