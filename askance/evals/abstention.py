"""Figures of runs whose solver withholds answers or says how sure it is: coverage, risk by coverage, calibration.

An abstention counts as wrong in every figure of the task. What its answer would be worth is kept beside its score, so
that the risk of giving more or fewer answers is known. All figures here rest on the task's first metric; those of risk
need one that is the mean of a share of each sample, such as an accuracy. They are over all samples, also where the
metric itself is a mean over folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from askance.evals.metric import Figure, Scored, figure, mean
from askance.evals.sample import Score
from askance.statistics import (
    calibration_error,
    calibration_error_interval,
    mean_estimate,
    risk_area_interval,
    risk_coverage_area,
)

if TYPE_CHECKING:
    from askance.evals.metric import Metric, MissingAnswerPolicy
    from askance.evals.sample import SampleResult
    from askance.statistics import Interval

COVERAGE, AREA, CALIBRATION, BRIER = "coverage", "risk-coverage area", "calibration error", "Brier score"
AMONG_ANSWERED = "among answered"
"""Ends the name of the first metric over the samples that have an answer which is not withheld."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One sample of those that are ranked by confidence."""

    id: str
    cluster: str
    worth: float
    """Of its answer, withheld or not, from 0 to 1; 0 where there is none."""
    confidence: float | None
    """From 0 to 1; None where there is no answer, or none that says how sure it is."""
    given: bool
    """Whether there is an answer that is not withheld."""

    @classmethod
    def of(cls, answer: SampleResult, worth: float) -> Ranked:
        """A sample by its answer."""
        has_score, prediction = answer.score is not None, answer.prediction
        return cls(
            id=answer.sample.id,
            cluster=answer.sample.cluster,
            worth=worth,
            confidence=prediction.confidence if has_score else None,
            given=has_score and not prediction.abstained,
        )

    @property
    def rank(self) -> float:
        """By which samples are ordered: answers that are given come before those that are withheld, then the others."""
        if self.confidence is None:
            return -1.0
        return 2.0 + self.confidence if self.given else self.confidence


def ranks_by(metric: Metric) -> bool:
    """Whether single samples have a worth by a metric, so that risk can be told: it is the mean of one of 0 to 1."""
    return metric.statistic is None and metric.of_sums is None and metric.percent and metric.better == "higher"


def ranked_samples(metric: Metric, answers: Sequence[SampleResult], rows: Sequence[Scored]) -> list[Ranked]:
    """The samples that a metric is about, to be ranked; none where a worth is not between 0 and 1.

    Args:
        metric: one that `ranks_by` takes.
        answers: the answers.
        rows: their scores, in the same order.
    """
    if not ranks_by(metric):
        return []
    scores = [_as_given(answer, row) for answer, row in zip(answers, rows, strict=True)]
    about = [place for place, score in enumerate(scores) if metric.covers(score)]
    covered = [scores[place] for place in about]
    worths: list[float] = metric.matrix(covered)[:, 0].tolist()
    if not all(0 <= worth <= 1 for worth in worths):
        return []
    return [Ranked.of(answers[place], worth) for place, worth in zip(about, worths, strict=True)]


def _as_given(answer: SampleResult, row: Scored) -> Score:
    """The score as if no answer were withheld; that of a wrong answer where there is none."""
    if answer.score is None or answer.score.withheld is None:
        return row.score or row.if_wrong
    return replace(answer.score, values=answer.score.withheld)


def _is_given(answer: SampleResult, row: Scored) -> bool:
    return row.score is not None and not answer.prediction.abstained


def names_of_abstention(metric: str) -> tuple[str, ...]:
    """The names of the figures that `figures_of_abstention` may give of a metric."""
    return COVERAGE, f"{metric} {AMONG_ANSWERED}", AREA, CALIBRATION, BRIER


