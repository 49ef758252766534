"""A run gone through again from its folder alone: its chain over its own records, and its scores and figures.

A rerun says what would be answered by the code of today, and where another request would be made. Scoring again takes
another metric, a mended scorer or a mended parser into account, and checks what was written down.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from askance.concurrency import map_in_order
from askance.errors import UsageError
from askance.evals.run import Run, line_of_answer
from askance.evals.run_folder import amending, links_of_today, write_lines
from askance.evals.run_format import PROMPTS, READ_BY, SAMPLES, SCORES
from askance.evals.scorer import figures_of, scored, unscored_note, write_scores
from askance.evals.solver import solved
from askance.models import Engine, use_draw
from askance.models.factory import model_from_form
from askance.nodes.reply import READERS
from askance.prompts import overlay_prompts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from askance.chat import JsonObject
    from askance.evals.metric import Figure, MissingAnswerPolicy
    from askance.evals.run import SampleResult
    from askance.evals.sample import Prediction
    from askance.evals.solver import Solver
    from askance.evals.task import Task

# --- the chain again ---

RerunOutcome = Literal["same", "different", "asked anew", "unrecorded"]
"""The prediction is equal; another one is read from the same records; a request is not on record; it is no answer, and
the call that gave none has left no record."""

AT_ONCE = 16
"""Samples that are run again at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """One sample of a run, run again."""

    was: SampleResult
    now: Prediction
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Links that the run may know by an earlier name, each with its name of today."""

    @property
    def outcome(self) -> RerunOutcome:
        """What became of it."""
        was, now = _named_as(self.was.prediction, self.now, self.names), self.now
        missed = {name for name, link in now.links.items() if link.get("error") == "ReplayMiss"}
        if any(was.links.get(name, _NONE)["outcome"] not in _WITHOUT_RECORD for name in missed):
            return "asked anew"
        named = was.links.keys() == self.was.prediction.links.keys()
        if _form(was, missed, named=named) != _form(now, missed, named=named):
            return "different"
        return "same" if was.answered or not missed else "unrecorded"


_NONE: Mapping[str, Any] = {"outcome": "answered"}
_WITHOUT_RECORD = frozenset({"failed", "skipped"})
"""Outcomes of calls that leave no record."""


def _named_as(was: Prediction, now: Prediction, names: Mapping[str, str]) -> Prediction:
    """`was` with the names that links have in `now`."""
    return replace(
        was, links={name if name in now.links else names.get(name, name): link for name, link in was.links.items()}
    )


def _form(prediction: Prediction, missed: Collection[str], *, named: bool) -> JsonObject:
    """All of a prediction that stays when it is made again.

    Args:
        prediction: as it was or is.
        missed: links whose calls are not made.
        named: whether links have the names that they had.
    """
    form = prediction.form()
    del form["meta"]
    if missed:  # the words for what failed are of its time
        form["outcome"], form["reason"] = prediction.answered, None
    if missed or not named:
        form["links"] = {
            name: (link["outcome"], link["calls"]) for name, link in prediction.links.items() if name not in missed
        }
    if not named:  # what links say stands elsewhere now; the answer is the same or not
        del form["trace"]
    return form


def _solver(run: Run, task: type[Task]) -> Solver:
    """The run's solver over the run's own records, which asks nobody.

    Raises:
        UsageError: the task makes its solver only with its data, or the run does not describe its models.
    """
    engine = Engine(mode="replay", records=run.records)
    models = {role: model_from_form(form, engine) for role, form in run.configuration["models"].items()}
    samples = list({answer.sample.id: answer.sample for answer in run.answers}.values())
    return task.of_run(run.configuration["options"], models=models, engine=engine, samples=samples).solver()


async def rerun(run: Run, task: type[Task], *, own_prompts: bool = False) -> AsyncGenerator[Rerun, None]:
    """Every sample of `run`, run again by the code of today, in the order of `run.answers`.

    Pictures are not needed: they are known by their digests.

    Args:
        run: with its records.
        task: of the run.
        own_prompts: whether the prompts are those that the run has kept, not those of today.

    Raises:
        UsageError: the run cannot be run again without its data.
    """
    kept = run.path / PROMPTS
    with overlay_prompts(kept) if own_prompts and kept.is_dir() else nullcontext():
        solver = _solver(run, task)

    names = links_of_today(run.configuration)

    async def again(answer: SampleResult) -> Rerun:
        with use_draw(answer.epoch):
            return Rerun(was=answer, now=await solved(solver, answer.sample), names=names)

    async for each in map_in_order(again, run.answers, room=lambda: AT_ONCE):
        yield each


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """The answers of a run as its own records are read today, with the prompts that it was asked with."""

    answers: Sequence[SampleResult]
    """In the order of the run; a sample that cannot be read again keeps its answer."""
    ids: Mapping[RerunOutcome, Sequence[str]] = field(default_factory=dict[RerunOutcome, Sequence[str]])
    """Of samples, by what became of them."""

    def of(self, *outcomes: RerunOutcome) -> tuple[str, ...]:
        """Ids of the samples with these outcomes, each once and in their order."""
        return tuple(sorted({name for outcome in outcomes for name in self.ids.get(outcome, ())}))


async def read_again(run: Run, task: type[Task]) -> Reread:
    """Runs the chain of `run` again and takes over what its records are read as.

    Raises:
        UsageError: the run cannot be run again without its data.
    """
    answers: list[SampleResult] = []
    ids: defaultdict[RerunOutcome, list[str]] = defaultdict(list)
    async with aclosing(rerun(run, task, own_prompts=True)) as again:
        async for each in again:
            was = each.was
            ids[each.outcome].append(was.sample.id)
            different = each.outcome == "different"
            answers.append(replace(was, prediction=replace(each.now, meta=was.prediction.meta)) if different else was)
    return Reread(answers=answers, ids=dict(ids))


# --- its scores again ---


@dataclass(frozen=True, kw_only=True)
class RescoreResult:
    """A run after it was scored again, as it lies in its folder."""

    run: Run
    reread: int = 0
    """Samples whose chain was run again over the run's own records."""
    changed: tuple[str, ...] = ()
    """Ids of those that are answered otherwise now."""
    kept: tuple[str, ...] = ()
    """Ids of those that keep what they had, since a call that they would make is not among the records."""


