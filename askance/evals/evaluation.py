"""Running a task: every sample answered, scored and kept; then the figures.

The folder is the run. What has an answer in it is not asked again, so the same call finishes what was interrupted.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chat import canonical_json, key_of
from askance.errors import FATAL, OverBudget, UsageError
from askance.evals.predictions import BatchOptions, Turn, in_batches, models_of, online
from askance.evals.run import Run, SampleResult, answer_of, line_of_answer, name_of_line
from askance.evals.run_files import PROMPTS, SCORES
from askance.evals.scorer import Scorer, figures_of, scored, unscored_note, write_scores
from askance.evals.solver import form_of
from askance.evals.storage import RunFolder
from askance.evals.task import Evaluation
from askance.models import Engine, run_sync
from askance.models.capabilities import endpoint_key
from askance.models.counters import RunCounters
from askance.models.engine import default_engine

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.metric import Figure, MissingAnswerPolicy
    from askance.evals.predictions import Stream
    from askance.evals.sample import Prediction, Sample
    from askance.evals.task import Task
    from askance.models import Model

RUNS = Path("runs")
"""Folder for the folders of runs that are given no place."""

BATCHES, LEDGER = "batches", "budget.db"
"""Within a run's folder: what is under way in batches, and what was spent of a budget."""


SIDE_BY_SIDE = 64
"""Answers that are scored at once; the models that judge have limits of their own."""


@dataclass(kw_only=True)
class RunProgress:
    """Where a run stands, after a sample."""

    total: int = 0
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    left: int = 0
    """Samples that the budget had nothing left for, or none yet."""
    metric: str = ""
    """Name of the metric that stands for the task."""
    running: Callable[[], Figure | None] = lambda: None
    """That metric over the samples so far; worked out when it is called."""


OnProgress = Callable[[RunProgress], None]
"""Is called after every sample."""


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
    """Runs `task` and scores it; a run that was interrupted is gone on with.

    Args:
        task: with its options; or what `Task.evaluation` made of one.
        out: folder of the run; by default one in `runs/`, named by task and configuration.
        engine: whose records and budget the run uses; by default that of the solver, or of its models.
        epochs: how often each sample is answered; the answers are kept apart.
        convention: what becomes of non-answers in the figures.
        seed: of the bootstraps.
        batches: that the solver's chain is asked through the batch interface.
        on_progress: is called after every sample.

    Raises:
        UsageError: the samples are none, repeat an id, or the folder holds something else.
        CallError: a model cannot be asked at all, or the first sample failed in a way that all others would.
        StoreError: records or folder cannot be read or written.
    """
    task = Evaluation.of(task)
    _check(task)
    configuration = configuration_of(task, epochs=epochs)
    models = models_of(task.solver)
    own: Engine | None = getattr(task.solver, "engine", None)
    engine = engine or own or (models[0].engine if models else default_engine())
    scoring = scorer_of(task, engine)
    models = list(dict.fromkeys([*models, *(judge.model for judge in scoring.judges)]))
    turns = [Turn(sample=sample, epoch=epoch) for sample in task.samples for epoch in range(epochs)]
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
        running = _Evaluation(scoring, folder, convention=convention, on_progress=on_progress)
        if batches is None:
            stream = online(task.solver, engine)
        else:
            stream = in_batches(task.solver, batches.folder or folder.path / BATCHES, batches.on_progress)
        folder.keep(PROMPTS, getattr(task.solver, "prompts", {}))
        counting = await RunCounters.begun([*models, *task.models.values()])
        try:
            await running.run(turns, models, stream)
        finally:
            folder.counted(await counting.so_far())
        figures = figures_of(running.answers, scoring, convention=convention, seed=seed)
        write_scores(folder.path / SCORES, running.answers)
        also = _also(running.answers, models)
        more = {
            "figures": [figure.form() for figure in figures],
            "notes": [*scoring.notes, *task.notes, *unscored_note(running.answers)],
            "data_notes": list(task.notes),
            "left": running.progress.left,
            "seed": seed,
        }
        running.answers.clear()  # what is left to do goes through the folder and needs room of its own
        folder.finish(engine.recorder.records, also=also, more=more)
    finally:
        folder.close()
        for each in scoring.closing:
            await each.aclose()
    return Run.open(folder.path)


def scorer_of(task: Evaluation, engine: Engine) -> Scorer:
    """How the answers to a task are scored in a run with this engine."""
    return task.scorer if isinstance(task.scorer, Scorer) else task.scorer(engine)


def _also(answers: Sequence[SampleResult], models: Sequence[Model]) -> list[str]:
    """Keys of the records that the run rests on beside those of its links."""
    scores = [key for answer in answers for key in (answer.tried if answer.score is None else answer.score.calls)]
    return [*scores, *(endpoint_key(model.id) for model in models)]


def evaluate(task: Task | Evaluation, **options: Any) -> Run:
    """As `aevaluate`, from anywhere: scripts, threads, notebooks."""
    return run_sync(aevaluate(task, **options))


