"""Areas under the curves of a score that ranks samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.statistics.clusters import checked

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from askance.statistics.totals import Floats


def roc_auc(truth: Sequence[bool], scores: Sequence[float]) -> float | None:
    """Chance that a sample that has the label scores above one that has not; equal scores count half.

    Returns:
        None where all samples or none have the label.

    Raises:
        UsageError: there are not as many scores as samples, or one is no finite number.
    """
    return _of_all(truth, scores)[0]


def average_precision(truth: Sequence[bool], scores: Sequence[float]) -> float | None:
    """Precision at each score, weighted by the recall gained there, without interpolation.

    Returns:
        0 where no sample has the label, as in scikit-learn; None where there are no samples.

    Raises:
        UsageError: there are not as many scores as samples, or one is no finite number.
    """
    return _of_all(truth, scores)[1]


def curve_areas(truth: npt.NDArray[np.bool_], scores: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """AUC-ROC and average precision of samples that count as often as `weights` say.

    Args:
        truth: who has the label, shape (samples,).
        scores: shape (samples,).
        weights: shape (draws, samples).

    Returns:
        Two of shape (draws,), with NaN for an area that is not defined.
    """
    import numpy as np

    order = np.argsort(-scores, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(scores[order]) != 0])
    hits = np.add.reduceat((weights * truth)[:, order], starts, axis=1)
    misses = np.add.reduceat((weights * ~truth)[:, order], starts, axis=1)
    found, passed = hits.cumsum(axis=1), misses.cumsum(axis=1)
    has, lacks = found[:, -1], passed[:, -1]
    above = (misses * (found - hits / 2)).sum(axis=1)
    roc = np.divide(above, has * lacks, out=np.full_like(above, np.nan), where=has * lacks > 0)
    seen = found + passed
    gained = (hits * np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)).sum(axis=1)
    return roc, np.divide(gained, has, out=np.zeros_like(gained), where=has > 0)


def _of_all(truth: Sequence[bool], scores: Sequence[float]) -> tuple[float | None, float | None]:
    import numpy as np

    numbers = checked(scores)
    if len(truth) != len(numbers):
        msg = f"{len(numbers)} scores are given for {len(truth)} samples."
        raise UsageError(msg, hint="Give one for each.")
    if not len(numbers):
        return None, None
    roc, precision = curve_areas(np.asarray(truth, dtype=np.bool_), numbers, np.ones((1, len(numbers))))
    return None if np.isnan(roc[0]) else float(roc[0]), float(precision[0])
