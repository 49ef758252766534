"""`askance negatives`: writing hard negatives, auditing them, and putting them before people."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from askance.amounts import many
from askance.cli.columns import Report
from askance.cli.group import command_group
from askance.cli.options import AsJson, JudgeForm, PromptCalls, spelled_out
from askance.cli.process import HELP, OK, SOME
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.agents.negative_writer import Domain
    from askance.cli.tally import Tally
    from askance.evals.negatives import (
        Audit,
        AuditOptions,
        NegativesRun,
        OptionSet,
        PictureStatements,
        Recipe,
        TrueStatements,
    )
    from askance.images import Image
    from askance.workspace import Workspace

app = command_group("Hard negatives: write them for true statements, audit them, put them before people.")


Sidecar = Annotated[
    Path | None,
    typer.Option(help="What is known of each negative; by default negatives.jsonl beside the file, where it is there."),
]


# --- generate ---


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    """The options of one `askance negatives generate` beside those of its calls; None is not given."""

    data: Annotated[
        Path,
        typer.Argument(
            help="What is true: a file of PittAds or of its shape, a folder with one, or a folder of WHOOPS!. "
            "Or a folder of pictures: what the VLM says is unusual about each is taken for true."
        ),
    ]
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the files, and for the run; the same command finishes it.")
    ]
    llm: Annotated[
        str | None,
        typer.Option(help="The model that writes: a spec such as openai:gpt-4o, or a name; random needs none."),
    ] = None
    vlm: Annotated[
        str | None, typer.Option(help="The model that says what is unusual about the pictures of a folder.")
    ] = None
    domain: Annotated[
        Literal["ads", "explanations"] | None,
        typer.Option(
            help="ads: action-reasons. explanations: of what is unusual. "
            "By default explanations for a folder of WHOOPS! or of pictures, else ads."
        ),
    ] = None
    kinds: Annotated[
        str | None,
        typer.Option(
            help="Some kinds alone, with commas. Ads: action,reason,adjective,object,statement. "
            "Explanations: verb,object,adjective,causal,random."
        ),
    ] = None
    most: Annotated[int, typer.Option(min=1, help="True statements of an image that negatives are made from.")] = 3
    count: Annotated[int, typer.Option(min=1, help="Negatives of each kind for each true statement.")] = 1
    seed: Annotated[int, typer.Option(help="Of the order of options, and of what `random` draws.")] = 0
    draw: Annotated[int, typer.Option(min=0, help="Another number asks all anew, for other negatives.")] = 0
    limit: Annotated[int | None, typer.Option(min=1, help="So many images, the first ones.")] = None
    ids: Annotated[Path | None, typer.Option(help="The images of a list: lines, JSON or CSV.")] = None
    as_json: AsJson = False


@app.command(epilog=HELP)
@spelled_out
def generate(options: GenerateOptions, calls: PromptCalls) -> None:
    """Write hard negatives for true statements, one kind a call, into files of the authors' shape."""
    from askance.agents.negative_writer import kinds_of
    from askance.cli.execute import execute
    from askance.cli.workspace import open_workspace
    from askance.evals.job import plan_of
    from askance.evals.negatives import Recipe, agenerate, negative_jobs
    from askance.evals.run_format import LEDGER

    domain, of_pictures = _source(options)
    named = None if options.kinds is None else [kind.strip() for kind in options.kinds.split(",") if kind.strip()]
    recipe = Recipe(
        domain=domain,
        kinds=kinds_of(domain, named),
        most=options.most,
        count=options.count,
        seed=options.seed,
        draw=options.draw,
    )
    sources = () if of_pictures else _true_statements(options)
    with open_workspace(calls, ledger=options.out / LEDGER) as work:
        sources = _pictures(options, work) if of_pictures else sources
        seeing = options.vlm or work.default_model("vlm")
        name = _writer(options.llm or (work.default_model("llm") or seeing if of_pictures else None), work, recipe)
        model = None if name is None else work.model(name)
        code = execute(
            work,
            lambda progress: agenerate(
                sources,
                model,
                out=options.out,
                recipe=recipe,
                prompts=work.library,
                on_progress=progress.count,
            ),
            lambda run: _report(run, sources, work.tally),
            plan=lambda: plan_of(negative_jobs(sources, model, recipe=recipe, prompts=work.library)),
            as_json=options.as_json,
            progress=lambda: work.progress("calls"),
        )
    raise typer.Exit(code)


