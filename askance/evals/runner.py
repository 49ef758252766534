"""Running a task: `evaluate` answers every sample, scores the answers, writes both to the run's folder, makes figures.

Samples that have an answer in the folder are not asked again. So the same call finishes a run that was interrupted. A
process that is killed loses no more than the calls under way. Samples and what the answers are worth are held in
memory; what was answered lies in the folder, and is read a line at a time.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance import chains
from askance.chat import JsonObject, key_of
from askance.errors import UsageError
from askance.evals.job import CountItem, FirstFailure, Job
from askance.evals.picture_check import warn_of_pictures
from askance.evals.prompt_check import warn_of_prompts
from askance.evals.run import Run, answer_of, line_of_answer, name_of_line
from askance.evals.run_folder import RunFolder
from askance.evals.run_format import BATCHES, SCORES
from askance.evals.run_plan import counting_judges
from askance.evals.sample import EXAMPLES, Prediction, Sample, SampleResult, sample_text, samples_digest
from askance.evals.scorer import Scorer, figures_of, main_figure, notes_on, scored, write_scores
from askance.evals.solver import ChainSolver, as_solver, plain, solved
from askance.evals.task import Task, evaluation_of
from askance.models import Engine, run_sync, use_draw
from askance.models.call_scope import span
from askance.models.capabilities import endpoint_key
from askance.models.engine import default_engine

if TYPE_CHECKING:
    from askance.chains import Planner
    from askance.evals.evaluation import Evaluation
    from askance.evals.metric import Figure, MissingAnswerPolicy
    from askance.models import Model
    from askance.models.batch.batches import BatchProgress

RUNS = Path("runs")
"""Where the folder of a run is made if none is named."""

SIDE_BY_SIDE = 64
"""How many answers are scored at the same time. Models that judge have limits of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEpoch:
    """One sample in one epoch."""

    sample: Sample
    epoch: int

    @property
    def name(self) -> str:
        """Its name within a run, as `name_of_line` gives it."""
        return f"{self.sample.id}\n{self.epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """How a run uses the provider's batch interface."""

    folder: Path | None = None
    """Where batches under way are kept; by default in the run's folder."""
    on_progress: Callable[[BatchProgress], None] | None = None
    """Called at every step of a batch."""


@dataclass(kw_only=True)
class RunProgress:
    """How far a run has come; given to `on_progress` after every sample."""

    total: int = 0
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    left: int = 0
    """Samples without an answer because the budget was used up; known when the run ends."""
    metric: str = ""
    """Name of the task's first metric."""
    running: Callable[[], Figure | None] = lambda: None
    """Computes that metric over the samples so far."""


OnProgress = Callable[[RunProgress], None]
"""Called after every sample."""


async def aevaluate(
    task: Task | Evaluation,
    *,
    out: str | Path | None = None,
    engine: Engine | None = None,
    epochs: int = 1,
    convention: MissingAnswerPolicy = "wrong",
    seed: int = 0,
    batches: BatchOptions | None = None,
    on_progress: OnProgress | None = None,
) -> Run:
    """Runs `task` and scores it. The same call finishes a run that was interrupted.

    Args:
        task: a task with its options, or an `Evaluation`.
        out: folder of the run; by default one in `runs/` that is named by the task and its configuration.
        engine: its records, mode and budget are used; by default the engine of the solver or of its models.
        epochs: how often each sample is answered; each epoch has its own answers.
        convention: whether samples without an answer count as wrong or are left out of the figures.
        seed: of the bootstraps.
        batches: asks through the batch interface; None asks one call at a time.
        on_progress: called after every sample.

    Raises:
        UsageError: there are no samples, two have one id, or the folder holds something else.
        CallError: a model cannot be reached at all, or the first sample failed in a way that all others would.
        StoreError: the records or the folder cannot be read or written.
    """
    task = evaluation_of(task)
    _check(task)
    configuration = configuration_of(task, epochs=epochs)
    solver = as_solver(task.solver)
    models = [*solver.models]
    engine = engine or solver.engine or (models[0].engine if models else default_engine())
    scoring = scorer_of(task, engine)
    models = list(dict.fromkeys([*models, *(judge.model for judge in scoring.judges)]))
    sample_epochs = [SampleEpoch(sample=sample, epoch=epoch) for sample in task.samples for epoch in range(epochs)]
    folder = RunFolder(
        Path(out) if out is not None else place_of(configuration),
        configuration,
        name=name_of_line,
        facts={
            **({"label": task.label} if task.label else {}),
            **({"origin": dict(task.origin)} if task.origin else {}),
        },
    )
    try:
        stream, by_chain = None, solver.by_chain
        if batches is not None:
            if by_chain is None:
                message = "Only a chain can be asked by batches, and this solver is none."
                raise UsageError(message, hint="Leave `--batch` out.")
            sample_epochs.sort(key=lambda each: each.epoch)  # one epoch is asked after the other
            place = batches.folder or folder.path / BATCHES
            stream = partial(_in_batches, by_chain, folder=place, on_progress=batches.on_progress)
        first = FirstFailure()
        folder.keep_prompts(solver.prompts)
        folder.keep_places({each.id: each.image and each.image.path for each in task.samples})
        running = _Runner(scoring, folder, sample_epochs, convention=convention, on_progress=on_progress)
        job = run_job(task, running.in_order, engine).kept_in(
            folder.finished,
            lambda each, prediction: folder.add(
                line_of_answer(SampleResult(sample=each.sample, epoch=each.epoch, prediction=prediction)),
                prediction.attachments,
            ),
        )
        job.stream = stream
        job.accepts = lambda now: first.accepts(
            now.links, answered=now.answered, calls=now.meta.get("calls"), reason=now.reason
        )
        open_samples = [each.sample for each in sample_epochs if each.name not in folder.finished]
        if engine.mode != "replay" and open_samples:
            warn_of_pictures(open_samples)
            warn_of_prompts([] if by_chain is None else by_chain.chain.nodes)
        job.models, job.counting, job.counted = models, [*models, *task.models.values()], folder.counted
        await running.score(job)
        figures = figures_of(running.answers, scoring, convention=convention, seed=seed)
        write_scores(folder.path / SCORES, running.answers)
        also = _further_keys(running.answers, models)
        more = {
            "figures": [figure.form() for figure in figures],
            "notes": [*scoring.notes, *task.notes, *notes_on(running.answers, scoring, convention=convention)],
            "data_notes": list(task.notes),
            "left": running.progress.left,
            "seed": seed,
        }
        running.answers.clear()  # `finish` reads the folder and needs the memory
        folder.finish(engine.recorder.records, also=also, more=more)
    finally:
        folder.close()
        for each in scoring.closing:
            await each.aclose()
    return Run.open(folder.path)


