"""Samples by the values of a tag and by their labels: the mean of each part, with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from askance.evals.report.reading import marks_of, worth_of
from askance.evals.report.values import Breakdown, Share
from askance.statistics import mean_estimate

if TYPE_CHECKING:
    from askance.evals.run import Answer, Run

_TOLERANCE = 1e-6


def breakdowns_of(
    run: Run, answers: Sequence[Answer], column: str | None, *, common: frozenset[str], share: bool
) -> Iterator[Breakdown]:
    """One breakdown for each name in `common` that has at least two values.

    Args:
        run: whose figures say what becomes of non-answers.
        answers: of the run.
        column: the value of scores that is averaged.
        common: names of tags.
        share: whether the value is a share, of which a sample without an answer may count as 0.
    """
    if column is None:
        return
    zero = share and _non_answers_are_zero(run, answers, column)
    note = f"mean of {column}; samples without an answer {'count as 0' if zero else 'are left out'}"
    parts: dict[str, dict[str, list[Answer]]] = {}
    for answer in answers:
        for name, value in dict.fromkeys(marks_of(answer.sample)):
            if name in common:
                parts.setdefault(name, {}).setdefault(value, []).append(answer)
    for name, by_value in parts.items():
        if len(by_value) > 1:
            shares = [_share(value, by_value[value], column, zero=zero, seed=run.seed) for value in sorted(by_value)]
            yield Breakdown(name=name, shares=tuple(shares), note=note)


def _non_answers_are_zero(run: Run, answers: Sequence[Answer], column: str) -> bool:
    """Whether the run's own figure is what it is with 0 for every sample without a score."""
    figure = next((each for each in run.figures if each.metric == column), None)
    if figure is None or figure.value is None or figure.convention != "wrong" or figure.samples != len(answers):
        return False
    return abs(sum(worth_of(answer, column) or 0.0 for answer in answers) / len(answers) - figure.value) < _TOLERANCE


def _share(name: str, answers: Sequence[Answer], column: str, *, zero: bool, seed: int) -> Share:
    worths = [worth_of(answer, column) for answer in answers]
    pairs = zip(worths, answers, strict=True)
    counted = [(worth or 0.0, answer) for worth, answer in pairs if zero or worth is not None]
    values = [worth for worth, _ in counted]
    found = mean_estimate(
        values,
        [answer.sample.cluster for _, answer in counted],
        seed=seed,
        binary=all(value in {0.0, 1.0} for value in values),
    )
    return Share(
        name=name,
        value=found.value,
        interval=found.interval,
        samples=len(answers),
        answered=sum(answer.prediction.answered for answer in answers),
    )