def _source(options: GenerateOptions) -> tuple[Domain, bool]:
    """What the statements of a file or folder are, and whether it is a folder of pictures, with no statement in it.

    Raises:
        UsageError: the statements are said to be those of ads, and are not.
    """
    from askance.evals.pittads import has_statements
    from askance.evals.whoops import has_rows
    from askance.images import SUFFIXES

    data, domain = options.data, options.domain
    rows = has_rows(data)
    pictures = not rows and data.is_dir() and not has_statements(data)
    pictures = pictures and any(each.suffix.lower() in SUFFIXES for each in data.iterdir())
    if options.vlm is not None and not pictures:
        raise UsageError(
            f"{str(data)!r} says what is true by itself, so there is nothing for --vlm to say.",
            hint="Leave --vlm out; --llm names the model that writes the negatives.",
        )
    if not rows and not pictures:
        return domain or "ads", False
    if domain == "ads":
        content = "explanations of WHOOPS!, and no ads" if rows else "pictures, and nothing says what they argue for"
        raise UsageError(
            f"The folder {str(data)!r} holds {content}.", hint="Leave --domain out, or write --domain explanations."
        )
    return "explanations", pictures


def _true_statements(options: GenerateOptions) -> Sequence[TrueStatements]:
    """What is true of each image of a file or folder.

    Raises:
        BadData: there is no such file, or nothing in it is true of an image.
    """
    from askance.evals.negatives import read_statements
    from askance.evals.pittads import statements_in
    from askance.evals.whoops import Whoops, has_rows
    from askance.evals.whoops.explain_choice import statements

    data = options.data
    if has_rows(data):
        return statements(Whoops.open(data, ids=options.ids))[: options.limit]
    return read_statements(statements_in(data) if data.is_dir() else data, ids=options.ids, limit=options.limit)


def _pictures(options: GenerateOptions, work: Workspace) -> PictureStatements:
    """The pictures of a folder, and the chain that is asked what is unusual about them.

    Raises:
        UsageError: no model is named that sees, or a picture of the list is not there.
    """
    from askance.chains import explain
    from askance.cli.inputs import find_pictures
    from askance.evals.negatives import PictureStatements
    from askance.evals.suite.selection import read_ids
    from askance.images import Image

    paths = {path.name: path for path in find_pictures([str(options.data)])}
    names = list(paths) if options.ids is None else list(read_ids(options.ids))
    if missing := [name for name in names if name not in paths]:
        raise UsageError(
            f"{len(missing):,} of the listed images are not in {str(options.data)!r}, such as {missing[0]!r}.",
            hint="Mend the list; it has names of files, with their endings.",
        )
    vlm = options.vlm or work.default_model("vlm")
    if vlm is None:
        raise UsageError(
            f"No model is named that says what is unusual about the pictures of {str(options.data)!r}.",
            hint="On this machine: --local. An API: --vlm openai:gpt-4o. Or set `vlm` in askance.toml.",
        )
    images = {name: Image.from_path(paths[name], name=name) for name in names[: options.limit]}
    return PictureStatements(images=images, chain=explain(work.model(vlm), prompts=work.library))


def _writer(llm: str | None, work: Workspace, recipe: Recipe) -> str | None:
    """The name of the model that writes; None where none is named and none is asked.

    Raises:
        UsageError: one is needed, and none is named.
    """
    drawn = recipe.kinds == ("random",)
    name = llm or (work.config.llm if drawn else work.default_model("llm"))
    if name is None and not drawn:
        raise UsageError(
            "No model is named that writes the negatives.",
            hint="On this machine: --local. An API: --llm openai:gpt-4o. Or set `llm` in askance.toml; --kinds random "
            "asks none.",
        )
    return name


