"""The plan of a run: how many calls its solver and its judges would make, and what they would cost.

`askance.chains.planner` counts the calls of a chain; here are those of whole runs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from askance.chains import Planner
from askance.chat import key_of
from askance.evals.evaluation import Evaluation
from askance.evals.run import SampleResult
from askance.evals.runner import scorer_of
from askance.evals.scorer import scored
from askance.evals.solver import as_solver
from askance.models.call_scope import Pending, on_miss

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.evals.runner import SampleEpoch
    from askance.evals.sample import Prediction, Sample
    from askance.evals.scorer import Scorer
    from askance.evals.task import Task
    from askance.models import Engine
    from askance.nodes import Node

JUDGE: Final = "judge"
"""Name of a judge's line in a plan; several judges are numbered."""

Work: TypeAlias = "tuple[Evaluation, Sequence[SampleEpoch]]"
"""A task, and the samples of it that have no answer yet."""


async def plan_run(task: Task | Evaluation, sample_epochs: Sequence[SampleEpoch], engine: Engine) -> Plan:
    """Plans the calls to the solver's models and the scorer's judges, without making any.

    Args:
        task: the task to run.
        sample_epochs: what has no answer yet.
        engine: the engine of the run.

    Raises:
        UsageError: the solver cannot be planned, since nobody knows its calls beforehand; or the mode is `replay`.
    """
    return await plan_runs([(Evaluation.of(task), sample_epochs)], engine)


async def plan_runs(work: Iterable[Work], engine: Engine) -> Plan:
    """The plan of several runs, with a line for each judge. A call that several of them would make counts once.

    Args:
        work: what each run has to answer.
        engine: the engine of all runs.

    Raises:
        UsageError: a solver cannot be planned, since nobody knows its calls beforehand; or the mode is `replay`.
    """
    planner = Planner()
    judges = JudgePlan(planner)
    longest = 0
    for task, sample_epochs in work:
        for each in task.computed:
            planner.add_computed(each.name, each.model, keys=each.keys, lacking=each.lacking)
        plan_sample = as_solver(task.solver).plan(planner)
        with judges.counting(scorer_of(task, engine)) as count:
            for each in sample_epochs:
                await count(await plan_sample(each.sample, each.epoch), each.sample, epoch=each.epoch)
        longest = max(longest, len(sample_epochs))
    return judges.numbered(planner.plan(longest))


@contextmanager
def planning() -> Generator[None]:
    """A context in which tasks are made to be planned: what their samples rest on is counted, and not computed."""
    with on_miss(Planner()):
        yield


class CountJudged(Protocol):
    """Counts the calls of judges for one answer."""

    async def __call__(self, prediction: Prediction | None, sample: Sample, *, epoch: int) -> None:
        """Counts the judges' calls: exactly if the answer is on record, else as many as the scorer says.

        Args:
            prediction: the answer; None where it is not known.
            sample: that it answers.
            epoch: of the sample.
        """
        ...


class JudgePlan:
    """The lines of judges in a plan.

    Args:
        planner: counts.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._judges: dict[str, None] = {}

    @contextmanager
    def counting(self, scorer: Scorer) -> Generator[CountJudged]:
        """A context in which the planner counts, the calls of the judges of `scorer` too.

        Raises:
            UsageError: the mode is `replay`.
        """
        names = [_name(judge) for judge in scorer.judges]
        self._judges |= dict.fromkeys(names)
        counters = [self._planner.counter(name, judge) for name, judge in zip(names, scorer.judges, strict=True)]

        async def count(prediction: Prediction | None, sample: Sample, *, epoch: int) -> None:
            if not counters:
                return
            if prediction is not None:
                await scored(SampleResult(sample=sample, epoch=epoch, prediction=prediction), scorer)
            if prediction is None or _waits(prediction):
                counts = scorer.questions(sample)
                each = [counts] * len(counters) if isinstance(counts, int) else counts
                for counter, questions in dict(sorted(zip(counters, each, strict=True), key=itemgetter(1))).items():
                    counter.add_dependent(questions)  # judges that are equal share a counter, which counts the most

        with ExitStack() as within:
            within.enter_context(self._planner.counting())
            for counter, judge in zip(counters, scorer.judges, strict=True):
                within.enter_context(counter.counting(judge))
            yield count

    def numbered(self, plan: Plan) -> Plan:
        """The plan with the judges' lines at its end; several judges are numbered."""
        several = len(self._judges) > 1
        names = {judge: f"{JUDGE} {place}" if several else JUDGE for place, judge in enumerate(self._judges, start=1)}
        lines = {line.link: line for line in plan.links if line.link in names}
        judging = [replace(lines[judge], link=name) for judge, name in names.items()]
        return replace(plan, links=(*(line for line in plan.links if line.link not in names), *judging))


def _name(judge: Node[Any, Any]) -> str:
    """A key of what a judge asks: judges with the same key share a role."""
    prompt = judge.prompts_in_use[0]  # the one that it was made with; others depend on the question
    form = {"kind": type(judge).__qualname__, "model": judge.model.form(), "prompt": prompt.digest}
    return key_of(JUDGE, form)


def _waits(prediction: Prediction) -> bool:
    """Whether the answer needs a call that was not made yet."""
    return any(link.get("error") == Pending.__name__ for link in prediction.links.values())
