"""Checking a pack: whether its answers, scores, figures and tables follow from its own records.

What does not follow is told apart from what the readers of another version may have read differently: a run names the
version of the readers that made it. `FILES` says of each file what follows from the records and what is only claimed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from askance import __version__
from askance.amounts import many
from askance.chat import key_of
from askance.errors import AskanceError, UsageError
from askance.evals.analysis.rescore import RerunOutcome, read_again, rerun_job, rescored
from askance.evals.completeness import completeness, unused_records
from askance.evals.run_format import CALLS, MATRICES, PROMPTS, RANKINGS, SCORES, ScoreLine, lines_of
from askance.evals.run_tables import task_tables
from askance.evals.sample import ATTACHMENTS, SampleResult
from askance.evals.task_catalog import packaged
from askance.evals.yaml_task import task_from_form
from askance.nodes.reply import READERS
from askance.replay import verify

if TYPE_CHECKING:
    from askance.evals.analysis.pack import Pack
    from askance.evals.job import OnProgress
    from askance.evals.metric import Figure
    from askance.evals.run import Run
    from askance.evals.task import Task

SHOWN = 3
"""How many examples are named of one kind of difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOrigin:
    """Where what stands in a file of a pack comes from."""

    derived: tuple[str, ...] = ()
    """What follows from the records, and is made again."""
    claimed: tuple[str, ...] = ()
    """What whoever made the pack says, and nothing else shows; a signature vouches for it."""


FILES: Mapping[str, FileOrigin] = {
    "manifest.json": FileOrigin(derived=("digests of all files",), claimed=("names of runs", "version")),
    "run.json": FileOrigin(
        derived=("figures", "totals", "hash of the configuration"),
        claimed=(
            "dates",
            "versions",
            "label",
            "notes",
            "options",
            "number and digest of the samples",
            "origin",
            "seed",
            "counters",
        ),
    ),
    "samples.jsonl": FileOrigin(
        derived=("outcomes", "answers", "reasons", "calls"),
        claimed=("the samples, which have the digest in run.json", "times", "tokens", "costs"),
    ),
    "scores.jsonl": FileOrigin(derived=("everything",)),
    RANKINGS: FileOrigin(derived=("everything",)),
    MATRICES: FileOrigin(derived=("everything",)),
    "calls.jsonl": FileOrigin(
        derived=("keys of the requests",), claimed=("replies", "dates", "records that nothing rests on")
    ),
    "prompts": FileOrigin(derived=("those that requests were made with",), claimed=("all others",)),
    "tables": FileOrigin(derived=("figures",), claimed=("names of runs", "notes")),
    "images": FileOrigin(derived=("digest of each",)),
    "schemas": FileOrigin(claimed=("everything",)),
}
"""Of each file or folder in a pack."""


@dataclass(frozen=True, kw_only=True)
class RunCheck:
    """What the check of one run found."""

    name: str
    task: str
    samples: int
    records: int
    readers: int
    """Version of the reply readers, as the run says."""
    differences: tuple[str, ...] = ()
    """What does not follow from the run's records, one sentence each."""
    read_otherwise: tuple[str, ...] = ()
    """What today's reply readers read differently than those of the run's version, one sentence each."""
    unchecked: int = 0
    """How many answers cannot be made again from the records."""
    why_unchecked: str = ""
    unrecorded: int = 0
    """How many samples have no answer because of a call without a record, such as one that failed."""
    lacks: tuple[str, ...] = ()
    """Why its lines cannot be held against the samples that it began with, one phrase each."""
    unused_records: int = 0
    """How many records no sample and no score rests on."""
    unused_prompts: tuple[str, ...] = ()
    """Prompt files that its configuration does not name."""
    again: Mapping[RerunOutcome, int] = field(default_factory=dict["RerunOutcome", int])
    """How many samples were run again, by outcome; empty if that was not asked for."""
    changed: tuple[str, ...] = ()
    """The first few samples whose answer is not the same, one sentence each."""


