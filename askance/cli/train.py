"""`askance train`: training sets made of data sets and of recorded runs, and training by a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from askance.amounts import many
from askance.cli.columns import Columns, Part, Report, Section
from askance.cli.group import command_group
from askance.cli.options import AsJson, spelled_out
from askance.cli.train_recipe import commands
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.evals import Run
    from askance.models.encoders.embedder import RecordedEmbedder
    from askance.training import MadeSet
    from askance.training.recorded_calls import CallFilter, RecordedExamples

app = command_group("Small models of one's own: training sets, and training by a recipe.")
data = command_group("Make a training set: a folder that `datasets` and TRL load by themselves.")
app.add_typer(data, name="data")
app.add_typer(commands)


@dataclass(frozen=True, kw_only=True)
class SetOptions:
    """What every command that makes a set takes."""

    out: Annotated[Path, typer.Option("--out", "-o", metavar="SET", help="Folder to write; a new one.")]
    to: Annotated[
        Literal["set", "openai"],
        typer.Option(help="set: a folder for `datasets` and TRL; openai: JSON lines for fine-tuning at OpenAI."),
    ] = "set"
    accept_terms: Annotated[
        bool,
        typer.Option("--accept-terms", help="Agree to the terms that bind whoever trains on it; they are printed."),
    ] = False
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """The options of `askance train data records` beside those of every set."""

    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="A run, a folder of runs, or a pack, whose calls are taken; may be repeated."),
    ] = None
    store: Annotated[
        str | None, typer.Option(metavar="STORE", help="All calls on record in this folder, where no run is at hand.")
    ] = None
    link: Annotated[
        str | None, typer.Option(help="Calls for these links of the chain alone: narration,unusual.", metavar="LINKS")
    ] = None
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Calls of models whose name holds this, or a pattern with *."),
    ] = None
    min_score: Annotated[
        list[str] | None, typer.Option(help="Answers that scored so much at least: accuracy=1.", metavar="NAME=VALUE")
    ] = None
    judged: Annotated[
        bool, typer.Option("--judged", help="Answers that the judge of the run calls right; it must have a card.")
    ] = False
    dedupe: Annotated[
        bool, typer.Option("--dedupe", help="Equal answers to equal questions once, whatever model gave them.")
    ] = False
    images: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PLACE",
            help="Where the pictures are, with all folders below; by default where the runs found them.",
        ),
    ] = None
    hold_out: Annotated[
        Path | None,
        typer.Option(help="A list of samples or pictures, one a line: theirs become the split `test`.", metavar="FILE"),
    ] = None
    validation: Annotated[float, typer.Option(help="Share of the other pictures for validation.")] = 0.1
    keep_out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PLACE", help="Pictures to evaluate on, in no split: a folder of them, or a run. May be repeated."
        ),
    ] = None
    near_twins: Annotated[
        str | None,
        typer.Option(
            metavar="EMBEDDER",
            help="An embedder of pictures, clip:FOLDER: near-twins of what is held or kept out are left out.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Of the drawing of the pictures for validation.")] = 0


@data.command()
@spelled_out
def records(options: RecordOptions, made: SetOptions) -> None:
    """Make examples of recorded calls: what a model was asked about a picture, and what it answered.

    Refusals, replies that could not be read, and calls whose pictures are not at hand are left out, and counted.
    """
    from askance.models import run_sync
    from askance.training.example_splits import EvaluationPictures, split_by_group, without_leaks
    from askance.training.recorded_calls import CallFilter
    from askance.training.training_set import MadeSet, Source

    _check_out(made)
    wanted = CallFilter(
        links=tuple(filter(None, (options.link or "").replace(" ", "").split(","))),
        models=tuple(options.model or ()),
        min_scores=dict(map(_score_named, options.min_score or ())),
        judged=options.judged,
        dedupe=options.dedupe,
    )
    with ExitStack() as stack:
        runs, origin = _opened(options, stack)
        found = _examples(options, wanted, runs, stack)
        held, notes = _held_out(options.hold_out, found)
        splits = split_by_group(found.examples, validation=options.validation, seed=options.seed, held_out=held)
        kept_out = EvaluationPictures.of(options.keep_out or (), open_run=_open_run)
        splits, leaks = run_sync(without_leaks(splits, found.pictures, kept_out, embedder=_embedder(options)))
        source = Source(
            origin=origin,
            filters={
                **wanted.form(),
                "validation": options.validation,
                "seed": options.seed,
                "kept_out": len(kept_out.digests),
                "near_twins": options.near_twins,
            },
            licences=tuple(
                f"Answers of {model}: check whether the terms of its provider allow training on them."
                for model in found.models
            ),
            left_out=found.left_out + leaks,
            notes=notes,
        )
        _write(MadeSet(splits, source), made)


def _score_named(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        if name.strip():
            return name.strip(), float(value)
    except ValueError:
        pass
    raise UsageError(f"`--min-score {text}` names no score and number.", hint="Write --min-score accuracy=1.")


def _open_run(folder: Path) -> Run:
    from askance.evals.run import Run

    return Run.open(folder)


def _opened(options: RecordOptions, stack: ExitStack) -> tuple[list[Run], dict[str, object]]:
    """The runs, those of packs unpacked, and what the manifest says of them.

    Raises:
        UsageError: neither runs nor a store are named, or both are; or as `Run.open_all` and `open_pack`.
    """
    from askance.evals.analysis.pack import open_pack
    from askance.evals.run import Run
    from askance.replay import without_password

    named = options.run or []
    if bool(named) == (options.store is not None):
        raise UsageError(
            "Runs or a store of records are needed, one of the two.",
            hint="Name a run: --run FOLDER; or --store FOLDER.",
        )
    runs = list[Run]()
    for path in named:
        runs += stack.enter_context(open_pack(path)).runs if path.is_file() else Run.open_all([path])
    if named and not runs:
        raise UsageError(f"There is no run in {str(named[0])!r}.", hint="Name the folder of a run, or one of runs.")
    store = None if options.store is None else str(without_password(options.store))
    prompts = dict[str, list[str]]()
    for name, digest in sorted({each for run in runs for each in run.solver.get("prompts", {}).items()}):
        prompts.setdefault(name, []).append(digest)
    facts = [{"run": run.path.name, "task": run.task, **run.facts} for run in runs]
    return runs, {"command": "records", "runs": facts, "store": store, "prompts": prompts}


def _examples(options: RecordOptions, wanted: CallFilter, runs: Sequence[Run], stack: ExitStack) -> RecordedExamples:
    from askance.images.picture_folder import PICTURES
    from askance.replay import ValidRecords, open_records
    from askance.training.recorded_calls import examples_of_records, examples_of_runs, find_pictures_of

    places = [*(options.images or ())]
    if missing := next((place for place in places if not place.exists()), None):
        raise UsageError(f"There is no file or folder {str(missing)!r}.", hint="Mend the path behind --images.")
    if runs:
        return examples_of_runs(runs, wanted, pictures=find_pictures_of(runs, places))
    opened = stack.enter_context(open_records(options.store, read_only=True))
    kept = [] if opened.folder is None else [opened.folder / PICTURES]
    valid = ValidRecords(opened, check=True)
    found = examples_of_records(valid, wanted, pictures=find_pictures_of((), [*places, *kept]))
    found.left_out["the record is damaged"] += valid.left_out
    return found


def _held_out(file: Path | None, found: RecordedExamples) -> tuple[set[str], tuple[str, ...]]:
    """The groups that a list names, and what there is to know of it.

    Raises:
        UsageError: the list cannot be read, or names nothing that is here.
    """
    from askance.evals.suite.selection import read_names

    if file is None:
        return set(), ()
    names = {*read_names(file)}
    groups = {group: names & aliases for group, aliases in found.names.items() if names & aliases}
    known = {name for matched in groups.values() for name in matched}
    if not groups:
        raise UsageError(
            f"Nothing that {str(file)!r} lists is here, such as {min(names)!r}.",
            hint="List ids of samples, or names or digests of pictures, one a line.",
        )
    unknown = len(names - known)
    return {*groups}, (f"{unknown:,} of {len(names):,} listed to be held out are not here",) if unknown else ()


def _embedder(options: RecordOptions) -> RecordedEmbedder | None:
    """The embedder of `--near-twins`.

    Raises:
        UsageError: it sees no pictures.
    """
    from askance.models import get_embedder
    from askance.workspace import Workspace

    if options.near_twins is None:
        return None
    embedder = get_embedder(options.near_twins, engine=Workspace(store=options.store).engine)
    if not embedder.sees_pictures:
        raise UsageError(
            f"The embedder {options.near_twins!r} takes no pictures.",
            hint="Name one that does: --near-twins clip:FOLDER.",
        )
    return embedder


@dataclass(frozen=True, kw_only=True)
class WhoopsOptions:
    """The options of `askance train data whoops` beside those of every set."""

    folder: Annotated[Path, typer.Argument(help="The folder of WHOOPS!: CSV, image folder, parquet or Arrow.")]
    fold: Annotated[int, typer.Option(min=0, max=4, help="The fold whose test images are held out.")] = 0
    seed: Annotated[int, typer.Option(help="Of the folds, as of the suite's, and of the order of captions.")] = 0
    pairs: Annotated[
        Path | None, typer.Option(help="Folder of weird and normal images; by default pairs/ of the folder.")
    ] = None
    matching: Annotated[
        Literal["same-place", "selected", "all"], typer.Option(help="Which captions are held against each other.")
    ] = "same-place"


@data.command()
@spelled_out
def whoops(options: WhoopsOptions, made: SetOptions) -> None:
    """Make the six kinds of conversations about weird images on which WHOOPS! trains its supervised models."""
    from askance.training.whoops_examples import whoops_set

    _check_out(made)
    _write(
        whoops_set(
            options.folder, fold=options.fold, seed=options.seed, pairs=options.pairs, matching=options.matching
        ),
        made,
    )


@dataclass(frozen=True, kw_only=True)
class NewYorkerOptions:
    """The options of `askance train data newyorker` beside those of every set."""

    folder: Annotated[Path, typer.Argument(help="The folder of the caption contest, in any of its layouts.")]
    task: Annotated[Literal["matching", "ranking", "explanation"], typer.Option(help="Whose items.")]
    form: Annotated[
        Literal["choices", "text", "chat"],
        typer.Option(
            help="choices: cartoons with captions; text, chat: the prompt from a description, and its answer."
        ),
    ]
    fold: Annotated[int, typer.Option(min=0, max=4, help="The official fold.")] = 0
    protocol: Annotated[
        Literal["auto", "paper"], typer.Option(help="The prompts of `--protocol`: auto asks for JSON, paper for text.")
    ] = "paper"


@data.command()
@spelled_out
def newyorker(options: NewYorkerOptions, made: SetOptions) -> None:
    """Make examples of the New Yorker caption contest, in its official folds."""
    from askance.training.newyorker_examples import newyorker_set
    from askance.workspace import Workspace

    _check_out(made)
    _write(
        newyorker_set(
            options.folder,
            task=options.task,
            fold=options.fold,
            form=options.form,
            prompts=Workspace().library,
            prompt_form="text" if options.protocol == "paper" else "json",
        ),
        made,
    )


@dataclass(frozen=True, kw_only=True)
class SherlockOptions:
    """The options of `askance train data sherlock` beside those of every set."""

    folder: Annotated[Path, typer.Argument(help="The folder of Sherlock, with the training corpus.")]
    images: Annotated[Path | None, typer.Option(help="Folder of the pictures; by default images/ of the folder.")] = (
        None
    )
    form: Annotated[
        Literal["pairs", "text"], typer.Option(help="pairs: regions with clue and inference; text: clue to inference.")
    ] = "pairs"
    official: Annotated[
        bool, typer.Option("--official", help="Validate on the validation corpus, as the paper does.")
    ] = False
    validation: Annotated[float, typer.Option(help="Else the share of the training pictures that validates.")] = 0.02
    seed: Annotated[int, typer.Option(help="Of the drawing of these pictures.")] = 0


@data.command()
@spelled_out
def sherlock(options: SherlockOptions, made: SetOptions) -> None:
    """Make pairs of a region and a text, or of a clue and its inference, of the training corpus of Sherlock."""
    from askance.training.sherlock_examples import sherlock_set

    _check_out(made)
    _write(
        sherlock_set(
            options.folder,
            images=options.images,
            form=options.form,
            official=options.official,
            validation=options.validation,
            seed=options.seed,
        ),
        made,
    )


# --- writing ---


def _check_out(made: SetOptions) -> None:
    """Refuses a folder that holds something before anything is read."""
    from askance.evals.run_folder import check_new

    check_new(made.out)


def _write(made: MadeSet, options: SetOptions) -> None:
    """Prints the terms, writes the set, and says what is in it.

    Raises:
        UsageError: nobody agreed to the terms.
    """
    from askance.training import write_training_set
    from askance.training.openai_lines import write_openai_lines

    for licence in made.source.licences:
        echo(licence, err=True)
    if made.source.licences and not options.accept_terms:
        raise UsageError("Nobody agreed to these terms.", hint="Read them, and add `--accept-terms`.")
    if options.to == "openai":
        lines, left_out = write_openai_lines(options.out, made.splits)
        rows = {str(split): count for split, count in lines.items()}
        source, pictures, digest = replace(made.source, left_out={**made.source.left_out, **left_out}), None, None
    else:
        written = write_training_set(options.out, made.splits, source=made.source)
        rows = {str(split): written.count(split) for split in written.splits}
        source, pictures, digest = made.source, written.manifest["pictures"], written.digest
    left = {reason: count for reason, count in sorted(source.left_out.items()) if count}
    form = {"set": str(options.out), "rows": rows, "pictures": pictures, "digest": digest, "left_out": left}
    Report(lambda: form, lambda: _told(options.out, rows, pictures, left), source.notes).print(as_json=options.as_json)


def _told(out: Path, rows: Mapping[str, int], pictures: int | None, left: Mapping[str, int]) -> Iterator[Part]:
    shown = "" if not pictures else f" with {many(pictures, 'picture')}"
    yield f"{out}: {many(sum(rows.values()), 'example')}{shown}"
    yield Columns([("split", "examples"), *((split, f"{count:,}") for split, count in rows.items())])
    if left:
        yield Section("Left out", [(reason, f"{count:,}") for reason, count in left.items()])
