"""What a run would ask and cost: its solver, and the judges of its scoring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from askance.chat import key_of
from askance.evals.evaluation import scoring_of
from askance.evals.predicting import models_of, planned
from askance.evals.rehearsing import Rehearsal
from askance.evals.run import Answer
from askance.evals.scoring import scored
from askance.evals.solving import solved
from askance.models import drawing
from askance.models.capabilities import endpoint_key
from askance.models.scope import Pending

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.evals.predicting import Turn
    from askance.evals.tasks import Scoring, Task
    from askance.evals.values import Prediction
    from askance.models import Engine
    from askance.nodes import Node

JUDGE: Final = "judge"
"""What the line of a judge is called in a plan; several are numbered."""


Work: TypeAlias = "tuple[Task, Sequence[Turn]]"
"""A task, and those of its samples that are to be answered."""


async def planned_run(task: Task, turns: Sequence[Turn], engine: Engine) -> Plan:
    """What `turns` would ask of the solver's models and of the scoring's judges; nothing is asked.

    Args:
        task: whose run is planned.
        turns: samples that are to be answered.
        engine: the run's.

    Raises:
        UsageError: the solver is no chain, so that nobody can tell what it will ask; or the mode is `replay`.
    """
    return await with_judges(await planned(task.solver, turns), [(task, turns)], engine)


async def with_judges(plan: Plan, work: Iterable[Work], engine: Engine) -> Plan:
    """A plan, and what the judges of those runs would be asked, a line each; what several runs would ask counts once.

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
    links = [*rehearsal.plan(plan.images).links]
    names = [JUDGE] if len(links) == 1 else [f"{JUDGE} {place}" for place in range(1, len(links) + 1)]
    judges = tuple(replace(link, link=name) for link, name in zip(links, names, strict=True))
    return replace(plan, links=(*plan.links, *judges), probes=plan.probes + len(rehearsal.probed - solving))


async def _rehearse(rehearsal: Rehearsal, work: Work, scoring: Scoring) -> None:
    """Scores what is answered on record, and counts what waits for an answer."""
    task, turns = work
    roles = [_role(judge) for judge in scoring.judges]
    with ExitStack() as heard:
        for role, judge in zip(roles, scoring.judges, strict=True):
            heard.enter_context(rehearsal.hearing(role, judge))
        for turn in turns:
            with drawing(turn.epoch):
                prediction = await solved(task.solver, turn.sample)
            await scored(Answer(sample=turn.sample, epoch=turn.epoch, prediction=prediction), scoring)
            if _waits(prediction):
                counts = scoring.questions(turn.sample)
                each = [counts] * len(roles) if isinstance(counts, int) else counts
                for role, count in dict(sorted(zip(roles, each, strict=True))).items():  # of equal judges the most
                    rehearsal.behind(role, count)


def _role(judge: Node[Any, Any]) -> str:
    """What tells a judge from others: those that ask the same have one role."""
    prompt = judge.prompts_in_use[0]  # the one that it was made with; others come with what it is asked
    form = {"kind": type(judge).__qualname__, "model": judge.model.form(), "prompt": prompt.digest}
    return key_of(JUDGE, form)


def _waits(prediction: Prediction) -> bool:
    """Whether a call that an answer rests on is yet to be made."""
    return any(link.get("error") == Pending.__name__ for link in prediction.links.values())
