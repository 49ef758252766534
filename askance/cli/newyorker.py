"""`askance newyorker`: what only the suite on the New Yorker caption contest needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from askance.amounts import many
from askance.cli.columns import Columns, Part, Report
from askance.cli.group import command_group
from askance.cli.options import AsJson, Records, spelled_out
from askance.cli.process import HELP
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.evals.negatives import AnnotationArtifacts
    from askance.evals.newyorker import ConstructedTasks, ContestDifficulty
    from askance.evals.newyorker.contest_difficulty import ContestAccuracy, PairDifficulty
    from askance.evals.newyorker.task_construction import AuditedTask
    from askance.statistics import ErrorIndependence

app = command_group(
    "The New Yorker caption contest: the leaderboard's file, tasks of your own, which contests are hard."
)


@app.command(epilog=HELP)
def submit(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run of one of the three tasks.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write; by default TASK_predictions.json, here.")
    ] = None,
    missing: Annotated[
        Literal["random", "last"] | None,
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
    from askance.evals.newyorker import NewYorker, submission_of
    from askance.evals.run import Run

    run = Run.open(folder)
    dataset = None if data is None else NewYorker.open(data)
    made = submission_of(run, missing=missing, data=dataset, seed=seed)
    file = made.write(out or Path(f"{run.task.rpartition('/')[2]}_predictions.json"))
    rule = {"last": "the last option", "random": "drawn at random"}
    filled = f", {len(made.filled):,} of them {rule[missing]}" if missing and made.filled else ""
    echo(f"{file}: {many(len(made.answers), 'answer')}{filled}")


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
def build(options: BuildOptions) -> None:
    """Make matching, ranking and explanation tasks of raw annotations, captions and ratings, as the paper made its own.

    Each caption is once the right answer of matching and four times a wrong one, within each of five parts of the
    contests: captions alone give nothing away. The folder is in the layout of the published repository; its
    manifest.json says what it was made from and what was left out. Equal inputs and an equal seed give equal files.
    """
    from askance.cli.progress import Progress
    from askance.evals.newyorker import RawContests, aconstruct_tasks
    from askance.evals.run_folder import check_new
    from askance.models import run_sync
    from askance.workspace import Workspace

    check_new(options.out)
    raw = RawContests.open(
        annotations=options.annotations, captions=options.captions, explanations=options.explanations
    )
    with Workspace(store=options.store) as work, Progress("contests", len(raw.cartoons)) as progress:
        embedder = None if options.embedder is None else work.embedder(options.embedder)
        making = aconstruct_tasks(
            raw, embedder=embedder, seed=options.seed, unrated=options.unrated, on_progress=progress.update
        )
        tasks = run_sync(making)
    missing = tasks.write(options.out, pictures=options.images)
    _print_built(tasks, options, pictures_missing=len(missing))


def _print_built(tasks: ConstructedTasks, options: BuildOptions, *, pictures_missing: int) -> None:
    """Prints what was made, what was left out, and what the captions alone say of which is right."""
    from askance.evals.newyorker.task_construction import text_alone, wording_accuracy

    alone = text_alone(tasks, train=options.wording)
    wording = {task: wording_accuracy(tasks.option_sets(task), artifact) for task, artifact in alone.items()}
    artifacts = {task: {**artifact.form(), "right": wording[task]} for task, artifact in alone.items()}
    form = {**tasks.manifest, "pictures_missing": pictures_missing, "wording": artifacts}
    notes = () if options.as_json else _notes(tasks, options, pictures_missing)
    Report(lambda: form, lambda: _built(tasks, options, alone, wording), notes).print(as_json=options.as_json)


def _built(
    tasks: ConstructedTasks,
    options: BuildOptions,
    alone: Mapping[AuditedTask, AnnotationArtifacts],
    wording: Mapping[str, float | None],
) -> Iterator[Part]:
    """What was made, and what the captions alone say of which is right."""
    manifest = tasks.manifest
    contests, good = manifest["contests"], manifest["good_captions"]
    sources = ", ".join(f"{count:,} {source.replace('_', ' ')}s" for source, count in good.items())
    yield f"{options.out}: {contests['used']:,} of {contests['annotated']:,} contests; {sources}."
    yield "\nItems, in the mean over the five folds"
    rows: list[tuple[str, ...]] = [("", "train", "val", "test")]
    for task, folds in manifest["items"].items():
        means = (sum(fold[split] for fold in folds) / len(folds) for split in rows[0][1:])
        rows.append((f"  {task}", *(f"{mean:,.1f}" for mean in means)))
    yield Columns(rows)
    yield "\nFrom the captions alone, how often the right one is found"
    rows = [("", "a guess", "the longest", "by wording")]
    for task, artifact in alone.items():
        shares = (artifact.lengths.chance, artifact.lengths.longest_true.value, wording[task])
        rows.append((f"  {task}", *("–" if share is None else f"{share:.1%}" for share in shares)))
    yield Columns(rows)


def _notes(tasks: ConstructedTasks, options: BuildOptions, pictures_missing: int) -> Iterator[str]:
    """What was left out, and what was not told apart."""
    manifest = tasks.manifest
    for reason, group in manifest["contests_left_out"].items():
        yield f"{many(group['count'], 'contest')} left out: {reason}."
    for reason, group in manifest["contests_without_ranking"].items():
        yield f"{many(group['count'], 'contest')} without items of ranking: {reason}."
    for task, folds in manifest["items"].items():
        if 0 < sum(not fold["test"] for fold in folds) < len(folds):
            yield f"Some folds test no items of {task}: they are of fewer than five contests."
    if options.embedder is None:
        yield "Captions of like meaning were not told apart, only equal ones: no --embedder is named."
    if "no ratings" in manifest["contests_without_ranking"]:
        yield (
            "The authors' filter of captions without ratings was not published; --unrated takes such captions by a "
            "rule of form."
        )
    if options.images is not None and pictures_missing:
        yield f"{many(pictures_missing, 'contest')} without a picture in {str(options.images)!r}."


# --- errors ---


@app.command()
def errors(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs of newyorker/matching.")],
    shown: Annotated[
        int, typer.Option("--show", min=0, help="How many of the hardest and of the easiest contests are listed.")
    ] = 10,
    seed: Annotated[int, typer.Option(help="Of permutations and bootstraps.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say which contests are hard, whether errors cluster by contest, and whether two runs err on the same samples.

    χ² of contests by right or wrong, with two controls that should show nothing: the folds, and the captions that stand
    among the options as distractors. It reads the run folders alone and asks no model.
    """
    from askance.evals.newyorker import contest_difficulty
    from askance.evals.run import Run

    difficulty = contest_difficulty(*(Run.open(folder) for folder in folders), seed=seed)
    Report(difficulty.form, lambda: _error_parts(difficulty, shown=shown)).print(as_json=as_json)


