"""Answers that may be withheld: risk by coverage, its area, and how far confidences can be trusted.

Samples are ranked by confidence, and the answers to the surest ones are given. *Coverage* is the share of samples that
are answered, *risk* the mean loss among them (Geifman and El-Yaniv, "Selective classification for deep neural
networks", NeurIPS 2017). A loss is from 0 to 1; of an answer that is right or wrong it is 0 or 1.

Samples of equal confidence cannot be told apart, so each counts with the mean of all of them: what any order would give
on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.statistics.arguments import check_shares, finite_array
from askance.statistics.comparison import Comparison, compare_statistics
from askance.statistics.paired_tests import check_equal_length
from askance.statistics.resampling import cluster_bootstrap

if TYPE_CHECKING:
    from askance.statistics.clusters import ClusterKey, Floats
    from askance.statistics.estimate import Interval

BINS = 10
"""Bins of equally many samples by which a calibration error is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPoint:
    """A point of a risk–coverage curve: the answers of at least this confidence are given."""

    confidence: float
    coverage: float
    risk: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """Samples of about one confidence."""

    samples: int
    confidence: float
    """Mean confidence."""
    value: float
    """Mean worth of their answers: the share that is right."""


def risk_coverage_curve(losses: Sequence[float], confidences: Sequence[float]) -> tuple[RiskPoint, ...]:
    """The curve, from the surest answers to all: a point for each confidence that any sample has.

    Args:
        losses: of the samples' answers, from 0 to 1.
        confidences: of the same samples; only their order counts.

    Raises:
        UsageError: the two are not equally long, a loss is not between 0 and 1, or a confidence is not finite.
    """
    import numpy as np

    ranked, smoothed = _ranked(losses, confidences)
    if not len(ranked):
        return ()
    sums, count = np.cumsum(smoothed), len(ranked)
    ends = np.append(np.flatnonzero(np.diff(ranked)), count - 1)
    return tuple(
        RiskPoint(confidence=float(ranked[end]), coverage=float((end + 1) / count), risk=float(sums[end] / (end + 1)))
        for end in ends.tolist()
    )


def risk_coverage_area(losses: Sequence[float] | Floats, confidences: Sequence[float] | Floats) -> float | None:
    """The area under the risk–coverage curve (AURC), from 0 to 1; lower is better.

    It is the mean, over k from 1 to the number of samples, of the risk among the k surest samples (Geifman, Uziel and
    El-Yaniv, "Bias-reduced uncertainty estimation for deep neural classifiers", ICLR 2019). It rewards both answers
    that are right and confidences that tell right from wrong ones.

    Returns:
        None without samples.

    Raises:
        UsageError: as `risk_coverage_curve` says.
    """
    import numpy as np

    _, smoothed = _ranked(losses, confidences)
    count = len(smoothed)
    return float((np.cumsum(smoothed) / np.arange(1, count + 1)).mean()) if count else None


def risk_area_interval(
    losses: Sequence[float], confidences: Sequence[float], clusters: Sequence[ClusterKey] | None = None, *, seed: int
) -> Interval | None:
    """The interval of `risk_coverage_area`, from resampled whole clusters, as `cluster_bootstrap` has it.

    Raises:
        UsageError: as `risk_coverage_curve` says, or clusters and samples differ in number.
    """
    rows = _with_ends(losses, confidences)
    count = len(losses)
    return cluster_bootstrap(
        rows.area,
        range(count),
        clusters,
        bounds=lambda: (range(count, 2 * count), range(2 * count, 3 * count)),
        seed=seed,
    )