@dataclass(frozen=True, kw_only=True)
class PackCheck:
    """What the check of a pack found."""

    digest: str
    runs: tuple[RunCheck, ...]
    tables: Mapping[str, str]
    """The text of each table, made anew from the records."""
    differing: tuple[str, ...]
    """Names of tables that do not follow from the pack's own scores."""

    @property
    def follows(self) -> bool:
        """Whether nothing in the pack contradicts its records, as far as they can be read."""
        return not self.differing and not any(run.differences for run in self.runs)

    @property
    def read_otherwise(self) -> bool:
        """Whether today's reply readers read some replies differently."""
        return any(run.read_otherwise for run in self.runs)

    @property
    def unchecked(self) -> int:
        """How many answers cannot be made again from the records."""
        return sum(run.unchecked for run in self.runs)

    @property
    def sound(self) -> bool:
        """Whether all that is derived follows from the records, as they are read today; see `FILES`."""
        return self.follows and not self.read_otherwise and not self.unchecked


async def check_pack(
    pack: Pack,
    *,
    tasks: Mapping[str, type[Task]] | None = None,
    again: bool = False,
    on_progress: OnProgress | None = None,
) -> PackCheck:
    """Reads the recorded replies again, scores the answers, and makes the tables anew.

    Every chain is run again over the run's own records, with the prompts that the run has kept. So an answer is
    confirmed only if it follows from replies to exactly the requests that the chain makes. No pack can show that the
    replies were written by a model.

    Args:
        pack: an opened pack; its digests are checked already.
        tasks: by name, your own tasks that the pack has runs of. A file that only the pack names is never loaded.
        again: whether the chains are also run with today's prompts.
        on_progress: called after every sample of a run that is read again, scored, or run again.
    """
    runs = [await _checked(run, tasks or {}, again=again, on_progress=on_progress) for run in pack.runs]
    claimed, derived = task_tables([own for own, _, _ in runs]), task_tables([read for _, read, _ in runs])
    names = sorted({*claimed, *pack.tables})
    return PackCheck(
        digest=pack.digest,
        runs=tuple(checked for _, _, checked in runs),
        tables=derived,
        differing=tuple(name for name in names if claimed.get(name) != pack.tables.get(name)),
    )


def _task(run: Run, own: Mapping[str, type[Task]]) -> type[Task]:
    """The task of a run that a stranger may have made.

    Raises:
        UsageError: it is neither packaged nor one of `own`, and the run declares none.
    """
    declaration: Any = run.origin.get("declaration")
    known = own.get(run.task) or packaged().get(run.task)
    if known is None and declaration is not None:
        return task_from_form(declaration, name=run.task)
    if known is None:
        raise UsageError(f"The task {run.task!r} is not part of askance.", hint="Name its file: `--task my_task.py`.")
    return known


async def _checked(
    run: Run, tasks: Mapping[str, type[Task]], *, again: bool, on_progress: OnProgress | None
) -> tuple[Run, Run, RunCheck]:
    """The run with its own answers scored anew, the run with its answers read anew, and the check."""
    whole = completeness(run)
    differences = [*_description(run), *whole.faults, *_records(run), *_unnamed(run)]
    results: Counter[RerunOutcome] = Counter()
    changed: list[str] = []
    own = read = run
    unused = len(unused_records(run))
    reread = _RereadRun(run.answers)
    try:
        task = _task(run, tasks)
    except AskanceError as error:
        reread.unchecked, reread.why = len(run.answers), _sentence(error)
    else:
        reread = await _read(run, task, on_progress)
        try:
            answers, figures = await rescored(run, task, on_progress=on_progress)
            differences += [*_scores(run.answers, answers), *_figures(run.figures, figures)]
            own = read = run.scored(answers, figures)
            unused = len(unused_records(run, answers))
            if reread.different:
                now = run.scored(reread.answers, figures)
                answers, figures = await rescored(now, task, on_progress=on_progress)
                reread.figures = list(_figures(own.figures, figures))
                read = run.scored(answers, figures)
        except AskanceError as error:
            differences.append(f"it cannot be scored again: {error.message}")
        if again:
            changed = await _run_again(run, task, results, on_progress=on_progress)
    otherwise = tuple(reread.words) if run.readers != READERS else ()
    checked = RunCheck(
        name=run.path.name,
        task=run.task,
        samples=len(run.answers),
        records=len(run.records),
        readers=run.readers,
        differences=(*differences, *(() if otherwise else reread.words)),
        read_otherwise=otherwise,
        unchecked=reread.unchecked,
        why_unchecked=reread.why,
        unrecorded=reread.unrecorded,
        lacks=whole.lacks,
        unused_records=unused,
        unused_prompts=tuple(_unused_prompts(run)),
        again=dict(results),
        changed=tuple(changed),
    )
    return own, read, checked


