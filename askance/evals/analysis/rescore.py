"""A run made again from its folder alone: a `rerun_job` runs its chain over its own records, `rescore` scores it anew.

A rerun shows what today's code would answer, and where it would make another request. Scoring anew applies a new
metric, a mended scorer or a mended parser, and checks what the folder says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from askance.errors import UsageError
from askance.evals.completeness import check_whole
from askance.evals.evaluation import EXTRACTOR
from askance.evals.job import Job, OnProgress
from askance.evals.run import Run, line_of_answer
from askance.evals.run_folder import amending, keep_attachments, write_lines
from askance.evals.run_format import PROMPTS, READ_BY, SAMPLES, SCORES
from askance.evals.sample import Prediction, SampleResult, reads_of
from askance.evals.scorer import figures_of, notes_on, scored, write_scores
from askance.evals.solver import Solver, as_solver, solved
from askance.models import Engine, use_draw
from askance.models.factory import model_from_form
from askance.nodes.reply import READERS
from askance.prompts import overlay_prompts

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.metric import Figure, MissingAnswerPolicy
    from askance.evals.task import Task

# --- the chain again ---

RerunOutcome = Literal["same", "different", "asked anew", "unrecorded"]
"""`same`: the prediction is equal. `different`: the same records give another one. `asked anew`: a request is not on
record. `unrecorded`: there was no answer, and the call that failed left no record."""

AT_ONCE = 16
"""Samples that are run or scored again at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """One sample of a run, run again."""

    was: SampleResult
    now: Prediction

    @property
    def outcome(self) -> RerunOutcome:
        """How the prediction compares with that of the run."""
        was, now = self.was.prediction, self.now
        missed = {name for name, link in now.links.items() if link.get("error") == "ReplayMiss"}
        if any(was.links.get(name, _NONE)["outcome"] not in _WITHOUT_RECORD for name in missed):
            return "asked anew"
        if _form(was, missed) != _form(now, missed):
            return "different"
        return "same" if was.answered or not missed else "unrecorded"


_NONE: Mapping[str, Any] = {"outcome": "answered"}
_WITHOUT_RECORD = frozenset({"failed", "skipped"})
"""Outcomes of calls that leave no record."""


def _form(prediction: Prediction, missed: Collection[str]) -> JsonObject:
    """All of a prediction that stays equal when it is made again.

    Args:
        prediction: of the run, or of the rerun.
        missed: links whose requests are not on record.
    """
    form = prediction.form()
    del form["meta"]
    if missed:  # the message of a failure may change between versions
        form["outcome"], form["reason"] = prediction.answered, None
        form["links"] = {
            name: (link["outcome"], link["calls"]) for name, link in prediction.links.items() if name not in missed
        }
    return form


def _solver(run: Run, task: type[Task]) -> Solver:
    """The run's solver over the run's own records; it makes no calls.

    Raises:
        UsageError: the task needs its data to make the solver, or the run does not describe its models.
    """
    engine = Engine(mode="replay", records=run.records)
    models = {role: model_from_form(form, engine) for role, form in run.configuration["models"].items()}
    samples = list({answer.sample.id: answer.sample for answer in run.answers}.values())
    own_task = task.of_run(run.configuration["options"], models=models, engine=engine, samples=samples)
    solver = as_solver(own_task.solver())
    return solver.with_extractor(models[EXTRACTOR]) if EXTRACTOR in models else solver


