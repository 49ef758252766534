"""Shares and means with their intervals and standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from askance.statistics.arguments import check_binary, check_part
from askance.statistics.clusters import ClusterKey, ClusterSums, sum_by_cluster
from askance.statistics.estimate import DRAWS, LEVEL, Estimate, Interval, two_sided_z
from askance.statistics.resampling import mean_interval
from askance.statistics.unseen import Bounds, unseen_mean


def wilson(successes: int, n: int, *, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a share (Wilson 1927); all of [0, 1] where `n` is 0.

    Raises:
        UsageError: `successes` or `n` is no count, `successes` is the larger, or `level` is not between 0 and 1.
    """
    check_part(successes, n)
    return _score_interval(successes, n, level=level)


def _score_interval(successes: float, n: int, *, level: float) -> Interval:
    """Wilson's interval, also where a cluster counts as one sample that is partly right."""
    z = two_sided_z(level)
    if not n:
        return Interval(low=0.0, high=1.0, level=level, method="wilson")
    share, spread = successes / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    # Where all or none succeed the limit is exactly 1 or 0, which rounding may miss.
    low = 0.0 if not successes else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return Interval(low=low, high=high, level=level, method="wilson")


def share_estimate(successes: int, n: int, *, level: float = LEVEL) -> Estimate:
    """A share of independent samples, with Wilson's interval.

    Raises:
        UsageError: as `wilson` says.
    """
    interval = wilson(successes, n, level=level)
    if not n:
        return Estimate(value=None, interval=interval, n=0, n_clusters=0, state="no data")
    value = successes / n
    error = math.sqrt(value * (1 - value) / n)
    return Estimate(value=value, interval=interval, standard_error=error, n=n, n_clusters=n, state="estimated")


_ROUNDING_ERROR = 1e-9
"""Largest relative difference between sums of equal terms in another order."""


def mean_estimate(
    values: Sequence[float],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
    strata: Sequence[ClusterKey] | None = None,
    binary: bool = False,
    bounds: Bounds[float] | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Estimate:
    """A mean over rows with its interval.

    With `binary` values (0 or 1) and no two rows in a cluster the interval is Wilson's; otherwise whole clusters are
    resampled. Where all values are equal, or all clusters have the same mean, resampling would suggest a certainty that
    does not exist. Binary values then get Wilson's interval as if each cluster were one row, others that of clusters
    that were not seen, if `bounds` gives what each row could be worth at least and at most; else none.

    With `strata` it is the plain mean of the strata's means, and clusters are resampled within their stratum; there is
    no interval where a stratum has a single cluster.

    Raises:
        UsageError: a value is not finite, or neither 0 nor 1 though `binary`, or clusters or strata and rows differ in
            number.
    """
    groups = sum_by_cluster(values, clusters, strata)
    if binary:
        check_binary(values, hint="Leave out `binary` where samples can be partly right.")
    n, n_clusters = groups.n, len(groups.sums)
    if binary and ((groups.one_row_each and len(groups.strata) == 1) or not n):
        return share_estimate(round(float(groups.sums.sum())), n, level=level)
    if not n:
        return Estimate(value=None, interval=None, n=0, n_clusters=0, state="no data")
    alone = min(groups.strata) == 1
    spread = min(values) != max(values) and (alone or not _equal_means(groups))
    if spread:
        interval = mean_interval(groups, seed=seed, draws=draws, level=level)
    elif binary:
        interval = _score_interval(round(groups.mean * n_clusters, 9), n_clusters, level=level)
    else:
        ends = None if bounds is None else bounds()
        interval = None if ends is None else unseen_mean(values, ends, clusters=clusters, strata=strata, level=level)
    return Estimate(
        value=groups.mean if min(values) != max(values) else float(values[0]),
        interval=interval,
        standard_error=groups.standard_error if spread else None,
        n=n,
        n_clusters=n_clusters,
        state="one cluster" if alone else "estimated" if spread else "no spread",
    )


def clustered_standard_error(
    values: Sequence[float],
    clusters: Sequence[ClusterKey] | None = None,
    strata: Sequence[ClusterKey] | None = None,
) -> float | None:
    """Standard error of a mean over rows that may share a cluster (Liang and Zeger 1986).

    The variance is the sandwich estimate times G / (G − 1), for G clusters (CR1). With one row in each cluster it
    is the ordinary one, s / √n. With strata it is that of the plain mean of their means.

    Returns:
        None where there are fewer than two clusters, or a stratum has fewer.

    Raises:
        UsageError: a value is not finite, or clusters or strata and rows differ in number.
    """
    return sum_by_cluster(values, clusters, strata).standard_error


def _equal_means(groups: ClusterSums) -> bool:
    """Whether all clusters of a stratum have the same mean, so that every resample has it too."""
    return bool((abs(groups.deviations) <= _ROUNDING_ERROR * max(1.0, float(abs(groups.sums).max()))).all())
