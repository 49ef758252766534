"""What a run would ask and cost: its solver, and the judges of its scoring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from askance.evals.evaluation import scoring_of
from askance.evals.predicting import models_of, planned
from askance.evals.rehearsing import Rehearsal
from askance.evals.run import Answer
from askance.evals.scoring import scored
from askance.evals.solving import solved
from askance.models import drawing
from askance.models.capabilities import endpoint_key
from askance.models.walk import Pending

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.evals.predicting import Turn
    from askance.evals.tasks import Scoring, Task
    from askance.evals.values import Prediction
    from askance.models import Engine

JUDGE: Final = "judge"
"""What the judges' line of a plan is called."""


Work: TypeAlias = "tuple[Task, Sequence[Turn]]"
"""A task, and those of its samples that are to be answered."""


async def planned_run(task: Task, turns: Sequence[Turn], engine: Engine) -> Plan:
    """What `turns` would ask of the solver's models and of the scoring's judges; nothing is asked.

    Several judges of one model count as so many of the first one.

    Args:
        task: whose run is planned.
        turns: samples that are to be answered.
        engine: the run's.

    Raises:
        UsageError: the solver is no chain, so that nobody can tell what it will ask; or the mode is `replay`.
    """
    return await with_judges(await planned(task.solver, turns), [(task, turns)], engine)


async def with_judges(plan: Plan, work: Iterable[Work], engine: Engine) -> Plan:
    """A plan, and what the judges of those runs would be asked; what several runs would ask counts once.

    Args:
        plan: what the solvers of the runs ask.
        work: the runs; those whose scoring has no judge add nothing.
        engine: of all of them.

    Raises:
        UsageError: the mode is `replay`, which asks nothing.
    """
    rehearsal, solving = Rehearsal(unit=plan.unit), set[str]()
    for task, turns in work:
        scoring = scoring_of(task, engine)
        if scoring.judges:
            solvers = models_of(task.solver)
            solving.update(endpoint_key(model.id) for model in solvers)
            with rehearsal.walking(*solvers, *(judge.model for judge in scoring.judges)):
                await _rehearse(rehearsal, (task, turns), scoring)
    if not rehearsal.roles:
        return plan
    links = tuple(replace(link, link=JUDGE) for link in rehearsal.plan(plan.images).links)
    return replace(plan, links=(*plan.links, *links), probes=plan.probes + len(rehearsal.probed - solving))


async def _rehearse(rehearsal: Rehearsal, work: Work, scoring: Scoring) -> None:
    """Scores what is answered on record, and counts what waits for an answer."""
    task, turns = work
    role = f"{JUDGE} {scoring.judges[0].model.id}"
    for turn in turns:
        with drawing(turn.epoch):
            prediction = await solved(task.solver, turn.sample)
        with rehearsal.role(role, scoring.judges[0]):
            answer = await scored(Answer(sample=turn.sample, epoch=turn.epoch, prediction=prediction), scoring)
        rehearsal.asked(role, answer.tried if answer.score is None else answer.score.calls)
        if _waits(prediction):
            rehearsal.behind(role, scoring.questions(turn.sample) * len(scoring.judges))


def _waits(prediction: Prediction) -> bool:
    """Whether a call that an answer rests on is yet to be made."""
    return any(link.get("error") == Pending.__name__ for link in prediction.links.values())