def _print_statements(pictures: PictureStatements, run: NegativesRun) -> None:
    """Says whose word is taken for true, and how many pictures have none."""
    from askance.evals.negatives.picture_statements import STATEMENTS

    models = ", ".join(dict.fromkeys(str(node.model.id) for node in pictures.chain.nodes))
    lacking = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(run.unread.items()))
    read = len(pictures) - run.unread.total()
    echo(
        f"What is true of {many(read, 'picture')} was said by {models}, and checked by nobody: "
        f"{run.folder / STATEMENTS}.",
        err=True,
    )
    if lacking:
        echo(f"No statement for {many(run.unread.total(), 'picture')}: {lacking}.", err=True)


def _report(run: NegativesRun, sources: Sequence[TrueStatements] | PictureStatements, tally: Tally) -> Report:
    """What was written."""
    form = {**asdict(run), "folder": str(run.folder), "outcomes": dict(run.outcomes), "unread": dict(run.unread)}
    parts = [f"{run.folder / name}  {many(images, 'image')}" for name, images in run.files.items()]
    return Report(lambda: form, lambda: parts, breaks=False, ends=lambda: _end(run, sources, tally))


def _end(run: NegativesRun, sources: Sequence[TrueStatements] | PictureStatements, tally: Tally) -> int:
    """Says what was asked, and what is left; returns the exit code."""
    from askance.evals.negatives import PictureStatements

    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(run.outcomes.items()))
    echo(
        f"{run.done:,} of {run.total:,} calls: {counts or 'none'}; {many(run.negatives, 'different negative')}.\n"
        f"{tally}",
        err=True,
    )
    if run.left:
        echo(
            f"The budget had nothing left for {many(run.left, 'call')}. The same command with a "
            "larger --budget goes on.",
            err=True,
        )
    elif not run.complete:
        echo("What has no answer is asked again by the same command with --retry.", err=True)
    if isinstance(sources, PictureStatements):
        _print_statements(sources, run)
    return OK if run.complete else SOME


# --- audit ---


@dataclass(frozen=True, kw_only=True)
class AuditFileOptions:
    """The options of one `askance negatives audit` beside those of its calls; None is not given."""

    file: Annotated[Path, typer.Argument(help="A file of options: [true statements, options] by image.")]
    judge: Annotated[
        str | None, typer.Option(help="A model that says whether a negative means the same as a true statement.")
    ] = None
    judge_form: JudgeForm = "rubric"
    question: Annotated[str | None, typer.Option(help="What the statements answer, as the judge is told.")] = None
    blind: Annotated[
        str | None, typer.Option(help="A model that chooses among the options without knowing the image.")
    ] = None
    orders: Annotated[int, typer.Option(min=1, help="Orders of the options in which it is asked.")] = 4
    embedder: Annotated[
        str | None, typer.Option(help="How similar a negative is to its source: st:FOLDER, a sentence encoder.")
    ] = None
    wording: Annotated[
        bool, typer.Option("--wording/--no-wording", help="Whether classifiers look for what wording gives away.")
    ] = True
    rules: Annotated[Path | None, typer.Option(help="What is dropped and flagged: JSON, as `rules` prints it.")] = None
    seed: Annotated[int, typer.Option(help="Of orders, folds and bootstraps.")] = 0
    sidecar: Sidecar = None
    apply: Annotated[
        Path | None, typer.Option("--apply", help="Write the options without what is dropped to this file.")
    ] = None
    report: Annotated[Path | None, typer.Option(help="Write the audit as JSON to this file, every column.")] = None
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class AuditCalls(PromptCalls):
    """How the models of an audit are asked."""

    local: Annotated[
        bool,
        typer.Option(
            "--local",
            help="A small open model on this machine judges, and chooses blindly, where no other does; "
            "asks before a download.",
        ),
    ] = False