def compare_risk_areas(
    a: tuple[Sequence[float], Sequence[float]],
    b: tuple[Sequence[float], Sequence[float]],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
) -> Comparison:
    """Two systems on the same samples compared by `risk_coverage_area`, of which lower is better.

    Args:
        a: losses and confidences of the first.
        b: those of the second.
        clusters: of the samples.
        seed: of the resampling.

    Raises:
        UsageError: as `compare_statistics` and `risk_coverage_curve` say.
    """
    count = len(a[0])
    check_equal_length(a[0], b[0])
    rows = _with_ends([*a[0], *b[0]], [*a[1], *b[1]])
    # Everything wrong and everything right, in the order of the first.
    ends = range(2 * count, 3 * count), range(4 * count, 5 * count)
    return compare_statistics(
        rows.area, range(count), range(count, 2 * count), clusters=clusters, bounds=lambda: ends, seed=seed
    ).with_lower_better()


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Losses and confidences by the number of a sample, so that a draw is one step of numpy."""

    losses: Floats
    confidences: Floats

    def area(self, drawn: Sequence[int]) -> float | None:
        places = [*drawn]
        return risk_coverage_area(self.losses[places], self.confidences[places])


def _with_ends(losses: Sequence[float], confidences: Sequence[float]) -> _Rows:
    """The samples, behind them the same if everything were wrong, and behind these if everything were right."""
    import numpy as np

    count = len(losses)
    return _Rows(np.concatenate([losses, np.ones(count), np.zeros(count)]), np.tile(finite_array(confidences), 3))


def calibration_bins(
    values: Sequence[float] | Floats, confidences: Sequence[float] | Floats, *, bins: int = BINS
) -> tuple[CalibrationBin, ...]:
    """The samples in bins of equally many, by rising confidence; fewer bins where there are fewer samples.

    Args:
        values: worth of the samples' answers, from 0 to 1: 1 for a right one.
        confidences: of the same samples, from 0 to 1.
        bins: how many.

    Raises:
        UsageError: the two are not equally long, or a number is not between 0 and 1.
    """
    import numpy as np

    ranked, smoothed = _ranked(values, confidences)
    check_shares((*ranked[:1].tolist(), *ranked[-1:].tolist()))
    several = [part[::-1] for part in np.array_split(np.arange(len(ranked))[::-1], bins) if len(part)]
    return tuple(
        CalibrationBin(samples=len(part), confidence=float(ranked[part].mean()), value=float(smoothed[part].mean()))
        for part in several
    )


def calibration_error(
    values: Sequence[float] | Floats, confidences: Sequence[float] | Floats, *, bins: int = BINS
) -> float | None:
    """The expected calibration error (ECE): the mean distance of confidence and share of right answers over bins.

    Bins hold equally many samples (Nguyen and O'Connor, "Posterior calibration and exploratory analysis for natural
    language processing models", EMNLP 2015). On few samples chance alone makes it larger than it truly is.

    Returns:
        None without samples.

    Raises:
        UsageError: as `calibration_bins` says.
    """
    several = calibration_bins(values, confidences, bins=bins)
    count = sum(each.samples for each in several)
    return sum(each.samples * abs(each.value - each.confidence) for each in several) / count if count else None


def calibration_error_interval(
    values: Sequence[float], confidences: Sequence[float], clusters: Sequence[ClusterKey] | None = None, *, seed: int
) -> Interval | None:
    """The interval of `calibration_error`, from resampled whole clusters, as `cluster_bootstrap` has it.

    Raises:
        UsageError: as `calibration_bins` says, or clusters and samples differ in number.
    """
    import numpy as np

    count, stated = len(values), finite_array(confidences)
    # Behind the samples stand the same as far from their confidence, and as near to it, as answers can be.
    worths = np.concatenate([values, (stated < 0.5).astype(np.float64), (stated >= 0.5).astype(np.float64)])
    levels = np.tile(stated, 3)

    def error(drawn: Sequence[int]) -> float | None:
        places = [*drawn]
        return calibration_error(worths[places], levels[places])

    ends = range(count, 2 * count), range(2 * count, 3 * count)
    return cluster_bootstrap(error, range(count), clusters, bounds=lambda: ends, seed=seed)


def _ranked(first: Sequence[float] | Floats, confidences: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    """Confidences from the highest on, and for each the mean of `first` over all samples with this confidence."""
    import numpy as np

    numbers, ranks = finite_array(first), finite_array(confidences)
    if len(numbers) != len(ranks):
        msg = f"{len(ranks)} confidences are given for {len(numbers)} samples."
        raise UsageError(msg, hint="Give one for each sample.")
    check_shares((float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0))))
    levels, codes = np.unique(-ranks, return_inverse=True)
    counts = np.bincount(codes, minlength=len(levels))
    means = np.bincount(codes, weights=numbers, minlength=len(levels)) / np.maximum(counts, 1)
    return np.repeat(-levels, counts), np.repeat(means, counts)
