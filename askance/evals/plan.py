"""What runs would ask and cost: their solvers, and the judges of their scoring."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from askance.chains import Planner
from askance.chat import key_of
from askance.errors import UsageError
from askance.evals.evaluation import scorer_of
from askance.evals.run import SampleResult
from askance.evals.scorer import scored
from askance.evals.solver import ChainSolver, solved
from askance.evals.task import Evaluation
from askance.models.call_scope import Pending

if TYPE_CHECKING:
    from askance.chains import Chain, Plan, Reading
    from askance.evals.predictions import Turn
    from askance.evals.sample import Prediction, Sample
    from askance.evals.scorer import Scorer
    from askance.evals.task import Task
    from askance.models import Engine
    from askance.nodes import Node

JUDGE: Final = "judge"
"""What the line of a judge is called in a plan; several are numbered."""

Work: TypeAlias = "tuple[Evaluation, Sequence[Turn]]"
"""A task, and those of its samples that are to be answered."""


@runtime_checkable
class Plannable(Protocol):
    """A solver that makes more than the calls of a chain, and can tell how much."""

    chain: Chain

    def given(self, sample: Sample) -> Mapping[str, Any]:
        """What the chain is given for a sample."""
        ...

    def plan(self, sample: Sample, reading: Reading, planner: Planner) -> None:
        """Counts what is made beside the calls of the chain; nothing is made.

        Args:
            sample: that is to be answered.
            reading: what the chain says of it, as far as that is on record.
            planner: that counts.
        """
        ...


async def plan_run(task: Task | Evaluation, turns: Sequence[Turn], engine: Engine) -> Plan:
    """What `turns` would ask of the solver's models and of the scoring's judges; nothing is asked.

    Args:
        task: whose run is planned.
        turns: samples that are to be answered.
        engine: the run's.

    Raises:
        UsageError: the solver is no chain, so that nobody can tell what it will ask; or the mode is `replay`.
    """
    return await plan_runs([(Evaluation.of(task), turns)], engine)


async def plan_runs(work: Iterable[Work], engine: Engine) -> Plan:
    """The plan of several runs, with a line for each judge; what several of them would ask counts once.

    Args:
        work: the runs.
        engine: of all of them.

    Raises:
        UsageError: the solver of one is no chain, so that nobody can tell what it will ask; or the mode is `replay`.
    """
    planner = Planner()
    judges = JudgePlan(planner)
    for task, turns in work:
        solver = task.solver
        if not isinstance(solver, (ChainSolver, Plannable)):
            raise UsageError("Nobody can tell what a solver will ask that is no chain.", hint="Leave `--plan` out.")
        walk = planner.walk(solver.chain)
        with judges.counting(scorer_of(task, engine)) as count:
            for turn in turns:
                reading = await walk.read(solver.given(turn.sample), draw=turn.epoch)
                if isinstance(solver, Plannable):
                    solver.plan(turn.sample, reading, planner)
                else:
                    await count(solver, reading, turn.sample, epoch=turn.epoch)
    return judges.numbered(planner.plan())


class CountJudged(Protocol):
    """Counts what judges are asked about an answer."""

    async def __call__(self, solver: ChainSolver, reading: Reading, sample: Sample, *, epoch: int) -> None:
        """Scores an answer that is on record, and counts the questions about one that is not there yet."""
        ...


class JudgePlan:
    """The judges of scorings in a plan.

    Args:
        planner: that counts.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._judges: dict[str, None] = {}

    @contextmanager
    def counting(self, scoring: Scorer) -> Generator[CountJudged]:
        """A context in which the planner counts, the calls of the judges of `scoring` too.

        Raises:
            UsageError: the mode is `replay`.
        """
        names = [_name(judge) for judge in scoring.judges]
        self._judges |= dict.fromkeys(names)
        counters = [self._planner.counter(name, judge) for name, judge in zip(names, scoring.judges, strict=True)]

        async def count(solver: ChainSolver, reading: Reading, sample: Sample, *, epoch: int) -> None:
            if not counters:
                return
            prediction = await _predicted(solver, reading, sample)
            await scored(SampleResult(sample=sample, epoch=epoch, prediction=prediction), scoring)
            if _waits(prediction):
                counts = scoring.questions(sample)
                each = [counts] * len(counters) if isinstance(counts, int) else counts
                for counter, questions in dict(sorted(zip(counters, each, strict=True), key=itemgetter(1))).items():
                    counter.add_dependent(questions)  # of equal judges the most

        with ExitStack() as within:
            within.enter_context(self._planner.counting())
            for counter, judge in zip(counters, scoring.judges, strict=True):
                within.enter_context(counter.counting(judge))
            yield count

    def numbered(self, plan: Plan) -> Plan:
        """The plan with the lines of judges last; several are numbered."""
        several = len(self._judges) > 1
        names = {judge: f"{JUDGE} {place}" if several else JUDGE for place, judge in enumerate(self._judges, start=1)}
        lines = {line.link: line for line in plan.links if line.link in names}
        judging = [replace(lines[judge], link=name) for judge, name in names.items()]
        return replace(plan, links=(*(line for line in plan.links if line.link not in names), *judging))


async def _predicted(solver: ChainSolver, reading: Reading, sample: Sample) -> Prediction:
    async def read(sample: Sample) -> Prediction:
        return solver.prediction(reading, sample)

    return await solved(read, sample)


def _name(judge: Node[Any, Any]) -> str:
    """What tells a judge from others: those that ask the same have one role."""
    prompt = judge.prompts_in_use[0]  # the one that it was made with; others come with what it is asked
    form = {"kind": type(judge).__qualname__, "model": judge.model.form(), "prompt": prompt.digest}
    return key_of(JUDGE, form)


def _waits(prediction: Prediction) -> bool:
    """Whether a call that an answer rests on is yet to be made."""
    return any(link.get("error") == Pending.__name__ for link in prediction.links.values())