def _error_parts(difficulty: ContestDifficulty, *, shown: int) -> Iterator[Part]:
    from askance.evals.analysis.compare import letter
    from askance.evals.tables import shown_value

    for place, run in enumerate(difficulty.runs):
        share = shown_value(run.right / run.samples, percent=True)
        yield f"{letter(place)}  {run.name}: {run.right:,} of {many(run.samples, 'sample')} right, {share} %"
        if run.unanswered:
            yield f"   {many(run.unanswered, 'sample')} without an answer"
    yield ""
    yield _tests(difficulty)
    yield ""
    yield _correlations(difficulty)
    if difficulty.pairs:
        yield ""
        yield _pairs(difficulty.pairs)
        yield ""
        for pair in difficulty.pairs:
            yield _independence(letter(pair.a), letter(pair.b), pair.errors)
            yield _independence(letter(pair.b), letter(pair.a), pair.errors_of_b)
    for name, contests in (("Hardest", difficulty.hard), ("Easiest", difficulty.easy)):
        if contests[:shown]:
            yield ""
            yield f"{name} of {many(len(difficulty.contests), 'contest')}, samples right:"
            yield _listed(contests[:shown], runs=len(difficulty.runs))
    yield ""
    yield "· folds and distractors are controls: without a leak they show nothing."
    yield "· p by permutation holds for any counts, that of χ² where five or more are expected in each cell."
    for pair in difficulty.pairs:
        if pair.unlike:
            unlike, both = many(pair.unlike, "sample"), f"{letter(pair.a)} and {letter(pair.b)}"
            yield f"· {unlike} of {both} were not asked the same: another picture, options or target."