@app.command(epilog=HELP)
@spelled_out
def audit(command_options: AuditFileOptions, calls: AuditCalls) -> None:
    """Audit negatives: are they wrong, do they change what they say, can they be told without the image?

    Exit code 1 where something should be dropped and --apply is not given.
    """
    from askance.cli.execute import GOES_ON, ON_RECORD, execute
    from askance.cli.workspace import open_workspace
    from askance.evals.job import plan_of
    from askance.evals.negatives import Rules, aaudit, audit_jobs, read_negatives, read_rules

    sets = read_negatives(command_options.file, sidecar=command_options.sidecar)
    rules = Rules() if command_options.rules is None else read_rules(command_options.rules)
    with open_workspace(calls, name="negatives") as work:
        options = _audit_options(command_options, work)
        code = execute(
            work,
            lambda progress: aaudit(sets, options, rules=rules, seed=command_options.seed, on_progress=progress.count),
            lambda audited: _audit_report(command_options, sets, audited, work.tally),
            plan=lambda: plan_of(audit_jobs(sets, options, rules=rules, seed=command_options.seed)),
            as_json=command_options.as_json,
            progress=lambda: work.progress("verdicts"),
            interrupted=lambda _: f"{GOES_ON}; {ON_RECORD}",
        )
    raise typer.Exit(code)


def _audit_report(options: AuditFileOptions, sets: Sequence[OptionSet], audited: Audit, tally: Tally) -> Report:
    """What was found, which is written to a file too, if one is named."""
    from askance.evals.negatives import audit_text
    from askance.evals.run_folder import write_whole

    form = audited.form()
    if options.report is not None:
        write_whole(options.report, json.dumps(form, ensure_ascii=False, indent=1) + "\n")

    def end() -> int:
        echo(str(tally), err=True)
        if options.apply is None:
            return SOME if audited.decisions["drop"] else OK
        _apply(sets, audited, options.apply)
        return OK

    return Report(lambda: form, lambda: [audit_text(audited)], breaks=False, ends=end)


def _audit_options(options: AuditFileOptions, work: Workspace) -> AuditOptions:
    """What the audit looks at, and what it asks."""
    from askance.agents import judge_equivalence
    from askance.evals.negatives import AuditOptions
    from askance.evals.negatives.audit import QUESTION

    names = (options.judge or work.local_model, options.blind or work.local_model)
    judge, blind = (None if name is None else work.model(name) for name in names)
    return AuditOptions(
        judge=None if judge is None else judge_equivalence(judge, form=options.judge_form, prompts=work.library),
        question=options.question or QUESTION,
        embedder=None if options.embedder is None else work.embedder(options.embedder),
        blind=blind,
        orders=options.orders,
        engine=work.engine,
        wording=options.wording,
    )


def _apply(sets: Sequence[OptionSet], audited: Audit, out: Path) -> None:
    from askance.evals.negatives import apply

    counts = apply(sets, audited, out)
    dropping = {rule: count for rule, count in sorted(audited.broken.items()) if audited.rules.actions[rule] == "drop"}
    by_rule = ", ".join(f"{count:,} {rule}" for rule, count in dropping.items())
    echo(
        f"{out}: {many(counts['kept'], 'negative')} of {many(counts['images'], 'image')}; "
        f"{counts['dropped']:,} dropped ({by_rule or 'by no rule'}), {many(counts['gone'], 'image')} left out.",
        err=True,
    )


@app.command()
def rules() -> None:
    """Print the rules and thresholds of audits as JSON, to be edited and given to --rules."""
    from askance.evals.negatives import Rules

    echo(json.dumps(Rules().form(), indent=2))


# --- sample ---


