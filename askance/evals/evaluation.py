"""Running a task: every sample answered, scored and kept; then the figures.

The folder is the run. What has an answer in it is not asked again, so the same call finishes what was interrupted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chat import canonical_json, key_of
from askance.errors import UsageError
from askance.evals.predicting import Batching, Turn, in_batches, models_of, online
from askance.evals.run import Answer, Run, name_of_line
from askance.evals.run_folder import PROMPTS, SCORES, RunFolder
from askance.evals.scoring import figures_of, unscored_note, write_scores
from askance.evals.solving import form_of
from askance.evals.tasks import Scoring
from askance.evals.under_way import Told, UnderWay
from askance.models import Engine, run_sync
from askance.models.capabilities import endpoint_key
from askance.models.counting import Counting
from askance.models.engine import default_engine

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.figures import Convention
    from askance.evals.tasks import Task
    from askance.evals.values import Sample
    from askance.models import Model

RUNS = Path("runs")
"""Folder for the folders of runs that are given no place."""

BATCHES, LEDGER = "batches", "budget.db"
"""Within a run's folder: what is under way in batches, and what was spent of a budget."""


async def aevaluate(
    task: Task,
    *,
    out: str | Path | None = None,
    engine: Engine | None = None,
    epochs: int = 1,
    convention: Convention = "wrong",
    seed: int = 0,
    batches: Batching | None = None,
    told: Told | None = None,
) -> Run:
    """Runs `task` and scores it; a run that was interrupted is gone on with.

    Args:
        task: made by a definition (`definition(data=…, vlm=…)`), or by hand.
        out: folder of the run; by default one in `runs/`, named by task and configuration.
        engine: whose records and budget the run uses; by default that of the solver, or of its models.
        epochs: how often each sample is answered; the answers are kept apart.
        convention: what becomes of non-answers in the figures.
        seed: of the bootstraps.
        batches: that the solver's chain is asked through the batch interface.
        told: of every step.

    Raises:
        UsageError: the samples are none, repeat an id, or the folder holds something else.
        CallError: a model cannot be asked at all, or the first sample failed in a way that all others would.
        StoreError: records or folder cannot be read or written.
    """
    _check(task)
    configuration = configuration_of(task, epochs=epochs)
    models = models_of(task.solver)
    own: Engine | None = getattr(task.solver, "engine", None)
    engine = engine or own or (models[0].engine if models else default_engine())
    scoring = scoring_of(task, engine)
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
        running = UnderWay(scoring, folder, convention=convention, told=told)
        if batches is None:
            stream = online(task.solver, engine)
        else:
            stream = in_batches(task.solver, batches.folder or folder.path / BATCHES, batches.told)
        folder.keep(PROMPTS, getattr(task.solver, "prompts", {}))
        counting = await Counting.begun([*models, *task.models.values()])
        try:
            await running.run(turns, models, stream)
        finally:
            folder.counted(await counting.so_far())
        figures = figures_of(running.answers, scoring, convention=convention, seed=seed)
        write_scores(folder.path / SCORES, running.answers)
        folder.finish(
            engine.shelf.records,
            also=_also(running.answers, models),
            more={
                "figures": [figure.form() for figure in figures],
                "notes": [*scoring.notes, *task.notes, *unscored_note(running.answers)],
                "data_notes": list(task.notes),
                "left": running.progress.left,
                "seed": seed,
            },
        )
    finally:
        folder.close()
        for each in scoring.closing:
            await each.aclose()
    return Run.open(folder.path)


def scoring_of(task: Task, engine: Engine) -> Scoring:
    """How the answers to a task are scored in a run with this engine.

    Raises:
        UsageError: nothing says so.
    """
    if task.scoring is None:
        raise UsageError(f"Nothing says how answers to the task {task.name!r} are scored.", hint="Give it a `scoring`.")
    return task.scoring if isinstance(task.scoring, Scoring) else task.scoring(engine)


def _also(answers: Sequence[Answer], models: Sequence[Model]) -> list[str]:
    """Keys of the records that the run rests on beside those of its links."""
    scores = [key for answer in answers for key in (answer.tried if answer.score is None else answer.score.calls)]
    return [*scores, *(endpoint_key(model.id) for model in models)]


def evaluate(task: Task, **options: Any) -> Run:
    """As `aevaluate`, from anywhere: scripts, threads, notebooks."""
    return run_sync(aevaluate(task, **options))


def configuration_of(task: Task, *, epochs: int) -> JsonObject:
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


def _check(task: Task) -> None:
    if not task.samples:
        raise UsageError(f"The task {task.name!r} has no samples.", hint="Check the data, `ids` and `limit`.")
    counts = Counter(sample.id for sample in task.samples)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise UsageError(f"{len(twice)} ids of samples are given twice, such as {twice[0]!r}.", hint="Mend the data.")
