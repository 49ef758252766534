"""`askance data`: what a folder with a data set holds and lacks, why rows are dropped, and questions made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.columns import Part, Report, Section
from askance.cli.group import command_group
from askance.cli.options import AsJson, JudgeForm, PromptCalls, spelled_out
from askance.cli.process import HELP, OK, SOME
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.cli.tally import Tally
    from askance.evals.newyorker import NewYorkerReport
    from askance.evals.pittads import DataReport, Dropped
    from askance.evals.sherlock import CorpusReport, SherlockReport
    from askance.evals.suite.files import Counted, FolderReport
    from askance.evals.whoops import WeirdImage, WhoopsReport
    from askance.evals.whoops.questions import QuestionMaker, QuestionSet
    from askance.models import Model
    from askance.workspace import Workspace

app = command_group("Data sets on the disk: check what is there, and make more of it.")
checks = command_group(
    "Say what is there, what can be used, and why the rest cannot; exit code 1 where something should be mended."
)
app.add_typer(checks, name="check")

Row = tuple[str, ...]
"""A row of a report: what, how many, and which; or a sentence."""


@checks.command()
def pittads(
    folder: Annotated[Path, typer.Argument(help="The folder that holds its files, in any of the layouts.")],
    ids: Annotated[
        Path | None, typer.Option("--ids", help="A list of images (lines, JSON or CSV): how many of them can be used.")
    ] = None,
    qa: Annotated[
        Path | None, typer.Option("--qa", help="Another file of statements than the folder's, such as hard negatives.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the persuasive ads of PittAds, releases A and B: statements, atypicality annotations, images."""
    from askance.evals.pittads import check

    report = check(folder, ids=ids, qa=qa)
    _end_check(report, sections(report), as_json=as_json)