@dataclass
class _RereadRun:
    """The answers of a run as today's reply readers read its records."""

    answers: Sequence[SampleResult]
    different: Sequence[str] = ()
    """Ids of samples with another answer."""
    figures: list[str] = field(default_factory=list[str])
    """How the figures differ because of them."""
    unrecorded: int = 0
    unchecked: int = 0
    why: str = ""

    @property
    def words(self) -> Iterator[str]:
        """The differences, one sentence each."""
        if self.different:
            count = len(self.different)
            yield (
                f"{count:,} of {len(self.answers):,} answers {'is' if count == 1 else 'are'} not what "
                f"{'its' if count == 1 else 'their'} records are read as, such as {_such_as(self.different)}"
            )
            yield from self.figures


async def _read(run: Run, task: type[Task], on_progress: OnProgress | None) -> _RereadRun:
    """Reads the answers of a run again."""
    count = len(run.answers)
    try:
        again = await read_again(run, task, on_progress=on_progress)
    except AskanceError as error:
        return _RereadRun(run.answers, unchecked=count, why=_sentence(error))
    different, asked_anew = again.ids.get("different", ()), again.ids.get("asked anew", ())
    reread = _RereadRun(again.answers, different, unrecorded=len(again.ids.get("unrecorded", ())))
    if asked_anew and run.made_by == __version__ and run.readers == READERS:
        reread.different = [*different, *asked_anew]
    elif asked_anew:
        reread.unchecked = len(asked_anew)
        reread.why = (
            f"askance {__version__} asks otherwise than askance {run.made_by or '(of no version)'} did, such as about "
            f"{_such_as(asked_anew)}"
        )
    return reread


async def _run_again(
    run: Run, task: type[Task], results: Counter[RerunOutcome], *, on_progress: OnProgress | None
) -> list[str]:
    """Runs the chain with today's prompts; returns the first few samples whose answer is not the same, as sentences."""
    changed: list[str] = []
    try:
        job = rerun_job(run, task)
        job.tell(on_progress, "samples run again")
        async with job.answered() as again:
            async for _, each in again:
                results[each.outcome] += 1
                if each.outcome != "same" and len(changed) < SHOWN:
                    changed.append(_difference_text(each.was, each.outcome, each.now.reason))
    except AskanceError as error:
        changed.append(f"it is not run again: {_sentence(error)}")
    return changed


def _sentence(error: AskanceError) -> str:
    text = f"{error.message.rstrip('.')} ({error.hint.rstrip('.')})" if error.hint else error.message.rstrip(".")
    return f"{text[:1].lower()}{text[1:]}"


def _such_as(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:SHOWN]))


def _records(run: Run) -> Iterator[str]:
    """What is wrong with the records: keys that are not those of their requests, and answers without a record."""
    for problem in verify(run.records):
        if not problem.usable:
            yield f"the record {problem.key[:12]}: {problem.message}"
    missing = [answer.sample.id for answer in run.answers if any(run.records.get(key) is None for key in answer.keys)]
    if missing:
        examples = ", ".join(map(repr, missing[:SHOWN]))
        yield f"{len(missing)} samples rest on records that are not in {CALLS}, such as {examples}"


