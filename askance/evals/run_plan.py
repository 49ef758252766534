"""What the plan of a run counts beside the calls of its solver: those of judges, and what its samples rest on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

from askance import chains
from askance.evals.sample import Prediction, Sample, SampleResult
from askance.evals.scorer import Scorer, scored
from askance.models.call_scope import Pending, on_miss

if TYPE_CHECKING:
    from askance.chains import Planner


@contextmanager
def planning() -> Generator[None]:
    """A context in which tasks are made to be planned: what their samples rest on is counted, and not computed."""
    with on_miss(chains.Planner()):
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


@contextmanager
def counting_judges(planner: Planner, scorer: Scorer) -> Generator[CountJudged]:
    """A context in which a planner counts, the calls of the judges of `scorer` too.

    Raises:
        UsageError: the mode is `replay`.
    """
    counters = [planner.judge_counter(judge) for judge in scorer.judges]

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
        within.enter_context(planner.counting())
        for counter, judge in zip(counters, scorer.judges, strict=True):
            within.enter_context(counter.counting(judge))
        yield count


def _waits(prediction: Prediction) -> bool:
    """Whether the answer needs a call that was not made yet."""
    return any(link.get("error") == Pending.__name__ for link in prediction.links.values())
