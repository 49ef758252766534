"""Figures by commonsense category: the same metrics over the images of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from askance.evals.values import Sample, Score

if TYPE_CHECKING:
    from askance.evals.figures import Metric
    from askance.evals.tasks import Scoring


def by_category(scoring: Scoring, categories: Sequence[str], *names: str) -> Scoring:
    """`scoring` with some of its metrics once more for each category: `accuracy: Physical rules`.

    Args:
        scoring: of a task whose samples have their category among their tags.
        categories: those that there are.
        names: of the metrics that are told apart.
    """
    apart = [metric for metric in scoring.metrics if metric.name in names]
    columns = tuple(dict.fromkeys(column for metric in apart for column in metric.columns))
    of_each = [_of(metric, category) for metric in apart for category in categories]

    def told(of: Callable[[Sample], Score]) -> Callable[[Sample], Score]:
        return lambda sample: _told(of(sample), sample, columns)

    def score(sample: Sample, value: Any) -> Score | Awaitable[Score]:
        found = scoring.score(sample, value)
        return _told(found, sample, columns) if isinstance(found, Score) else _later(found, sample, columns)

    return replace(
        scoring,
        score=score,
        metrics=(*scoring.metrics, *of_each),
        if_wrong=told(scoring.if_wrong),
        if_right=told(scoring.if_right),
    )


def _of(metric: Metric, category: str) -> Metric:
    return replace(
        metric,
        name=f"{metric.name}: {category}",
        columns=tuple(f"{column}: {category}" for column in metric.columns),
        summary=f"{metric.summary or metric.name}, {category}",
    )


async def _later(found: Awaitable[Score], sample: Sample, columns: Sequence[str]) -> Score:
    return _told(await found, sample, columns)


def _told(score: Score, sample: Sample, columns: Sequence[str]) -> Score:
    """The score with its values once more under the names of the sample's category."""
    category = sample.tags.get("category")
    if category is None:
        return score
    own = {f"{name}: {category}": score.values[name] for name in columns if name in score.values}
    return replace(score, values={**score.values, **own})
