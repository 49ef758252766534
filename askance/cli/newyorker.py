"""`askance newyorker`: what only the suite on the New Yorker caption contest needs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.options import AsJson, Records, spelled_out
from askance.cli.process import HELP, Process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from askance.evals.newyorker import ConstructedTasks, RawContests

app = typer.Typer(
    help="The New Yorker caption contest: the leaderboard's file, tasks of your own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def newyorker() -> None:
    """Commands about the New Yorker caption contest."""


class MissingAnswer(StrEnum):
    """What stands for a sample without an answer."""

    random = "random"
    last = "last"


@app.command(epilog=HELP)
def submit(
    context_: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run of one of the three tasks.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write; by default TASK_predictions.json, here.")
    ] = None,
    missing: Annotated[
        MissingAnswer | None,
        typer.Option(
            help="What stands for a sample without an answer: a random option, as the authors drew, or the last one, "
            "as their leaderboard script has it. Without it, a run that lacks an answer is refused."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of random options.")] = 0,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the data or of the leaderboard: the run must have all test items of its folds "
            "(the leaderboard's 830, or 664), and no others."
        ),
    ] = None,
) -> None:
    """Write a run's answers as the leaderboard and the official scorer take them: {instance_id: letter}."""
    Process.of(context_).without_langchain()
    from askance.evals.newyorker import NewYorker, submission_of
    from askance.evals.run import Run
    from askance.terminal import printable

    run = Run.open(folder)
    there = None if data is None else NewYorker.open(data)
    made = submission_of(run, missing=None if missing is None else missing.value, data=there, seed=seed)
    file = made.write(out or Path(f"{run.task.rpartition('/')[2]}_predictions.json"))
    rule = {"last": "the last option", "random": "drawn at random"}
    filled = f", {len(made.filled):,} of them {rule[missing.value]}" if missing and made.filled else ""
    print(printable(f"{file}: {many(len(made.answers), 'answer')}{filled}"))


# --- build ---


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """The options of one `askance newyorker build`; None is not given."""

    captions: Annotated[
        Path,
        typer.Option(help="Folder of captions and ratings: 510_summary_LilUCB.csv, 12.txt (a caption a line)."),
    ]
    annotations: Annotated[Path, typer.Option(help="The file all_newyorker_contest_annotations.json.")]
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the tasks.")]
    images: Annotated[Path | None, typer.Option(help="Folder of cartoons, 1.jpeg and so on; they are copied.")] = None
    explanations: Annotated[
        Path | None,
        typer.Option(help="Explanations of jokes, joke_explanations_flat.json; else there is no such task."),
    ] = None
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Tells captions of like meaning: st:FOLDER, a sentence encoder. Without it only equal ones are one."
        ),
    ] = None
    unrated: Annotated[
        bool,
        typer.Option(
            "--unrated",
            help="Rank captions that nobody rated, too. A rule of form stands in for the authors' filter, which was "
            "not published.",
        ),
    ] = False
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0
    wording: Annotated[
        bool, typer.Option("--wording", help="Let classifiers look for what the captions alone give away.")
    ] = False
    store: Records = None
    as_json: AsJson = False


@app.command(epilog=HELP)
@spelled_out
def build(context_: typer.Context, asked: BuildOptions) -> None:
    """Make matching, ranking and explanation tasks of raw annotations, captions and ratings, as the paper made its own.

    Each caption is once the right answer of matching and four times a wrong one, within each of five parts of the
    contests: captions alone give nothing away. The folder is in the layout of the published repository; its
    manifest.json says what it was made from and what was left out. Equal inputs and an equal seed give equal files.
    """
    Process.of(context_).without_langchain()
    import asyncio

    from askance.cli.workspace import print_warnings
    from askance.evals.newyorker import RawContests
    from askance.evals.newyorker.task_construction import check_new

    print_warnings()
    check_new(asked.out)
    raw = RawContests.open(annotations=asked.annotations, captions=asked.captions, explanations=asked.explanations)
    tasks = asyncio.run(_constructed(raw, asked))
    missing = tasks.write(asked.out, pictures=asked.images)
    _print_built(tasks, asked, pictures_missing=len(missing))


async def _constructed(raw: RawContests, asked: BuildOptions) -> ConstructedTasks:
    from askance.evals.newyorker import aconstruct_tasks
    from askance.models import get_embedder
    from askance.workspace import Workspace

    with Workspace(store=asked.store) as work:
        embedder = None if asked.embedder is None else get_embedder(asked.embedder, engine=work.engine)
        try:
            return await aconstruct_tasks(raw, embedder=embedder, seed=asked.seed, unrated=asked.unrated)
        finally:
            if embedder is not None:
                await embedder.aclose()


def _print_built(tasks: ConstructedTasks, asked: BuildOptions, *, pictures_missing: int) -> None:
    """Prints what was made, what was left out, and what the captions alone say of which is right."""
    from askance.cli.columns import aligned, filled, terminal_width
    from askance.evals.newyorker.task_construction import text_alone, wording_accuracy
    from askance.terminal import json_text, printable

    alone = text_alone(tasks, train=asked.wording)
    wording = {task: wording_accuracy(tasks.option_sets(task), found) for task, found in alone.items()}
    said = tasks.manifest
    if asked.as_json:
        artifacts = {task: {**found.form(), "right": wording[task]} for task, found in alone.items()}
        print(json_text({**said, "pictures_missing": pictures_missing, "wording": artifacts}))
        return
    width = terminal_width()
    contests, good = said["contests"], said["good_captions"]
    sources = ", ".join(f"{count:,} {source.replace('_', ' ')}s" for source, count in good.items())
    print(
        printable(
            filled(f"{asked.out}: {contests['used']:,} of {contests['annotated']:,} contests; {sources}.", width=width)
        )
    )
    print("\nItems, in the mean over the five folds")
    rows: list[tuple[str, ...]] = [("", "train", "val", "test")]
    for task, folds in said["items"].items():
        means = (sum(fold[split] for fold in folds) / len(folds) for split in rows[0][1:])
        rows.append((f"  {task}", *(f"{mean:,.1f}" for mean in means)))
    print("\n".join(aligned(rows, width=width)))
    print("\nFrom the captions alone, how often the right one is found")
    rows = [("", "a guess", "the longest", "by wording")]
    for task, found in alone.items():
        by_wording = wording[task]
        shares = (found.lengths.chance, found.lengths.longest_true.value, by_wording)
        rows.append((f"  {task}", *("–" if share is None else f"{share:.1%}" for share in shares)))
    print("\n".join(aligned(rows, width=width)))
    for note in _notes(tasks, asked, pictures_missing):
        print(printable(filled(f"· {note}", width=width)), file=sys.stderr)


def _notes(tasks: ConstructedTasks, asked: BuildOptions, pictures_missing: int) -> Iterator[str]:
    """What was left out, and what was not told apart."""
    said = tasks.manifest
    for reason, found in said["contests_left_out"].items():
        yield f"{many(found['count'], 'contest')} left out: {reason}."
    for reason, found in said["contests_without_ranking"].items():
        yield f"{many(found['count'], 'contest')} without items of ranking: {reason}."
    if asked.embedder is None:
        yield "Captions of like meaning were not told apart, only equal ones: no --embedder is named."
    if "no ratings" in said["contests_without_ranking"]:
        yield (
            "The authors' filter of captions without ratings was not published; --unrated takes such captions by a "
            "rule of form."
        )
    if asked.images is not None and pictures_missing:
        yield f"{many(pictures_missing, 'contest')} without a picture in {str(asked.images)!r}."
