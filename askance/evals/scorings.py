"""Scorings that many tasks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from askance.evals.figures import mean
from askance.evals.tasks import Scoring
from askance.evals.values import Sample, Score


def right_or_wrong(
    right: Callable[[Sample, Any], bool] = lambda sample, value: value == sample.target,
    *,
    name: str = "accuracy",
    summary: str = "the answer is right",
) -> Scoring:
    """A scoring by which an answer is right or wrong.

    Args:
        right: whether the answer to a sample is; by default where it equals the target.
        name: of the one metric, the share of right answers.
        summary: what the metric says.
    """
    return Scoring(
        score=lambda sample, value: Score(values={name: float(right(sample, value))}),
        metrics=(mean(name, summary=summary),),
        if_wrong=lambda _: Score(values={name: 0.0}),
        if_right=lambda _: Score(values={name: 1.0}),
    )
