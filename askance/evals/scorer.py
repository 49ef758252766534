"""Scoring: from answers to scores and figures. No model that answers is needed for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from askance.amounts import many
from askance.errors import AskanceError, CallError, UsageError
from askance.evals.metric import Figure, MissingAnswerPolicy, Scored, figure, mean
from askance.evals.run_folder import write_lines
from askance.evals.sample import Sample, Score
from askance.models import collect_keys

if TYPE_CHECKING:
    from pathlib import Path

    from askance.evals.metric import Metric
    from askance.evals.run import SampleResult
    from askance.nodes import Node

ScoreFunction: TypeAlias = Callable[[Sample, Any], "Score | Awaitable[Score]"]
"""From a sample and the answer to it to what that is worth."""


class Closes(Protocol):
    """Holds something open."""

    async def aclose(self) -> None:
        """Lets go of it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """How the answers to a task are scored, which needs neither its data nor its models."""

    score: ScoreFunction
    metrics: tuple[Metric, ...]
    """The first is the one that stands for the task."""
    if_wrong: Callable[[Sample], Score]
    """The score of a sample whose answer is wrong: what non-answers count as, and the lower bound."""
    if_right: Callable[[Sample], Score]
    """The score of a sample whose answer is right: the upper bound."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures has to know."""
    judges: tuple[Node[Any, Any], ...] = ()
    """Nodes that scoring asks: reached before the first sample is answered, and closed when the run ends."""
    closing: tuple[Closes, ...] = ()
    """What else it holds open until then, such as an embedder."""
    questions: Callable[[Sample], int | Sequence[int]] = lambda _: 0
    """How often the judges are asked about one answer to a sample, each or one by one, for the plan of a run."""


def right_or_wrong(
    right: Callable[[Sample, Any], bool] = lambda sample, value: value == sample.target,
    *,
    name: str = "accuracy",
    summary: str = "the answer is right",
) -> Scorer:
    """A scoring by which an answer is right or wrong.

    Args:
        right: whether the answer to a sample is; by default where it equals the target.
        name: of the one metric, the share of right answers.
        summary: what the metric says.
    """
    return Scorer(
        score=lambda sample, value: Score(values={name: float(right(sample, value))}),
        metrics=(mean(name, summary=summary),),
        if_wrong=lambda _: Score(values={name: 0.0}),
        if_right=lambda _: Score(values={name: 1.0}),
    )


async def scored(answer: SampleResult, scorer: Scorer) -> SampleResult:
    """`answer` with its score; without one where it is no answer, or where the call that judges it gave none.

    Raises:
        UsageError: the scoring itself has a fault.
        ReplayMiss: what the scoring asks is not on record.
    """
    if not answer.prediction.answered:
        return replace(answer, score=None, unscored=None)
    keys: list[str] = []
    try:
        with collect_keys() as keys:
            found = scorer.score(answer.sample, answer.prediction.value)
            return replace(answer, score=found if isinstance(found, Score) else await found, unscored=None)
    except CallError as error:
        return replace(answer, score=None, unscored=str(error), tried=tuple(keys))
    except AskanceError:
        raise
    except Exception as error:
        raise UsageError(
            f"The scoring of the sample {answer.sample.id!r} raised {type(error).__name__}: {error}.",
            hint="Mend it; what was answered is kept, and the same command goes on.",
        ) from error


def unscored_note(answers: Iterable[SampleResult]) -> tuple[str, ...]:
    """What there is to say of answers that have no score."""
    lacking = [answer for answer in answers if answer.unscored is not None]
    if not lacking:
        return ()
    first = min(lacking, key=lambda answer: (answer.sample.id, answer.epoch))
    count = many(len(lacking), "answer has no score and counts", "answers have no score and count")
    return (f"{count} as no answer, such as that to {first.sample.id!r}: {first.unscored}",)


def figures_of(
    answers: Sequence[SampleResult], scorer: Scorer, *, convention: MissingAnswerPolicy = "wrong", seed: int = 0
) -> tuple[Figure, ...]:
    """The figures of all metrics over `answers`, which do not depend on the order of `answers`."""
    ordered = sorted(answers, key=lambda answer: (answer.sample.id, answer.epoch))
    rows = [_row(answer, scorer) for answer in ordered]
    return tuple(figure(metric, rows, convention=convention, seed=seed) for metric in scorer.metrics)


def _row(answer: SampleResult, scorer: Scorer) -> Scored:
    # What has a score is worth that much in any case.
    bounds = bounds_of(answer.sample, scorer) if answer.score is None else (answer.score, answer.score)
    return Scored(cluster=answer.sample.cluster, score=answer.score, if_wrong=bounds[0], if_right=bounds[1])


def bounds_of(sample: Sample, scorer: Scorer) -> tuple[Score, Score]:
    """What an answer to a sample is worth if it is wrong, and if it is right.

    Raises:
        UsageError: the scoring has a fault, or the sample's target is none of its kind.
    """
    try:
        return scorer.if_wrong(sample), scorer.if_right(sample)
    except AskanceError:
        raise
    except Exception as error:
        raise UsageError(
            f"What the sample {sample.id!r} is worth if it is wrong or right cannot be told: "
            f"{type(error).__name__}: {error}.",
            hint="Mend the scoring, or the sample's target.",
        ) from error


def write_scores(path: Path, answers: Iterable[SampleResult]) -> None:
    """Writes `scores.jsonl`, whole: a line for each answer, ordered by sample and epoch."""
    ordered = sorted(answers, key=lambda answer: (answer.sample.id, answer.epoch))
    scores = ((answer, answer.score) for answer in ordered)
    forms = ({"id": each.sample.id, "epoch": each.epoch, **score.form()} for each, score in scores if score is not None)
    write_lines(path, forms)