def _tests(difficulty: ContestDifficulty) -> Columns:
    """χ² of each run and its controls."""
    from askance.evals.analysis.compare import letter, shown_p
    from askance.evals.tables import NONE

    rows = [("right by", "run", "rows", "χ²", "p of χ²", "p by permutation")]
    for name in ("contests", "folds", "distractors"):
        for place, run in enumerate(difficulty.runs):
            test = getattr(run, name)
            statistic = NONE if test.statistic is None else f"{test.statistic:,.1f}"
            rows.append(
                (name, letter(place), f"{test.rows:,}", statistic, shown_p(test.p), shown_p(test.permutation_p))
            )
    return Columns(rows, left=(0, 1), keys=2)


def _correlations(difficulty: ContestDifficulty) -> Columns:
    """How accuracy changes with the number of a contest, and whether two runs find the same contests hard."""
    from askance.evals.analysis.compare import letter, pair_of, shown_p
    from askance.evals.tables import NONE

    each = [("number of a contest, accuracy", letter(place), run.date) for place, run in enumerate(difficulty.runs)]
    each += [("accuracies of contests", pair_of(pair.a, pair.b), pair.contests) for pair in difficulty.pairs]
    rows = [("correlation of", "runs", "Spearman's rho", "p", "contests")]
    for name, runs, correlation in each:
        rho = NONE if correlation.rho is None else f"{correlation.rho:+.2f}"
        rows.append((name, runs, rho, shown_p(correlation.p), f"{correlation.n:,}"))
    return Columns(rows, left=(0, 1), keys=2)


def _pairs(pairs: Sequence[PairDifficulty]) -> Columns:
    """How often two runs agree, and how often they are right then."""
    from askance.evals.analysis.compare import pair_of
    from askance.evals.tables import NONE, shown_value

    rows = [("runs", "samples in both", "same answer, %", "right then, %")]
    rows += [
        (
            pair_of(pair.a, pair.b),
            f"{pair.samples:,}",
            shown_value(pair.same / pair.samples, percent=True) if pair.samples else NONE,
            shown_value(pair.same_right / pair.same, percent=True) if pair.same else NONE,
        )
        for pair in pairs
    ]
    return Columns(rows)


def _independence(wrong: str, other: str, independence: ErrorIndependence) -> str:
    """How often one run is right where another is wrong, in a sentence."""
    from askance.evals.analysis.compare import stated_p

    if independence.share is None or independence.expected is None:
        return f"{wrong} has no sample wrong, so that nothing is known of {other} there."
    wrongs = many(independence.b_alone + independence.both_wrong, "sample")
    sentence = f"Where {wrong} is wrong ({wrongs}), {other} is right in {100 * independence.share:.1f} %"
    tested = stated_p(independence.p)
    if independence.interval is not None:
        low, high = (f"{100 * limit:+.1f}" for limit in (independence.interval.low, independence.interval.high))
        tested += f"; 95 % interval of the difference {low} to {high} points"
    return f"{sentence}; were errors independent, in {100 * independence.expected:.1f} % ({tested})."


def _listed(contests: Sequence[ContestAccuracy], *, runs: int) -> Columns:
    from askance.evals.analysis.compare import letter

    rows = [("contest", *map(letter, range(runs)))]
    for each in contests:
        counts = (f"{right} of {count}" for right, count in zip(each.right, each.samples, strict=True))
        rows.append((f"#{each.contest}", *counts))
    return Columns(rows)