def _unnamed(run: Run) -> Iterator[str]:
    """Files of attachments that no sample has."""
    named = {each.place for answer in run.answers for each in answer.prediction.attachments}
    for folder in (kind.folder for kind in ATTACHMENTS):
        unnamed = [file.name for file in (run.path / folder).glob("*") if f"{folder}/{file.name}" not in named]
        if unnamed:
            of_none = "is of no sample" if len(unnamed) == 1 else "are of no sample"
            yield f"{len(unnamed):,} of its {folder} {of_none}: {_such_as(sorted(unnamed))}"


def _scores(was: Sequence[SampleResult], now: Sequence[SampleResult]) -> Iterator[str]:
    differing = [old.sample.id for old, new in zip(was, now, strict=True) if not _same_score(old, new)]
    if differing:
        examples = ", ".join(map(repr, differing[:SHOWN]))
        yield f"{len(differing)} samples are scored differently now, such as {examples}"


def _same_score(was: SampleResult, now: SampleResult) -> bool:
    if was.score is None or now.score is None:
        return was.score is now.score
    old, new = was.score.values, now.score.values
    return old.keys() == new.keys() and all(_equal(old[name], new[name]) for name in old)


def _description(run: Run) -> Iterator[str]:
    """What is wrong with hash, totals and end of a run, as `run.json` has them."""
    if run.finished is None or run.left:
        yield "it is not finished"
    if run.facts.get("hash", key := key_of("run", dict(run.configuration))) != key:
        yield "its hash is not that of its configuration"
    counted = Counter(answer.prediction.outcome for answer in run.answers)
    derived = {"samples": len(run.answers), "outcomes": dict(counted)}
    if any(name in run.totals and run.totals[name] != value for name, value in derived.items()):
        yield "its totals are not those of its samples"
    if run.totals.get("records", len(run.records)) != len(run.records):
        yield "its totals are not those of its records"
    answered = {(answer.sample.id, answer.epoch) for answer in run.answers if answer.prediction.answered}
    lines = [(str(line["id"]), line["epoch"]) for line in lines_of(run.path / SCORES, ScoreLine)]
    if odd := [name for name, epoch in lines if (name, epoch) not in answered]:
        yield f"{SCORES}: {many(len(odd), 'line is', 'lines are')} of no answered sample, such as that of {min(odd)!r}"


def _unused_prompts(run: Run) -> Iterable[str]:
    """Prompt files that the configuration does not name; no request was made with them."""
    return sorted({file.name for file in (run.path / PROMPTS).glob("*")} - run.solver.get("prompts", {}).keys())


def _figures(was: Sequence[Figure], now: Sequence[Figure]) -> Iterator[str]:
    old, new = ({figure.metric: figure for figure in figures} for figures in (was, now))
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"{name} is no metric of the task any more"
        elif name not in old:
            yield f"{name} is a metric that the pack does not have"
        elif not _equal(old[name].value, new[name].value):
            yield f"{name} was {_shown(old[name].value)} and is {_shown(new[name].value)}"
        else:
            yield from _parts(name, old[name].form(), new[name].form())


def _parts(name: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Differences of a figure beside its value: in interval, counts and bounds."""
    for part in sorted({*was, *now}):
        old, new, words = was.get(part), now.get(part), f"{name}, {part.replace('_', ' ')}"
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _parts(words, cast("dict[str, Any]", old), cast("dict[str, Any]", new))
        elif not (old == new or (_number(old) and _number(new) and _equal(old, new))):
            yield f"{words} was {_plain(old)} and is {_plain(new)}"


def _number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float)


def _plain(value: Any) -> str:
    return _shown(value) if _number(value) else "none" if value is None else str(value)[:40]


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _difference_text(was: SampleResult, change: RerunOutcome, reason: str | None) -> str:
    first = (reason or "").partition("\n")[0]
    return f"{was.sample.id!r}: {change}{f' ({first})' if first else ''}"
