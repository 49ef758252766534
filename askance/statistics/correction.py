"""Rates that a judge measured, corrected for the judge's errors.

Two methods. *Rogan and Gladen* (1978) correct the rate by a judge's known sensitivity and specificity, which may have
been measured elsewhere. *Prediction-powered inference* (Angelopoulos et al., 2023; the weight λ from PPI++, 2023)
takes the judge's mean over everything and corrects it by human labels of some of the samples. It needs no model of the
errors, but the labelled samples have to be drawn from the same population.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.statistics.arguments import check_binary, check_shares, finite_array
from askance.statistics.clusters import ClusterKey, sum_by_cluster
from askance.statistics.estimate import DRAWS, LEVEL, Estimate, Interval, two_sided_z
from askance.statistics.intervals import clustered_standard_error
from askance.statistics.paired_tests import check_equal_length
from askance.statistics.resampling import percentile_interval, resampled_means, resampled_sums

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def rogan_gladen(rate: float, sensitivity: float, specificity: float) -> float | None:
    """The true rate, given the rate at which a judge says yes: (rate + Sp − 1) / (Se + Sp − 1), held within [0, 1].

    Returns:
        None where Se + Sp ≤ 1: such a judge is no better than chance.

    Raises:
        UsageError: one of the three is not between 0 and 1.
    """
    check_shares((rate, sensitivity, specificity))
    youden = sensitivity + specificity - 1
    return min(1.0, max(0.0, (rate + specificity - 1) / youden)) if youden > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredScores:
    """A judge's scores of samples, between 0 and 1, and the cluster that each sample belongs to."""

    scores: Sequence[float]
    clusters: Sequence[ClusterKey] | None = None


def clustered_rogan_gladen(
    judged: ClusteredScores,
    labelled: ClusteredScores,
    truth: Sequence[bool],
    *,
    seed: int,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Estimate:
    """The corrected rate of what is `judged`, where samples share clusters; both sets are resampled by whole clusters.

    The scores are verdicts, 0 or 1; `truth` has the human labels of the `labelled` samples.

    Raises:
        UsageError: labelled samples and truths differ in number, clusters and rows do, a score is not between 0 and 1,
            or a truth is neither true nor false.
    """
    check_equal_length(labelled.scores, truth)
    check_binary(truth)
    check_shares([*judged.scores, *labelled.scores])
    cells = _cells(labelled, truth)
    groups = sum_by_cluster(judged.scores, judged.clusters)
    if not groups.n:
        return Estimate(value=None, interval=None, n=0, n_clusters=0, state="no data")
    value = _corrected(groups.mean, cells.sum(axis=0))
    rates = resampled_means(groups, seed=seed, draws=draws).tolist()
    drawn = [
        _corrected(rate, counts)
        for rate, counts in zip(rates, resampled_sums([cells], seed=seed + 1, draws=draws)[0], strict=True)
    ]
    many = min(len(groups.sums), len(cells)) > 1
    return Estimate(
        value=value,
        interval=percentile_interval(drawn, level=level) if many else None,
        n=groups.n,
        n_clusters=len(groups.sums),
        state="no data" if value is None else "estimated" if many else "one cluster",
    )


def _cells(labelled: ClusteredScores, truth: Sequence[bool]) -> npt.NDArray[np.float64]:
    """True yes, all true, true no, all false of each cluster, shape (clusters, 4)."""
    import numpy as np

    rows = list(zip(labelled.scores, truth, strict=True))
    columns = (
        [float(true) * score for score, true in rows],
        [float(true) for _, true in rows],
        [float(not true) * (1 - score) for score, true in rows],
        [float(not true) for _, true in rows],
    )
    # Each column is summed in the order of the clusters' names.
    clusters = labelled.clusters if labelled.clusters is not None else range(len(rows))
    return np.stack([sum_by_cluster(column, clusters).sums for column in columns], axis=1)


def _corrected(rate: float, counts: npt.NDArray[np.float64]) -> float | None:
    right_yes, true, right_no, false = counts.tolist()
    return rogan_gladen(rate, right_yes / true, right_no / false) if true and false else None


def prediction_powered_mean(
    truth: Sequence[float],
    labelled: ClusteredScores,
    unlabelled: ClusteredScores,
    *,
    tuned: bool = True,
    level: float = LEVEL,
) -> Estimate:
    """The mean of the truth, from a judge's scores of all samples and human labels of some.

    It is λ times the judge's mean on the unlabelled samples, plus the mean of truth − λ·judge on the labelled ones.
    λ is 1 or, if `tuned`, the weight within [0, 1] of the smallest variance (PPI++, section 6). The standard errors of
    the two parts are clustered (CR1), the interval is normal, and it is not cut to [0, 1].

    Raises:
        UsageError: labelled samples and truths differ in number, clusters and rows do, or a value is not finite.
    """
    check_equal_length(labelled.scores, truth)
    finite_array([*truth, *labelled.scores])
    groups, n = sum_by_cluster(unlabelled.scores, unlabelled.clusters), len(truth) + len(unlabelled.scores)
    if not truth or not groups.n:
        return Estimate(value=None, interval=None, n=n, n_clusters=0, state="no data")
    weight = _weight(truth, labelled.scores, unlabelled.scores) if tuned else 1.0
    rests = [true - weight * score for true, score in zip(truth, labelled.scores, strict=True)]
    rest = sum_by_cluster(rests, labelled.clusters)
    value, n_clusters = weight * groups.mean + rest.mean, len(rest.sums) + len(groups.sums)
    errors = (
        clustered_standard_error(rests, labelled.clusters),
        clustered_standard_error(unlabelled.scores, unlabelled.clusters),
    )
    if errors[0] is None or errors[1] is None:
        return Estimate(value=value, interval=None, n=n, n_clusters=n_clusters, state="one cluster")
    error = math.hypot(errors[0], weight * errors[1])
    half = two_sided_z(level) * error
    interval = Interval(low=value - half, high=value + half, level=level, method="prediction-powered")
    return Estimate(value=value, interval=interval, standard_error=error, n=n, n_clusters=n_clusters, state="estimated")


def _weight(truth: Sequence[float], judged: Sequence[float], others: Sequence[float]) -> float:
    """The λ of the smallest variance: Cov(truth, judge) / ((1 + n/N) Var(judge)), within [0, 1]."""
    import numpy as np

    if len(truth) < 2:
        return 1.0
    variance = float(np.var([*judged, *others], ddof=1)) * (1 + len(truth) / len(others))
    covariance = float(np.cov(truth, judged)[0, 1])
    return min(1.0, max(0.0, covariance / variance)) if variance else 0.0