class _Evaluation:
    """One run under way: the answers as they come, their scores, and what is told of them."""

    def __init__(
        self, scoring: Scorer, folder: RunFolder, *, convention: MissingAnswerPolicy, on_progress: OnProgress | None
    ) -> None:
        self._scoring = scoring
        self._folder = folder
        self._on_progress = on_progress
        self._reached = False
        """Whether a model has answered a call of this process; what is on record says nothing of its being there."""
        self._samples: Mapping[str, Sample] = {}
        self._scored: deque[asyncio.Task[SampleResult]] = deque()
        self.answers: list[SampleResult] = []
        """What they are worth; what they say lies in the folder."""
        headline = scoring.metrics[0]
        self.progress = RunProgress(
            metric=headline.name,
            running=lambda: figures_of(self.answers, replace(scoring, metrics=(headline,)), convention=convention)[0],
        )

    async def run(self, turns: Sequence[Turn], models: Sequence[Model], stream: Stream) -> None:
        """Answers and scores what the folder has no answer for, and takes over what it has."""
        self.progress.total = len(turns)
        self._samples = {turn.sample.id: turn.sample for turn in turns}
        unread = [turn for turn in turns if turn.name not in self._folder.finished]
        try:
            for line in self._folder.finished.values():
                await self._take(line)
            for model in models if unread else ():
                await model.output_mode()
            async with aclosing(stream(unread)) as predictions:
                async for turn, prediction in predictions:
                    if _unaffordable(prediction):
                        self.progress.left += 1
                        continue
                    if not self._reached:
                        calls = prediction.meta.get("calls", 0)
                        stop_if_hopeless(prediction.links, calls=calls, reason=prediction.reason)
                    # Of a solver that counts no calls, any answer may be one.
                    self._reached |= prediction.answered and prediction.meta.get("calls", 1) > 0
                    answer = SampleResult(sample=turn.sample, epoch=turn.epoch, prediction=prediction)
                    await self._take(self._folder.add(line_of_answer(answer)))
            await self._count(until=0)
        finally:
            for task in self._scored:
                task.cancel()
            await asyncio.gather(*self._scored, return_exceptions=True)
            for model in models:
                await model.aclose()
        self.progress.left = len(turns) - len(self.answers)

    async def _take(self, line: Mapping[str, Any]) -> None:
        """Scores what a line says, so that it is all the same whether it was answered now or earlier.

        A judge takes its time: a number of answers are scored side by side, and count in their order.
        """
        answer = answer_of(line)
        own = self._samples.get(answer.sample.id, answer.sample)
        # A sample is held once, unless its JSON form is not what it was made of: then it is scored as it is written.
        sample = own if own.form() == line["sample"] else replace(answer.sample, image=own.image)
        answer = replace(answer, sample=sample)
        self._scored.append(asyncio.create_task(scored(answer, self._scoring)))
        await self._count(until=SIDE_BY_SIDE)

    async def _count(self, *, until: int) -> None:
        """Counts answers whose score is there, and waits for others as long as there are more than `until`."""
        await asyncio.sleep(0)  # lets a scoring that waits for nothing end
        while self._scored and (len(self._scored) > until or self._scored[0].done()):
            answer = await self._scored.popleft()
            self.answers.append(answer.bare)
            self.progress.done += 1
            self.progress.outcomes[answer.prediction.outcome] += 1
            if self._on_progress is not None:
                self._on_progress(self.progress)


def stop_if_hopeless(links: Mapping[str, Any], *, calls: int, reason: str | None = None, what: str = "sample") -> None:
    """Ends a run whose first sample failed as all others would.

    Args:
        links: of the first sample that was asked about, as JSON.
        calls: that were answered for it.
        reason: why it has no answer, where its links do not say.
        what: it is called.

    Raises:
        CallError: it did; of the same kind.
    """
    for link in links.values() if not calls else ():
        kind = FATAL.get(str(link.get("error")))
        if kind is not None:
            hint = f"Stopped at the first {what}, since the others would fail alike."
            raise kind(str(link.get("reason") or reason), hint=hint)


def _unaffordable(prediction: Prediction) -> bool:
    """Whether the budget had nothing left for it, so that it is no outcome of the sample."""
    return any(link.get("error") == OverBudget.__name__ for link in prediction.links.values())


def configuration_of(task: Evaluation, *, epochs: int) -> JsonObject:
    """Everything that decides the answers, as JSON: the run's hash is that of this.

    The order of the samples is no part of it.

    Raises:
        UsageError: a sample or an option holds what is no JSON.
    """
    _check_json({"id": "of the task's options", **task.options})
    return {
        "task": task.name,
        "options": dict(task.options),
        "models": {role: model.form() for role, model in task.models.items()},
        "solver": form_of(task.solver),
        "samples": {"count": len(task.samples), "digest": _digest(task.samples)},
        "epochs": epochs,
    }


def _digest(samples: Sequence[Sample]) -> str:
    """`key_of("samples", {"samples": [...]})` of all forms, ordered by id; a form at a time is held."""
    digest = sha256(b'samples\n{"samples":[')
    for number, sample in enumerate(sorted(samples, key=lambda sample: sample.id)):
        form = sample.form()
        _check_json(form)
        digest.update(f"{',' if number else ''}{canonical_json(form)}".encode("utf-8", "surrogatepass"))
    digest.update(b"]}")
    return digest.hexdigest()


def _check_json(form: JsonObject) -> None:
    try:
        json.dumps(form, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The sample {form['id']!r} holds what is no JSON: {error}.",
            hint="Targets, inputs and tags are texts, numbers, lists and maps with texts as keys.",
        ) from error


def place_of(configuration: Mapping[str, Any]) -> Path:
    """The folder of a run that is given no other."""
    name = "-".join(part for part in str(configuration["task"]).replace("/", "-").split() if part) or "task"
    return RUNS / f"{name}-{key_of('run', dict(configuration))[:12]}"


def _check(task: Evaluation) -> None:
    if not task.samples:
        raise UsageError(f"The task {task.name!r} has no samples.", hint="Check the data, `ids` and `limit`.")
    counts = Counter(sample.id for sample in task.samples)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise UsageError(f"{len(twice)} ids of samples are given twice, such as {twice[0]!r}.", hint="Mend the data.")