@checks.command()
def whoops(
    folder: Annotated[Path, typer.Argument(help="The folder that holds it: CSV, image folder, parquet or Arrow.")],
    ids: Annotated[
        Path | None, typer.Option("--ids", help="A list of images (lines or JSON): what is said is of these alone.")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="Folder of weird and normal images; by default pairs/ of the folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the weird images of WHOOPS!: captions, explanations, questions, pictures, and pairs with normal images."""
    from askance.evals.whoops import check

    report = check(folder, ids=ids, pairs=pairs)
    _end_check(report, weird_sections(report), as_json=as_json)


@checks.command()
def newyorker(
    folder: Annotated[
        Path, typer.Argument(help="The folder that holds it: parquet, JSON lines, the repository, the leaderboard.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the New Yorker caption contest: cartoons, descriptions, three tasks in five folds, the leaderboard."""
    from askance.evals.newyorker import check

    report = check(folder)
    _end_check(report, contest_sections(report), as_json=as_json)


@checks.command()
def sherlock(
    folder: Annotated[Path, typer.Argument(help="The folder that holds it: corpus, leaderboard files, proposals.")],
    images: Annotated[
        Path | None,
        typer.Option("--images", help="Folder of the pictures; by default images/ of the folder."),
    ] = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Read all pairs of retrieval and localization; this takes minutes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the regions and inferences of Sherlock: corpus, chunks, pictures, boxes, and the leaderboard's pairs."""
    from askance.evals.sherlock import check

    report = check(folder, images=images, all_pairs=all_pairs)
    _end_check(report, region_sections(report), as_json=as_json)


def _end_check(report: FolderReport, parts: Mapping[str, Sequence[Row]], *, as_json: bool) -> None:
    """Prints what was found, and ends the command; parts without rows are left out."""
    told = {"To know": report.notes, "To mend": report.problems}
    rows_of = {**parts, **{title: [(text,) for text in texts] for title, texts in told.items()}}
    found = Report(
        report.canonical,
        lambda: [report.folder, *(Section(title, rows) for title, rows in rows_of.items() if rows)],
        ends=lambda: OK if report.sound else SOME,
    )
    raise typer.Exit(found.print(as_json=as_json))


def sections(report: DataReport) -> Mapping[str, Sequence[Row]]:
    """The parts of a report as rows."""
    return {
        "Files": [(file.part, file.holds, file.path) for file in report.files],
        "Images": [*_counts(report)],
        f"Statements of {report.release}": [*_statements(report)],
        f"Rows dropped, of {report.rows:,}": _reasons(report.rows_dropped),
        f"Images dropped, of {report.annotated:,}": _reasons(report.images_dropped),
        "The list": [*_list(report)],
    }


def _counts(report: DataReport) -> Iterator[Row]:
    from askance.evals.suite import FULL_SET, SMALL_SET

    if report.sets:
        yield (
            "with usable objects",
            f"{report.sets['usable']:,}",
            f"of {FULL_SET:,}: the full set by the published code",
        )
        yield "with a category", f"{report.sets['labelled']:,}", f"of {FULL_SET:,}: the full set by the paper's words"
        drawn = min(SMALL_SET, report.sets["usable"])
        yield "of a small set", f"{drawn:,}", f"of {SMALL_SET}: drawn by a seed, as the paper's own is not published"
        yield "typical", f"{report.sets['typical']:,}", "that all annotators find regular"
    where = ", ".join(f"{count:,} {part}" for part, count in report.images.items())
    yield "images on the disk", f"{sum(report.images.values()):,}", where
    if report.images_missing:
        yield "of them missing", f"{len(report.images_missing):,}", _some(report.images_missing)


def _statements(report: DataReport) -> Iterator[Row]:
    for name, counts in (("options", report.options), ("true", report.true)):
        for number, count in counts.items():
            yield f"images with {number} {name}", f"{count:,}"


def _reasons(dropped: Sequence[Dropped]) -> list[Row]:
    return [(group.reason, f"{group.count:,}", _some(group.examples, all_=group.count)) for group in dropped]


def _list(report: DataReport) -> Iterator[Row]:
    if report.listed is not None:
        yield "can be evaluated on", f"{report.listed.kept:,}", f"of {report.listed.listed:,}"
        yield from _reasons(report.listed.dropped)
        if report.listed.unknown:
            yield "match nothing", f"{len(report.listed.unknown):,}", _some(report.listed.unknown)


def _some(names: Sequence[str], *, all_: int | None = None) -> str:
    count = len(names) if all_ is None else all_
    return ", ".join(names[:3]) + (" …" if count > len(names[:3]) else "")


def _counted(counts: Iterable[tuple[str, Counted]], *, note: str = "") -> list[Row]:
    return [(name, f"{count.found:,}", f"of {count.published:,}{note}") for name, count in counts]


def weird_sections(report: WhoopsReport) -> Mapping[str, Sequence[Row]]:
    """The parts of a report on WHOOPS! as rows."""
    return {
        "Files": [(report.layout, file) for file in report.files],
        "Found" if report.listed is None else "Found for the list": _counted(
            report.counts.items(), note=" that are published"
        ),
        "Commonsense categories": [(name, f"{count:,}") for name, count in report.categories.items()],
    }


def contest_sections(report: NewYorkerReport) -> Mapping[str, Sequence[Row]]:
    """The parts of a report on the New Yorker caption contest as rows."""
    places: dict[tuple[str, str], list[str]] = {}
    for source in report.sources:
        places.setdefault((source.task, source.kind), []).append(str(source.fold))
    return {
        "Files": [
            (kind, task, "" if kind == "leaderboard" else f"fold {', '.join(folds)}")
            for (task, kind), folds in places.items()
        ],
        "Found": _counted(report.counts.items(), note=" that are published"),
        "Items of a fold, means over the folds": _counted(
            (f"{task}, {split}", count) for task, splits in report.items.items() for split, count in splits.items()
        ),
        "Items that fold 0 tests": _counted(report.fold_0.items()),
        "Items of the leaderboard": _counted(report.leaderboard.items()),
        "Captions of matching, in each split of each fold": [
            ("right once, wrong four times", f"{report.captions - report.unbalanced:,}", f"of {report.captions:,}")
        ]
        * bool(report.captions),
    }


def region_sections(report: SherlockReport) -> Mapping[str, Sequence[Row]]:
    """The parts of a report on Sherlock as rows."""
    corpus = report.corpus
    return {
        "Files": [(file,) for file in report.files],
        "Training corpus": [] if report.training is None else [("instances", f"{report.training:,}")],
        "Validation corpus, in which each id is the MD5 of its inputs": _counted(
            corpus.counts.items() if corpus else (), note=" that are published"
        ),
        "How sure annotators were": _counted(corpus.confidence.items() if corpus else ()),
        "Chunks": [_chunk_row(corpus)] if corpus and corpus.chunks else [],
        "Pairs of the leaderboard": [*_pair_rows(report.pairs)],
    }


def _pair_rows(pairs: Mapping[str, int]) -> Iterator[Row]:
    """Those of retrieval, of which there are many parts, in one row of a split."""
    chunks: dict[str, list[int]] = {}
    for name, count in pairs.items():
        split, task = name.split("_")[:2]
        chunks.setdefault(f"{split} {task}", []).append(count)
    for name, counts in chunks.items():
        yield name, f"{sum(counts):,}", f"in {many(len(counts), 'chunk')}" if name.endswith("retrieval") else ""


def _chunk_row(corpus: CorpusReport) -> Row:
    sizes = [count.found for count in corpus.chunks.values()]
    return "chunks", f"{len(sizes):,}", f"of {min(sizes):,} to {max(sizes):,} instances"


questions = command_group(
    "Make questions from captions; each goes through gates, and every one that is dropped says why."
)
app.add_typer(questions, name="make-questions")


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """The options of one `askance data make-questions` beside those of its calls; None is not given."""

    folder: Annotated[Path, typer.Argument(help="The folder of WHOOPS!: CSV, image folder, parquet or Arrow.")]
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the files and the run; the same command goes on.")
    ]
    llm: Annotated[
        str | None,
        typer.Option(
            help="The model that finds answers and writes questions: a spec such as openai:gpt-4o, or a name."
        ),
    ] = None
    reader: Annotated[str | None, typer.Option(help="Answers them from the caption; by default the LLM.")] = None
    blind: Annotated[str | None, typer.Option(help="Answers them without anything; by default the LLM.")] = None
    judge: Annotated[str | None, typer.Option(help="Holds two answers against each other; by default the LLM.")] = None
    judge_form: JudgeForm = "rubric"
    count: Annotated[int, typer.Option(min=1, help="Answers of a caption at most.")] = 5
    limit: Annotated[int | None, typer.Option(min=1, help="So many images, the first ones.")] = None
    ids: Annotated[Path | None, typer.Option(help="The images of a list: lines or JSON.")] = None
    sheet: Annotated[
        Path | None, typer.Option(help="Folder for a sheet that people check: a page, a CSV file, and the key to it.")
    ] = None
    sheet_images: Annotated[int, typer.Option(min=1, help="Images of the sheet at most.")] = 100
    seed: Annotated[int, typer.Option(help="Of what the sheet draws.")] = 0
    as_json: AsJson = False


@questions.command("whoops", epilog=HELP)
@spelled_out
def make_questions(options: QuestionOptions, calls: PromptCalls) -> None:
    """Make questions about the images of WHOOPS! from their captions, as section 4.2 of its paper does.

    Exit code 1 where captions are left: by the budget, or because they have no answer.
    """
    from askance.cli.execute import execute
    from askance.cli.workspace import open_workspace
    from askance.evals.run_format import LEDGER
    from askance.evals.whoops import Whoops
    from askance.evals.whoops.questions import amake, question_job

    entries = Whoops.open(options.folder, ids=options.ids).with_all("captions")[: options.limit]
    with open_workspace(calls, ledger=options.out / LEDGER) as work:
        maker = _maker(options, work)
        code = execute(
            work,
            lambda progress: amake(entries, maker, out=options.out, on_progress=progress.update),
            lambda made: Report(
                lambda: _questions_form(made),
                lambda: _gates(made),
                breaks=False,
                ends=lambda: _end_questions(options, made, entries, work.tally),
            ),
            plan=lambda: question_job(entries, maker).plan(),
            as_json=options.as_json,
            progress=lambda: work.progress("captions"),
        )
    raise typer.Exit(code)


def _end_questions(options: QuestionOptions, made: QuestionSet, entries: Sequence[WeirdImage], tally: Tally) -> int:
    """Says what became of the captions, and writes the sheet for people; returns the exit code."""
    echo(f"{_end(made)}\n{tally}", err=True)
    if options.sheet is not None:
        echo(_sheet(options.sheet, options, made, entries), err=True)
    return OK if made.complete else SOME


def _maker(options: QuestionOptions, work: Workspace) -> QuestionMaker:
    """The models that make and check the questions.

    Raises:
        UsageError: no model is named.
    """
    from askance.evals.whoops.questions import QuestionMaker

    llm = options.llm or work.default_model("llm")
    if llm is None:
        raise UsageError(
            "No model is named that writes the questions.",
            hint="On this machine: --local. An API: --llm openai:gpt-4o. Or set `llm` in askance.toml.",
        )

    def model(name: str | None) -> Model:
        return work.model(name or work.local_model or llm)

    return QuestionMaker(
        model(llm),
        reader=model(options.reader),
        blind=model(options.blind),
        judge=model(options.judge),
        judge_form=options.judge_form,
        count=options.count,
        prompts=work.library,
    )


def _sheet(out: Path, options: QuestionOptions, made: QuestionSet, entries: Sequence[WeirdImage]) -> str:
    """Writes the sheet for people; returns what is printed about it.

    Raises:
        UsageError: no question is left to check.
    """
    from askance.evals.negatives.validation import KEY, PAGE, TABLE
    from askance.evals.whoops.questions import write_validation

    by_id: Mapping[str, WeirdImage] = {entry.id: entry for entry in entries}
    sheet = write_validation(
        out, made.kept, images=lambda key: by_id[key].load(), count=options.sheet_images, seed=options.seed
    )
    return (
        f"{out / PAGE} and {out / TABLE}: {many(len(sheet.items), 'line')}. Raters get one of the "
        f"two, never {out / KEY}, "
        f"which says what is true; `askance negatives sample --key … --answers …` reads back what they say."
    )


def _questions_form(made: QuestionSet) -> JsonObject:
    """The questions in numbers, as JSON."""
    return {
        "folder": str(made.folder),
        "captions": made.captions,
        "done": made.done,
        "left": made.left,
        "candidates": made.candidates,
        "passed": dict(made.passed),
        "dropped": [{"gate": gate, "reason": reason, "pairs": n} for (gate, reason), n in made.dropped.items()],
        "without_answers": dict(made.reasons),
        "questions": sum(len(pairs) for pairs in made.kept.values()),
    }


def _gates(made: QuestionSet) -> Iterator[Part]:
    """The counts at each gate, and why pairs were dropped there."""
    from askance.evals.tables import Table
    from askance.evals.whoops.questions import DROPPED, GATES, KEPT

    before, rows = made.candidates, list[tuple[str, int, int, str]]()
    for gate in GATES:
        left = made.passed[gate]
        why = "; ".join(f"{n:,} {reason}" for (each, reason), n in made.dropped.items() if each == gate)
        rows.append((gate, left, before - left, why))
        before = left
    yield Table(columns=("gate", "pass", "dropped", "why"), rows=tuple(rows))
    images = sum(map(bool, made.kept.values()))
    yield f"{made.folder / KEPT}  {many(before, 'question')} of {many(images, 'image')}"
    yield f"{made.folder / DROPPED}  {many(made.candidates - before, 'pair')} with the gate that stopped them, and why"


def _end(made: QuestionSet) -> str:

    summary = f"{made.done:,} of {made.captions:,} captions: {many(made.candidates, 'answer')} found."
    without = ", ".join(f"{n:,} {outcome}" for outcome, n in made.reasons.items() if outcome != "answered")
    if without:
        summary += f" Captions without any: {without}."
    if made.left:
        summary += (
            f" The budget had nothing left for {many(made.left, 'caption')}: the same command with a "
            "larger one goes on."
        )
    elif not made.complete:
        summary += " The same command asks again for what failed, with --retry for what could not be read."
    return summary