def rerun_job(run: Run, task: type[Task], *, own_prompts: bool = False) -> Job[SampleResult, Rerun, Rerun]:
    """Every sample of `run`, run again with today's code, as a job.

    Pictures are not needed, since their digests are known.

    Args:
        run: a run with its records.
        task: the class of its task.
        own_prompts: takes the prompts that the run has kept in place of today's.

    Raises:
        UsageError: the run cannot be run again without its data.
    """
    folder = run.path / PROMPTS
    with overlay_prompts(folder) if own_prompts and folder.is_dir() else nullcontext():
        solver = _solver(run, task)

    async def again(answer: SampleResult) -> Rerun:
        with use_draw(answer.epoch):
            return Rerun(was=answer, now=await solved(solver, answer.sample))

    return Job(items=run.answers, answer=again, room=lambda: AT_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """The answers of a run, read again from its own records with the prompts that it has kept."""

    answers: Sequence[SampleResult]
    """In the order of the run. A sample that cannot be read again keeps its answer."""
    ids: Mapping[RerunOutcome, Sequence[str]] = field(default_factory=dict[RerunOutcome, Sequence[str]])
    """By outcome, the ids of samples."""

    def of(self, *outcomes: RerunOutcome) -> tuple[str, ...]:
        """Ids of the samples with these outcomes, each once, in alphabetical order."""
        return tuple(sorted({name for outcome in outcomes for name in self.ids.get(outcome, ())}))


async def read_again(run: Run, task: type[Task], *, on_progress: OnProgress | None = None) -> Reread:
    """Runs the chain of `run` again and takes over answers that differ.

    Args:
        run: a run with its records.
        task: the class of its task.
        on_progress: called after every sample.

    Raises:
        UsageError: the run cannot be run again without its data.
    """
    answers: list[SampleResult] = []
    ids: defaultdict[RerunOutcome, list[str]] = defaultdict(list)
    job = rerun_job(run, task, own_prompts=True)
    job.tell(on_progress, "samples read again")
    async with job.answered() as again:
        async for _, each in again:
            was = each.was
            ids[each.outcome].append(was.sample.id)
            different = each.outcome == "different"
            answers.append(replace(was, prediction=replace(each.now, meta=was.prediction.meta)) if different else was)
    return Reread(answers=answers, ids=dict(ids))


# --- its scores again ---


@dataclass(frozen=True, kw_only=True)
class RescoreResult:
    """A run after it was scored again."""

    run: Run
    reread: int = 0
    """How many samples were run again over the run's own records."""
    changed: tuple[str, ...] = ()
    """Ids of samples whose answer changed."""
    kept: tuple[str, ...] = ()
    """Ids of samples that keep their answer, because a request that they would make is not on record."""
    lacks: tuple[str, ...] = ()
    """Why its lines cannot be held against the samples that it began with, one phrase each."""


async def rescore(
    run: Run,
    task: type[Task],
    *,
    reread: bool = False,
    convention: MissingAnswerPolicy | None = None,
    on_progress: OnProgress | None = None,
) -> RescoreResult:
    """Scores `run` again by the code of today, in its folder; done twice it changes nothing more.

    Args:
        run: finished or not.
        task: of the run.
        reread: run the chain again first, over the run's own records, so that a mended parser takes effect.
        convention: what becomes of non-answers; None is what the run has.
        on_progress: called after every sample that is read again, and after every one that is scored.

    Raises:
        UsageError: the run has no samples, its lines are not those of its samples, or the task makes its scorer (or its
            solver) only with its data.
        ReplayMiss: a similarity or a verdict that the scoring needs is not among the run's records.
        StoreError: another process is writing the folder.
    """
    if not run.answers:
        raise UsageError(f"The run {str(run.path)!r} has no samples yet.", hint="Go on with it: `askance eval run`.")
    whole = check_whole(run)
    with amending(run.path) as change:
        again = await read_again(run, task, on_progress=on_progress) if reread else Reread(answers=run.answers)
        changed, unchanged = again.of("different"), again.of("asked anew", "unrecorded")
        if changed:
            for answer in again.answers:
                if answer.sample.id in changed:
                    keep_attachments(run.path, answer.prediction.attachments)
            write_lines(run.path / SAMPLES, (line_of_answer(answer) for answer in again.answers))
        now = run.scored(again.answers, run.figures)
        answers, figures = await rescored(now, task, convention=convention, on_progress=on_progress)
        write_scores(run.path / SCORES, answers)
        read_by = {READ_BY: READERS} if reread and not unchanged else {}
        change(
            {
                **_described(now.scored(answers, figures), task),
                **read_by,
                "figures": [figure.form() for figure in figures],
            }
        )
    count = len(again.answers) if reread else 0
    return RescoreResult(run=Run.open(run.path), reread=count, changed=changed, kept=unchanged, lacks=whole.lacks)


def _described(run: Run, task: type[Task]) -> Mapping[str, Any]:
    """The entries of `run.json` that change beside the figures, for a run that was scored again."""
    engine = Engine(mode="replay", records=run.records)
    scoring = task.of_run(run.configuration["options"], engine=engine).scorer()
    outcomes = Counter(answer.prediction.outcome for answer in run.answers)
    reads = reads_of((answer.prediction.outcome, answer.prediction.rung) for answer in run.answers)
    totals = {name: value for name, value in run.totals.items() if name != "read"}
    totals |= {"samples": len(run.answers), "outcomes": dict(sorted(outcomes.items()))}
    return {
        "totals": {**totals, "read": reads} if reads else totals,
        "notes": [*scoring.notes, *run.data_notes, *notes_on(run.answers, scoring, convention=run.convention)],
        **({"origin": task.origin()} if task.origin() else {}),
    }


async def rescored(
    run: Run,
    task: type[Task],
    *,
    convention: MissingAnswerPolicy | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[Sequence[SampleResult], tuple[Figure, ...]]:
    """The scores and figures of `run` by the code of today; nothing is asked, the folder is not touched.

    Args:
        run: with its records.
        task: the class of its task.
        convention: what becomes of non-answers; None is what the run has.
        on_progress: called after every sample.

    Raises:
        UsageError: the task makes its scorer only with its data.
        ReplayMiss: a similarity or a verdict that the scoring needs is not among the run's records.
    """
    engine = Engine(mode="replay", records=run.records)
    scoring = task.of_run(run.configuration["options"], engine=engine).scorer()
    job = Job(items=run.answers, answer=lambda answer: scored(answer, scoring), room=lambda: AT_ONCE)
    job.tell(on_progress, "samples scored")
    answers = await job.run()
    return answers, figures_of(answers, scoring, convention=convention or run.convention, seed=run.seed)
