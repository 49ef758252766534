"""A mean with its interval and its standard error, where rows may share a cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from askance.errors import UsageError
from askance.statistics.clusters import Groups, Key, grouped
from askance.statistics.proportions import share_estimate, wilson
from askance.statistics.resampling import percentiles, resampled_means
from askance.statistics.values import DRAWS, LEVEL, Estimate, Interval

_SAME = 1e-9
"""Sums of equal terms in another order may differ by so much."""

Correction = Literal["CR0", "CR1"]
"""`CR0` is the plain sandwich; `CR1` is `CR0` times G/(G − 1) in the variance, for G clusters."""


def mean_estimate(
    values: Sequence[float],
    clusters: Sequence[Key] | None = None,
    *,
    seed: int,
    binary: bool = False,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Estimate:
    """A mean over rows with its interval.

    With `binary` values (0 or 1) and no two rows in a cluster the interval is Wilson's; otherwise whole clusters are
    resampled. Where all values are equal, or all clusters have one mean, resampling would show a certainty that is not
    there: for binary values Wilson's interval is then taken as if each cluster were one row, for others there is none.

    Raises:
        UsageError: a value is not finite, or neither 0 nor 1 though `binary`, or clusters and rows differ in number.
    """
    groups = grouped(values, clusters)
    if binary:
        _check_binary(values)
    n, n_clusters = groups.n, len(groups.sums)
    if binary and (groups.single or not n):
        return share_estimate(round(float(groups.sums.sum())), n, level=level)
    if not n:
        return Estimate(value=None, interval=None, n=0, n_clusters=0, state="no data")
    spread = min(values) != max(values) and (n_clusters == 1 or not _alike(groups))
    return Estimate(
        value=groups.mean if min(values) != max(values) else float(values[0]),
        interval=_interval(groups, spread=spread, binary=binary, seed=seed, draws=draws, level=level),
        standard_error=_standard_error(groups, correction="CR1") if spread else None,
        n=n,
        n_clusters=n_clusters,
        state="one cluster" if n_clusters == 1 else "estimated" if spread else "no spread",
    )


def clustered_standard_error(
    values: Sequence[float], clusters: Sequence[Key] | None = None, *, correction: Correction = "CR1"
) -> float | None:
    """Standard error of a mean over rows that may share a cluster (Liang and Zeger 1986).

    With `CR1` and one row in each cluster it is the ordinary one, s / √n.

    Returns:
        None with fewer than two clusters.

    Raises:
        UsageError: a value is not finite, or clusters and rows differ in number.
    """
    groups = grouped(values, clusters)
    return _standard_error(groups, correction=correction)


def _standard_error(groups: Groups, *, correction: Correction) -> float | None:
    count = len(groups.sums)
    if count < 2:
        return None
    plain = float((groups.deviations**2).sum()) / groups.n**2
    return math.sqrt(plain * count / (count - 1) if correction == "CR1" else plain)


def _interval(groups: Groups, *, spread: bool, binary: bool, seed: int, draws: int, level: float) -> Interval | None:
    count = len(groups.sums)
    if not spread:
        return wilson(round(groups.mean * count, 9), count, level=level) if binary else None
    return percentiles(resampled_means(groups, seed=seed, draws=draws), level=level) if count > 1 else None


def _alike(groups: Groups) -> bool:
    """Whether no draw of clusters would have another mean."""
    return bool((abs(groups.deviations) <= _SAME * max(1.0, float(abs(groups.sums).max()))).all())


def _check_binary(values: Sequence[float]) -> None:
    odd = next((value for value in values if value not in (0, 1)), None)
    if odd is not None:
        msg = f"{odd!r} is neither 0 nor 1."
        raise UsageError(msg, hint="Leave out `binary` where samples can be partly right.")
