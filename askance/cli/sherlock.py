"""`askance sherlock`: what only the suite on regions of pictures and inferences about them needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from askance.amounts import many
from askance.cli.columns import Columns, Part, Report
from askance.cli.group import command_group
from askance.cli.options import AsJson, Records, named_values, spelled_out
from askance.cli.process import HELP
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.evals.sherlock import CandidateSets, CheckpointCorrelations, ErrorPrediction
    from askance.statistics import Correlation

app = command_group("Sherlock: the leaderboard's file, candidate sets of your own, what goes with errors.")


@app.command(epilog=HELP)
def submit(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of finished runs of comparison, localization and retrieval."),
    ],
    data: Annotated[Path, typer.Option(help="Folder with the leaderboard's files, which have the order of the pairs.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write; by default test_set_predictions.zip, here.")
    ] = None,
    split: Annotated[
        Literal["test", "val"],
        typer.Option(help="The leaderboard's test set; or val, whose answers the authors' scorers read."),
    ] = "test",
) -> None:
    """Write the scores of runs as the leaderboard takes them: a .npy file a task, in a .zip.

    Every pair of a region and an inference needs a score. Lengths are held against the published ones, that of
    comparison too.
    """
    from askance.evals.run import Run
    from askance.evals.sherlock import Sherlock, submission_of
    from askance.evals.sherlock.submission import FOLDERS

    runs = [Run.open(folder) for folder in folders]
    made = submission_of(runs, data=Sherlock.open(data, images=data), split=split)
    file = made.write(out or Path(f"{FOLDERS[made.split]}.zip"))
    echo(f"{file}: {', '.join(f'{task} {count:,}' for task, count in made.tasks.items())}")
    if made.missing:
        chunks = ", ".join(map(str, made.missing))
        echo(f"· Retrieval is scored with all chunks alone; it lacks {chunks}.")


# --- candidates ---


CANDIDATE_MODELS: Mapping[str, str] = {"scorer": "clip:FOLDER", "embedder": "st:FOLDER"}
"""By option of candidates, a model that it may name."""


@dataclass(frozen=True, kw_only=True)
class CandidateOptions:
    """The options of one `askance sherlock candidates`; None is not given."""

    data: Annotated[Path, typer.Option(help="Folder of the data set, with the corpus.")]
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the pairs to be rated.")]
    option: Annotated[
        list[str] | None,
        typer.Option(
            "-T",
            metavar="NAME=VALUE",
            help="scorer=clip:FOLDER says how plausible an inference is of a region, embedder=st:FOLDER which "
            "inferences are alike; both are needed.",
        ),
    ] = None
    images: Annotated[Path | None, typer.Option(help="Folder of pictures; by default images, of the data set.")] = None
    limit: Annotated[int, typer.Option(min=1, help="Sets that are kept, the most promising ones.")] = 500
    seed: Annotated[int, typer.Option(help="Of the order of regions, and of one inference of those alike.")] = 0
    store: Records = None
    as_json: AsJson = False


@app.command(epilog=HELP)
@spelled_out
def candidates(options: CandidateOptions) -> None:
    """Make sets of ten plausible inferences of a region for people to rate, as appendix E of the paper says.

    The folder is in the layout of the leaderboard, so that `eval run sherlock/comparison --data` reads it; its
    candidates.json says which instances the inferences come from, and its manifest.json what it was made from. Equal
    inputs and an equal seed give equal files.
    """
    from askance.cli.progress import Progress
    from askance.evals.run_folder import check_new
    from askance.evals.sherlock import Sherlock, build_candidates
    from askance.models import run_sync
    from askance.workspace import Workspace

    check_new(options.out)
    given = _specs(options.option, of="candidates", examples=CANDIDATE_MODELS)
    for name, example in CANDIDATE_MODELS.items():
        if name not in given:
            raise UsageError(f"Candidates need an option {name!r}.", hint=f"Give -T {name}={example}.")
    data = Sherlock.open(options.data, images=options.images)
    with Workspace(store=options.store) as work, Progress("regions", len(data.instances)) as progress:
        making = build_candidates(
            data,
            scorer=work.scorer(given["scorer"]),
            embedder=work.embedder(given["embedder"]),
            seed=options.seed,
            most=options.limit,
            on_progress=progress.update,
        )
        made = run_sync(making)
    pairs = made.write(options.out)
    Report(lambda: dict(made.manifest), lambda: _made(made, pairs)).print(as_json=options.as_json)


def _specs(texts: Sequence[str] | None, *, of: str, examples: Mapping[str, str]) -> Mapping[str, str]:
    """By name, the specs of models that `-T` gives.

    Raises:
        UsageError: an option has another name.
    """
    given = named_values(texts or (), of=of)
    for name in given:
        if name not in examples:
            raise UsageError(f"{name!r} is no option of {of}.", hint=f"There are {' and '.join(examples)}.")
    return given


def _made(made: CandidateSets, pairs: Path) -> Iterator[Part]:
    manifest = made.manifest
    inferences = sum(len(each.candidates) for each in made.sets)
    yield f"{pairs}: {many(len(made.sets), 'region')} with {many(inferences, 'inference')}."
    yield (
        f"{many(manifest['instances'], 'instance')}, {manifest['texts']:,} different inferences in "
        f"{many(manifest['clusters'], 'cluster')}; {many(manifest['regions_with_a_set'], 'region')} had ten to choose."
    )
    if manifest["without_picture"]:
        yield f"{many(manifest['without_picture'], 'instance')} without a picture that can be used."


# --- what goes with agreement with people ---


@app.command()
def correlations(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of runs of comparison and retrieval, both of each checkpoint."),
    ],
    steps: Annotated[
        str | None,
        typer.Option(help="The training step of each run of comparison, in their order, with commas: 400,800,1200."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how human accuracy goes with retrieval, and with training, over checkpoints of a model (section 5.2).

    A run of comparison goes with the run of retrieval by the same scorer. It reads the run folders alone.
    """
    from askance.evals.run import Run
    from askance.evals.sherlock import checkpoint_correlations

    runs = [Run.open(folder) for folder in folders]
    found = checkpoint_correlations(runs, steps=None if steps is None else _numbers(steps))
    Report(found.form, lambda: _correlation_parts(found)).print(as_json=as_json)


