"""From answers to scores and figures; no model that answers is needed for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.errors import AskanceError, CallError, UsageError
from askance.evals.figures import Convention, Figure, Scored, figure
from askance.evals.storage import write_lines
from askance.evals.values import Score
from askance.models import collect_keys

if TYPE_CHECKING:
    from pathlib import Path

    from askance.evals.run import Answer
    from askance.evals.tasks import Scoring
    from askance.evals.values import Sample


async def scored(answer: Answer, scoring: Scoring) -> Answer:
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
            found = scoring.score(answer.sample, answer.prediction.value)
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


def unscored_note(answers: Iterable[Answer]) -> tuple[str, ...]:
    """What there is to say of answers that have no score."""
    lacking = [answer for answer in answers if answer.unscored is not None]
    if not lacking:
        return ()
    first = min(lacking, key=lambda answer: (answer.sample.id, answer.epoch))
    count = many(len(lacking), "answer has no score and counts", "answers have no score and count")
    return (f"{count} as no answer, such as that to {first.sample.id!r}: {first.unscored}",)


def figures_of(
    answers: Sequence[Answer], scoring: Scoring, *, convention: Convention = "wrong", seed: int = 0
) -> tuple[Figure, ...]:
    """The figures of all metrics over `answers`, which do not depend on the order of `answers`."""
    ordered = sorted(answers, key=lambda answer: (answer.sample.id, answer.epoch))
    rows = [_row(answer, scoring) for answer in ordered]
    return tuple(figure(metric, rows, convention=convention, seed=seed) for metric in scoring.metrics)


def _row(answer: Answer, scoring: Scoring) -> Scored:
    # What has a score is worth that much in any case.
    bounds = bounds_of(answer.sample, scoring) if answer.score is None else (answer.score, answer.score)
    return Scored(cluster=answer.sample.cluster, score=answer.score, if_wrong=bounds[0], if_right=bounds[1])


def bounds_of(sample: Sample, scoring: Scoring) -> tuple[Score, Score]:
    """What an answer to a sample is worth if it is wrong, and if it is right.

    Raises:
        UsageError: the scoring has a fault, or the sample's target is none of its kind.
    """
    try:
        return scoring.if_wrong(sample), scoring.if_right(sample)
    except AskanceError:
        raise
    except Exception as error:
        raise UsageError(
            f"What the sample {sample.id!r} is worth if it is wrong or right cannot be told: "
            f"{type(error).__name__}: {error}.",
            hint="Mend the scoring, or the sample's target.",
        ) from error


def write_scores(path: Path, answers: Iterable[Answer]) -> None:
    """Writes `scores.jsonl`, whole: a line for each answer, ordered by sample and epoch."""
    ordered = sorted(answers, key=lambda answer: (answer.sample.id, answer.epoch))
    scores = ((answer, answer.score) for answer in ordered)
    forms = ({"id": each.sample.id, "epoch": each.epoch, **score.form()} for each, score in scores if score is not None)
    write_lines(path, forms)