def run_job(
    task: Task | Evaluation, sample_epochs: Sequence[SampleEpoch], engine: Engine
) -> Job[SampleEpoch, Prediction, Any]:
    """The predictions of a run, as a job; its plan counts the calls of the scorer's judges, too.

    Args:
        task: a task with its options, or an `Evaluation`.
        sample_epochs: what is to be answered.
        engine: of the run.
    """
    task = evaluation_of(task)
    solver = as_solver(task.solver)

    async def predict(each: SampleEpoch) -> Prediction:
        with use_draw(each.epoch), span("sample", each.sample.id, epoch=each.epoch) as ended:
            prediction = await solved(solver, each.sample)
            ended(outcome=prediction.outcome)
            return prediction

    return Job(
        items=sample_epochs,
        name=lambda each: each.name,
        title=task.label or task.name,
        answer=predict,
        counts=partial(_counting, task, engine),
        models=solver.models,
        engine=engine,
        unit="sample",
    )


@contextmanager
def _counting(task: Evaluation, engine: Engine, planner: Planner) -> Generator[CountItem[SampleEpoch]]:
    """A context in which a planner counts what the predictions of a task, and its scores, ask."""
    for each in task.computed:
        planner.add_computed(each.name, each.model, keys=each.keys, lacking=each.lacking)
    plan_sample = as_solver(task.solver).plan(planner)
    with counting_judges(planner, scorer_of(task, engine)) as judged:

        async def count(each: SampleEpoch) -> None:
            await judged(await plan_sample(each.sample, each.epoch), each.sample, epoch=each.epoch)

        yield count


def scorer_of(task: Evaluation, engine: Engine) -> Scorer:
    """The scorer of a task in a run with this engine."""
    return task.scorer if isinstance(task.scorer, Scorer) else task.scorer(engine)


def _further_keys(answers: Sequence[SampleResult], models: Sequence[Model]) -> list[str]:
    """Keys of the records that the run rests on and that no link names: of its scores and its endpoints."""
    scores = [key for answer in answers for key in (answer.tried if answer.score is None else answer.score.calls)]
    return [*scores, *(endpoint_key(model.id) for model in models)]


def evaluate(task: Task | Evaluation, **options: Any) -> Run:
    """As `aevaluate`, from anywhere: scripts, threads, notebooks."""
    return run_sync(aevaluate(task, **options))


# --- predictions ---


async def _in_batches(
    by_chain: ChainSolver,
    sample_epochs: Sequence[SampleEpoch],
    *,
    folder: Path,
    on_progress: Callable[[BatchProgress], None] | None,
) -> AsyncGenerator[Prediction, None]:
    """Predicts by the provider's batch interface, one epoch after the other."""
    for epoch in sorted({each.epoch for each in sample_epochs}):
        some = [each for each in sample_epochs if each.epoch == epoch]
        inputs = [by_chain.given(each.sample) for each in some]
        batches = chains.read_in_batches(by_chain.chain, inputs, folder=folder / str(epoch), on_progress=on_progress)
        async with aclosing(batches) as readings:
            for each in some:
                with use_draw(epoch):  # the epoch is the draw of the readings, not of the calls that score them
                    reading = await anext(readings)
                yield plain(by_chain.prediction(reading, each.sample))
    with suppress(OSError):  # a folder that is not empty is still needed
        await asyncio.to_thread(folder.rmdir)