def figures_of_abstention(
    metric: Metric,
    answers: Sequence[SampleResult],
    rows: Sequence[Scored],
    *,
    convention: MissingAnswerPolicy,
    seed: int,
) -> Iterator[Figure]:
    """The figures of answers of which some are withheld, or say how sure they are; none for others.

    Args:
        metric: the first of the task.
        answers: in the order of their ids.
        rows: their scores, in the same order.
        convention: of the run.
        seed: of the bootstraps.
    """
    sure = any(answer.prediction.confidence is not None for answer in answers)
    if not sure and not any(answer.prediction.abstained for answer in answers):
        return
    given = [_is_given(answer, row) for answer, row in zip(answers, rows, strict=True)]
    yield _coverage(given, rows, seed=seed)
    answered = [row for row, is_given in zip(rows, given, strict=True) if is_given]
    among = figure(metric, answered, convention=convention, seed=seed)
    yield replace(among, metric=f"{metric.name} {AMONG_ANSWERED}")
    ranked = ranked_samples(metric, answers, rows) if sure else []
    if ranked:
        yield replace(risk_area(ranked, seed=seed), convention=convention)
        yield from (replace(each, convention=convention) for each in calibration(ranked, seed=seed))


def _coverage(given: Sequence[bool], rows: Sequence[Scored], *, seed: int) -> Figure:
    """The share of samples with an answer that is not withheld."""
    none, every = (Score(values={COVERAGE: value}) for value in (0.0, 1.0))
    covered = [
        Scored(cluster=row.cluster, score=every if is_given else none, if_wrong=none, if_right=every)
        for row, is_given in zip(rows, given, strict=True)
    ]
    return replace(figure(mean(COVERAGE), covered, seed=seed), answered=sum(given), among_answered=None)


def risk_area(ranked: Sequence[Ranked], *, seed: int) -> Figure:
    """The area under the risk–coverage curve over samples, as `askance.statistics.risk_coverage_area` defines it.

    Answers that are withheld come behind those that are given, and samples without an answer or a confidence last.
    """
    losses, ranks = losses_and_ranks(ranked)
    interval = risk_area_interval(losses, ranks, [each.cluster for each in ranked], seed=seed)
    return _figure(AREA, ranked, value=risk_coverage_area(losses, ranks), interval=interval)


def losses_and_ranks(ranked: Sequence[Ranked]) -> tuple[list[float], list[float]]:
    """Of each sample how far its answer is from right, and by what it is ranked."""
    return [1 - each.worth for each in ranked], [each.rank for each in ranked]


def calibration(ranked: Sequence[Ranked], *, seed: int) -> Iterator[Figure]:
    """Calibration error and Brier score of the answers with a confidence; none where answers may be partly right.

    The Brier score is the mean square of the distance between confidence and 1 for a right answer, 0 for a wrong one
    (Brier, "Verification of forecasts expressed in terms of probability", 1950).
    """
    sure = [each for each in ranked if each.confidence is not None]
    if not sure or any(each.worth not in {0.0, 1.0} for each in sure):
        return
    values, stated = [each.worth for each in sure], [each.confidence or 0.0 for each in sure]
    clusters, count = [each.cluster for each in sure], len(sure)
    yield _figure(
        CALIBRATION,
        sure,
        value=calibration_error(values, stated),
        interval=calibration_error_interval(values, stated, clusters, seed=seed),
    )
    squares = [(confidence - value) ** 2 for value, confidence in zip(values, stated, strict=True)]
    brier = mean_estimate(squares, clusters, seed=seed, bounds=lambda: ([0.0] * count, [1.0] * count))
    yield _figure(BRIER, sure, value=brier.value, interval=brier.interval)


def _figure(name: str, ranked: Sequence[Ranked], *, value: float | None, interval: Interval | None) -> Figure:
    return Figure(
        metric=name,
        value=value,
        interval=interval,
        convention="wrong",
        samples=len(ranked),
        clusters=len({each.cluster for each in ranked}),
        answered=sum(each.confidence is not None for each in ranked),
        among_answered=None,
        if_wrong=None,
        if_right=None,
        percent=False,
    )