@dataclass(frozen=True, kw_only=True)
class SheetOptions:
    """The options of one `askance negatives sample`; None is not given."""

    file: Annotated[Path | None, typer.Argument(help="A file of options to draw images from.")] = None
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the sheet and key.json.")] = None
    to: Annotated[
        Literal["page", "label-studio"],
        typer.Option(
            "--to",
            help="page: sheet.html and sheet.csv, each a whole sheet. label-studio: tasks and labelling interface of "
            "a project in Label Studio.",
        ),
    ] = "page"
    images: Annotated[Path | None, typer.Option(help="Folder with the images, in any layout.")] = None
    count: Annotated[int, typer.Option(min=1, help="Images of the sheet.")] = 100
    seed: Annotated[int, typer.Option(help="Of what is drawn and of every order; reading: of the bootstraps.")] = 0
    question: Annotated[str | None, typer.Option(help="Asked of every statement.")] = None
    sidecar: Sidecar = None
    key: Annotated[Path | None, typer.Option(help="Read answers back: the sheet's key.json.")] = None
    answers: Annotated[
        list[Path] | None,
        typer.Option(
            help="Read answers back: a filled CSV file, once for each rater; or an export of Label Studio, JSON or "
            "JSON-MIN."
        ),
    ] = None
    as_json: AsJson = False


@app.command()
@spelled_out
def sample(options: SheetOptions) -> None:
    """Write a blind validation sheet for people, or read their answers back: share of true negatives, agreement."""
    if options.key is not None or options.answers:
        if options.file is not None or options.key is None or not options.answers:
            raise UsageError(
                "Answers are read back with --key and --answers alone.",
                hint="askance negatives sample --key sheet/key.json --answers ann.csv --answers ben.csv",
            )
        _print_validation(options.key, options.answers, seed=options.seed, as_json=options.as_json)
    elif options.file is None or options.out is None or options.images is None:
        raise UsageError(
            "A sheet needs a file of options, --images and --out.",
            hint="askance negatives sample FILE --images DIR --out sheet; with --key and --answers it is read back.",
        )
    else:
        _write_sheet(options, options.file, options.images, options.out)


def _print_validation(key: Path, answers: Sequence[Path], *, seed: int, as_json: bool) -> None:
    """Prints what raters made of a sheet."""
    from askance.evals.negatives import read_key, read_ratings, validate, validation_text

    sheet = read_key(key)
    validation = validate(sheet, read_ratings(answers, sheet), seed=seed)
    Report(validation.form, lambda: [validation_text(validation)], breaks=False).print(as_json=as_json)


def _write_sheet(options: SheetOptions, file: Path, images: Path, out: Path) -> None:
    from askance.evals.label_studio import CONFIG, TASKS
    from askance.evals.negatives import draw_sheet, read_negatives, write_sheet
    from askance.evals.negatives.validation import KEY, PAGE, QUESTION, TABLE

    sheet = draw_sheet(read_negatives(file, sidecar=options.sidecar), count=options.count, seed=options.seed)
    missing = write_sheet(sheet, out, images=_finder(images), question=options.question or QUESTION, to=options.to)
    form = {"sheet": sheet.id, "images": len(sheet.keys), "items": len(sheet.items), "missing": list(missing)}
    parts = [str(out / name) for name in ((PAGE, TABLE) if options.to == "page" else (TASKS, CONFIG))]
    Report(lambda: form, lambda: parts, breaks=False).print(as_json=options.as_json)
    get = "Raters get one of the two files" if options.to == "page" else "Label Studio gets both files"
    echo(
        f"{many(len(sheet.items), 'statement')} about {many(len(sheet.keys), 'image')}, "
        f"{len(missing):,} of which cannot be read.\n"
        f"{get}, and never {out / KEY}, which says what is true.",
        err=True,
    )


def _finder(folder: Path) -> Callable[[str], Image | None]:
    """Finds images by key in a folder, in the layouts of the data set; a key without an ending by its name alone."""
    from askance.evals.pittads import Pictures
    from askance.images import Image

    pictures = Pictures.scan(folder)
    by_stem = {Path(name).stem: keys[0] for name, keys in pictures.by_name.items() if len(keys) == 1}

    def find(key: str) -> Image | None:
        path = pictures.find(key) or pictures.find(by_stem.get(key, key))
        return None if path is None else Image.from_path(path)

    return find