# --- scoring and progress ---


class _Runner:
    """A run under way: scores answers as they come, and reports progress."""

    def __init__(
        self,
        scoring: Scorer,
        folder: RunFolder,
        sample_epochs: Sequence[SampleEpoch],
        *,
        convention: MissingAnswerPolicy,
        on_progress: OnProgress | None,
    ) -> None:
        self._scoring = scoring
        self._folder = folder
        self._on_progress = on_progress
        self._samples = {each.sample.id: each.sample for each in sample_epochs}
        places = {name: place for place, name in enumerate(folder.finished)}
        self.in_order = sorted(sample_epochs, key=lambda each: places.get(each.name, len(places)))
        """What is to be answered; what has an answer comes first, in the order in which the folder has it."""
        self._scored: deque[asyncio.Task[SampleResult]] = deque()
        self.answers: list[SampleResult] = []
        """Answers with their scores and without their texts, which are in the folder."""
        self.progress = RunProgress(
            total=len(sample_epochs),
            metric=scoring.metrics[0].name,
            running=lambda: main_figure(self.answers, scoring, convention=convention),
        )

    async def score(self, job: Job[SampleEpoch, Prediction, JsonObject]) -> None:
        """Scores the answers that the folder has, then answers and scores the other samples."""
        async with job.answered(again=True) as lines:
            try:
                async for _, line in lines:
                    await self._take(line)
                await self._count(until=0)
            finally:
                for task in self._scored:
                    task.cancel()
                await asyncio.gather(*self._scored, return_exceptions=True)
        self.progress.left = len(job.left)

    async def _take(self, line: Mapping[str, Any]) -> None:
        """Starts to score the answer in a line, whether it was written now or by an earlier process.

        A judge is slow, so up to `SIDE_BY_SIDE` answers are scored at the same time. They are counted in order.
        """
        answer = answer_of(line, self._folder.path)
        own = self._samples.get(answer.sample.id, answer.sample)
        # The sample of the task is used. If its JSON form differs from it (a tuple, say), the written sample is scored.
        sample = own if own.form() == line["sample"] else replace(answer.sample, image=own.image)
        answer = replace(answer, sample=sample)
        self._scored.append(asyncio.create_task(scored(answer, self._scoring)))
        await self._count(until=SIDE_BY_SIDE)

    async def _count(self, *, until: int) -> None:
        """Counts the scored answers, in order; waits while more than `until` are being scored."""
        await asyncio.sleep(0)  # lets a scorer that awaits nothing finish
        while self._scored and (len(self._scored) > until or self._scored[0].done()):
            answer = await self._scored.popleft()
            self.answers.append(answer.bare)
            self.progress.done += 1
            self.progress.outcomes[answer.prediction.outcome] += 1
            if self._on_progress is not None:
                self._on_progress(self.progress)


def configuration_of(task: Evaluation, *, epochs: int) -> JsonObject:
    """Everything that decides the answers, as JSON; its hash names the run. The order of samples does not matter.

    Raises:
        UsageError: a sample or an option holds a value that JSON does not have.
    """
    _check_json({"id": "of the task's options", **task.options})
    return {
        "task": task.name,
        "options": dict(task.options),
        "models": {role: model.form() for role, model in task.models.items()},
        "solver": _solver_form(task),
        "samples": {"count": len(task.samples), "digest": samples_digest(_texts(task.samples))},
        "epochs": epochs,
    }


def _solver_form(task: Evaluation) -> JsonObject:
    solver = as_solver(task.solver)
    turns = solver.example_turns if any(sample.inputs.get(EXAMPLES) for sample in task.samples) else None
    return solver.form() if turns is None else {**solver.form(), "example_turns": dict(turns)}


def _texts(samples: Sequence[Sample]) -> Iterator[str]:
    """The texts of samples, ordered by id, of which their digest is made."""
    for sample in sorted(samples, key=lambda sample: sample.id):
        form = sample.form()
        _check_json(form)
        yield sample_text(json.loads(json.dumps(form)))  # as it will be read: names that are numbers sort as texts


def _check_json(form: JsonObject) -> None:
    try:
        json.dumps(form, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The sample {form['id']!r} holds a value that JSON does not have: {error}.",
            hint="Targets, inputs and tags are texts, numbers, lists and maps with texts as keys.",
        ) from error


def place_of(configuration: Mapping[str, Any]) -> Path:
    """The folder of a run for which no folder is named."""
    name = "-".join(part for part in str(configuration["task"]).replace("/", "-").split() if part) or "task"
    return RUNS / f"{name}-{key_of('run', dict(configuration))[:12]}"


def _check(task: Evaluation) -> None:
    if not task.samples:
        raise UsageError(f"The task {task.name!r} has no samples.", hint="Check the data, `ids` and `limit`.")
    counts = Counter(sample.id for sample in task.samples)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise UsageError(
            f"{len(twice)} ids of samples are given twice, such as {twice[0]!r}.",
            hint="Give each sample an id of its own.",
        )