async def rescore(
    run: Run, task: type[Task], *, reread: bool = False, convention: MissingAnswerPolicy | None = None
) -> RescoreResult:
    """Scores `run` again by the code of today, in its folder; done twice it changes nothing more.

    Args:
        run: finished or not.
        task: of the run.
        reread: run the chain again first, over the run's own records, so that a mended parser takes effect.
        convention: what becomes of non-answers; None is what the run has.

    Raises:
        UsageError: the run has no samples, or the task makes its scorer (or its solver) only with its data.
        ReplayMiss: a similarity or a verdict that the scoring needs is not among the run's records.
        StoreError: another process is writing the folder.
    """
    if not run.answers:
        raise UsageError(f"The run {str(run.path)!r} has no samples yet.", hint="Go on with it: `askance eval run`.")
    with amending(run.path) as change:
        found = await read_again(run, task) if reread else Reread(answers=run.answers)
        changed, kept = found.of("different"), found.of("asked anew", "unrecorded")
        if changed:
            write_lines(run.path / SAMPLES, (line_of_answer(answer) for answer in found.answers))
        now = run.scored(found.answers, run.figures)
        answers, figures = await rescored(now, task, convention=convention)
        write_scores(run.path / SCORES, answers)
        read_by = {READ_BY: READERS} if reread and not kept else {}
        change({**_described(now, task, answers), **read_by, "figures": [figure.form() for figure in figures]})
    count = len(found.answers) if reread else 0
    return RescoreResult(run=Run.open(run.path), reread=count, changed=changed, kept=kept)


def _described(run: Run, task: type[Task], answers: Sequence[SampleResult]) -> Mapping[str, Any]:
    """The entries of `run.json` that change beside the figures."""
    engine = Engine(mode="replay", records=run.records)
    scoring = task.of_run(run.configuration["options"], engine=engine).scorer()
    outcomes = Counter(answer.prediction.outcome for answer in answers)
    return {
        "totals": {**run.totals, "samples": len(answers), "outcomes": dict(sorted(outcomes.items()))},
        "notes": [*scoring.notes, *run.data_notes, *unscored_note(answers)],
        **({"origin": task.origin()} if task.origin() else {}),
    }


async def rescored(
    run: Run, task: type[Task], *, convention: MissingAnswerPolicy | None = None
) -> tuple[Sequence[SampleResult], tuple[Figure, ...]]:
    """The scores and figures of `run` by the code of today; nothing is asked, the folder is not touched.

    Raises:
        UsageError: the task makes its scorer only with its data.
        ReplayMiss: a similarity or a verdict that the scoring needs is not among the run's records.
    """
    engine = Engine(mode="replay", records=run.records)
    scoring = task.of_run(run.configuration["options"], engine=engine).scorer()
    answers = [await scored(answer, scoring) for answer in run.answers]
    return answers, figures_of(answers, scoring, convention=convention or run.convention, seed=run.seed)
