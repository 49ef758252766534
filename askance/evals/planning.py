"""What a run would ask and cost: its solver, and the judges of its scoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from askance.evals.evaluation import scoring_of
from askance.evals.predicting import models_of, planned
from askance.evals.rehearsing import Rehearsal
from askance.evals.run import Answer
from askance.evals.scoring import scored
from askance.evals.solving import solved
from askance.models import drawing
from askance.models.walk import Pending

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.evals.predicting import Turn
    from askance.evals.tasks import Task
    from askance.evals.values import Prediction
    from askance.models import Engine


async def planned_run(task: Task, turns: Sequence[Turn], engine: Engine) -> Plan:
    """What `turns` would ask of the solver's models and of the scoring's judges; nothing is asked.

    Several judges count as so many of the first one.

    Args:
        task: whose run is planned.
        turns: samples that are to be answered.
        engine: the run's.

    Raises:
        UsageError: the solver is no chain, so that nobody can tell what it will ask; or the mode is `replay`.
    """
    found, scoring = await planned(task.solver, turns), scoring_of(task, engine)
    if not scoring.judges:
        return found
    rehearsal = Rehearsal(unit=found.unit)
    with rehearsal.walking(*models_of(task.solver), *(judge.model for judge in scoring.judges)):
        for turn in turns:
            with drawing(turn.epoch):
                prediction = await solved(task.solver, turn.sample)
            with rehearsal.role("judge", scoring.judges[0]):
                answer = await scored(Answer(sample=turn.sample, epoch=turn.epoch, prediction=prediction), scoring)
            rehearsal.asked("judge", answer.tried if answer.score is None else answer.score.calls)
            if _waits(prediction):
                rehearsal.behind("judge", scoring.questions(turn.sample) * len(scoring.judges))
    judged = rehearsal.plan(found.images)
    return replace(found, links=(*found.links, *judged.links), probes=judged.probes)


def _waits(prediction: Prediction) -> bool:
    """Whether a call that an answer rests on is yet to be made."""
    return any(link.get("error") == Pending.__name__ for link in prediction.links.values())