def _numbers(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError as error:
        raise UsageError(f"The steps {text!r} are no numbers.", hint="Write them with commas: 400,800,1200.") from error


def _correlation_parts(found: CheckpointCorrelations) -> Iterator[Part]:
    from askance.evals.tables import NONE, shown_value

    rows = [("checkpoint", "step", "P@1", "human accuracy")]
    for each in found.checkpoints:
        first, human = (shown_value(value, percent=True) for value in (each.first, each.human))
        rows.append((each.name, NONE if each.step is None else f"{each.step:,}", first, human))
    yield Columns(rows)
    yield ""
    yield _correlated("P@1", found.with_retrieval)
    if found.with_step is not None:
        yield _correlated("the training step", found.with_step)


def _correlated(what: str, correlation: Correlation) -> str:
    from askance.evals.analysis.compare import stated_p

    if correlation.rho is None:
        return f"Human accuracy and {what}: no correlation; three checkpoints that differ are needed."
    tested = stated_p(correlation.p)
    return f"Human accuracy and {what}: Pearson's r = {correlation.rho:.2f} (n = {correlation.n}, {tested})."


# --- errors ---

ERROR_MODELS: Mapping[str, str] = {"pictures": "clip:FOLDER", "texts": "st:FOLDER"}
"""By option of errors, a model that it may name."""


@dataclass(frozen=True, kw_only=True)
class ErrorOptions:
    """The options of one `askance sherlock errors`; None is not given."""

    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of sherlock/comparison.")]
    data: Annotated[Path | None, typer.Option(help="Folder of the data set; for pictures.")] = None
    images: Annotated[Path | None, typer.Option(help="Folder of pictures; by default images, of the data set.")] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            "-T",
            metavar="NAME=VALUE",
            help="pictures=clip:FOLDER predicts from vectors of pictures, texts=st:FOLDER from those of inferences.",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Of the five folds.")] = 0
    store: Records = None
    as_json: AsJson = False


@app.command(epilog=HELP)
@spelled_out
def errors(options: ErrorOptions) -> None:
    """Say how well one can predict on which regions a model does above or below its average (section 5.3).

    A logistic regression learns it in five folds, from the agreement of the raters, and from vectors of pictures and of
    inferences where encoders are named. Needs scikit-learn: pip install 'askance[audit]'.
    """
    from askance.evals.run import Run
    from askance.evals.sherlock import Sherlock, error_prediction
    from askance.models import run_sync
    from askance.workspace import Workspace

    given = _specs(options.option, of="errors", examples=ERROR_MODELS)
    run = Run.open(options.folder)
    data = None if options.data is None else Sherlock.open(options.data, images=options.images)
    with Workspace(store=options.store) as work:
        embedders = {name: work.embedder(spec) for name, spec in given.items()}
        pictures, texts = embedders.get("pictures"), embedders.get("texts")
        found = run_sync(error_prediction(run, data=data, pictures=pictures, texts=texts, seed=options.seed))
    Report(found.form, lambda: _error_parts(found)).print(as_json=options.as_json)


def _error_parts(found: ErrorPrediction) -> Iterator[Part]:
    from askance.evals.tables import shown_value

    def percent(value: float) -> str:
        return shown_value(value, percent=True)

    yield f"{found.run}: {many(found.regions, 'region')}, {percent(found.average)} % human accuracy in the mean."
    yield ""
    rows = [("above or below the mean, by", "area under the curve, %", "by fold")]
    rows += [(each.features, percent(each.area), ", ".join(map(percent, each.by_fold))) for each in found.predicted]
    yield Columns(rows, left=(0, 2))
    yield ""
    yield "· Chance is 50 %."
