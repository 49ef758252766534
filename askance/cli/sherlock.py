"""`askance sherlock`: what only the suite on regions of pictures and inferences about them needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.columns import Part, Report
from askance.cli.options import AsJson, Records, named_values, spelled_out
from askance.cli.process import HELP, Process
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.evals.sherlock import CandidateSets

app = typer.Typer(
    help="Sherlock: the leaderboard's file, candidate sets of your own, what goes with errors.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def sherlock() -> None:
    """Commands about the Sherlock corpus."""


class SplitName(StrEnum):
    """A split of the leaderboard."""

    test = "test"
    val = "val"


@app.command(epilog=HELP)
def submit(
    context_: typer.Context,
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of finished runs of comparison, localization and retrieval."),
    ],
    data: Annotated[Path, typer.Option(help="Folder with the leaderboard's files, which have the order of the pairs.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write; by default test_set_predictions.zip, here.")
    ] = None,
    split: Annotated[
        SplitName, typer.Option(help="The leaderboard's test set; or val, whose answers the authors' scorers read.")
    ] = SplitName.test,
) -> None:
    """Write the scores of runs as the leaderboard takes them: a .npy file a task, in a .zip.

    Every pair of a region and an inference needs a score. Lengths are held against the published ones, that of
    comparison too.
    """
    Process.of(context_).without_langchain()
    from askance.evals.run import Run
    from askance.evals.sherlock import Sherlock, submission_of
    from askance.evals.sherlock.submission import FOLDERS

    runs = [Run.open(folder) for folder in folders]
    made = submission_of(runs, data=Sherlock.open(data, images=data), split=split.value)
    file = made.write(out or Path(f"{FOLDERS[made.split]}.zip"))
    echo(f"{file}: {', '.join(f'{task} {count:,}' for task, count in made.tasks.items())}")
    if made.missing:
        chunks = ", ".join(map(str, made.missing))
        echo(f"· Retrieval is scored with all chunks alone; it lacks {chunks}.")


# --- candidates ---


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
def candidates(context_: typer.Context, options: CandidateOptions) -> None:
    """Make sets of ten plausible inferences of a region for people to rate, as appendix E of the paper says.

    The folder is in the layout of the leaderboard, so that `eval run sherlock/comparison --data` reads it; its
    candidates.json says which instances the inferences come from, and its manifest.json what it was made from. Equal
    inputs and an equal seed give equal files.
    """
    Process.of(context_).without_langchain()
    from askance.evals.run_folder import check_new
    from askance.models import run_sync

    check_new(options.out)
    made = run_sync(_candidates(options))
    pairs = made.write(options.out)
    Report(lambda: dict(made.manifest), lambda: _made(made, pairs)).print(as_json=options.as_json)


async def _candidates(options: CandidateOptions) -> CandidateSets:
    from askance.cli.progress import Progress
    from askance.evals.sherlock import Sherlock, build_candidates
    from askance.models import get_embedder, get_scorer
    from askance.workspace import Workspace

    given = _models(options)
    data = Sherlock.open(options.data, images=options.images)
    with Workspace(store=options.store) as work:
        scorer = get_scorer(given["scorer"], engine=work.engine)
        embedder = get_embedder(given["embedder"], engine=work.engine)
        try:
            with Progress("regions", len(data.instances)) as progress:
                return await build_candidates(
                    data,
                    scorer=scorer,
                    embedder=embedder,
                    seed=options.seed,
                    most=options.limit,
                    on_progress=progress.update,
                )
        finally:
            await scorer.aclose()
            await embedder.aclose()


def _models(options: CandidateOptions) -> Mapping[str, str]:
    """The specs of scorer and embedder.

    Raises:
        UsageError: one is missing, or another option is given.
    """
    from askance.errors import UsageError

    wanted = {"scorer": "clip:FOLDER", "embedder": "st:FOLDER"}
    given = named_values(options.option or (), of="candidates")
    for name in given:
        if name not in wanted:
            raise UsageError(f"Candidates have no option {name!r}.", hint=f"There are {' and '.join(wanted)}.")
    for name, example in wanted.items():
        if name not in given:
            raise UsageError(f"Candidates need an option {name!r}.", hint=f"Give -T {name}={example}.")
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
        yield f"{many(manifest['without_picture'], 'instance')} without a picture."
