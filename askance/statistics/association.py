"""Whether outcomes hang together: by groups of samples, by rank, and between two systems.

The distribution of Pearson's χ² (1900) is known where five or more counts are expected in each cell. Groups may be as
small as the three to six samples of a picture. So a p by permutation stands beside that of the distribution: outcomes
are dealt out again among the samples, and χ² is computed anew.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from askance.errors import UsageError
from askance.statistics.arguments import check_binary, check_counts, finite_array
from askance.statistics.estimate import DRAWS, Interval
from askance.statistics.paired_tests import check_equal_length
from askance.statistics.resampling import bootstrap_totals

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from askance.statistics.clusters import ClusterKey

    Floats = npt.NDArray[np.float64]

_CHUNK = 250_000
"""Numbers drawn at once: 2 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquared:
    """Pearson's χ² test of a contingency table: whether its rows differ in more than chance."""

    statistic: float | None
    """None where nothing can differ: fewer than two rows or two columns have any counts."""
    freedom: int
    p: float | None
    """By the χ² distribution; too small or too large where few counts are expected."""
    permutation_p: float | None = None
    """By permutation; the smallest is 1 in one more than the permutations. None where there were none."""
    rows: int
    """Rows with any counts."""
    least_expected: float | None
    """The smallest expected count; the χ² distribution is trusted from about five."""


def chi_squared(table: Sequence[Sequence[float]] | Floats) -> ChiSquared:
    """χ² of a table of counts, shape (rows, columns), without a correction for continuity.

    Rows and columns without any counts are left out.

    Raises:
        UsageError: a count is none (negative, NaN, not whole), or rows differ in length.
    """
    import numpy as np

    try:
        counts = np.asarray(table, dtype=np.float64)
    except ValueError:
        counts = np.zeros(0)
    check_counts(*counts.ravel().tolist())
    if counts.ndim != 2:
        msg = "A contingency table has rows of equally many counts."
        raise UsageError(msg, hint="Give each row a count for each column.")
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    rows, columns = counts.shape
    if min(rows, columns) < 2:
        return ChiSquared(statistic=None, freedom=0, p=None, rows=rows, least_expected=None)
    from scipy import stats

    result = stats.chi2_contingency(counts, correction=False)
    return ChiSquared(
        statistic=float(result.statistic),
        freedom=int(result.dof),
        p=float(result.pvalue),
        rows=rows,
        least_expected=float(result.expected_freq.min()),
    )


def outcomes_by_group(
    outcomes: Sequence[bool],
    groups: Sequence[Sequence[Hashable]],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
    draws: int = DRAWS,
) -> ChiSquared:
    """χ² of groups × right or wrong, with the p of outcomes that are dealt out again.

    Args:
        outcomes: whether each sample is right.
        groups: those that each sample is in; it counts once in each.
        clusters: samples that keep together, and are all in the same groups; clusters are then dealt out as wholes.
        seed: of the permutations.
        draws: how many there are.

    Raises:
        UsageError: groups or clusters and outcomes differ in number, samples of a cluster are in different groups, or
            an outcome is neither right nor wrong.
    """
    import numpy as np

    right, sizes, places, codes = _units(outcomes, groups, clusters)
    count = int(codes.max()) + 1 if len(codes) else 0

    def table(order: npt.NDArray[np.intp]) -> Floats:
        hits, all_of = (
            np.bincount(codes, weights=each[order[places]], minlength=count).astype(np.float64)
            for each in (right, sizes)
        )
        return np.stack([hits, all_of - hits], axis=1)

    seen = chi_squared(table(np.arange(len(right))).reshape(-1, 2))
    if seen.statistic is None:
        return seen
    threshold = seen.statistic * (1 - 1e-9)
    reached = sum(_pearson(table(order)) >= threshold for order in _permutations(seed, draws=draws, size=len(right)))
    return ChiSquared(
        statistic=seen.statistic,
        freedom=seen.freedom,
        p=seen.p,
        permutation_p=(1 + reached) / (1 + draws),
        rows=seen.rows,
        least_expected=seen.least_expected,
    )


def _units(
    outcomes: Sequence[bool], groups: Sequence[Sequence[Hashable]], clusters: Sequence[ClusterKey] | None
) -> tuple[Floats, Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Right and all samples of each unit that is dealt out; then units and groups, by number, one pair a membership."""
    import numpy as np

    check_binary(outcomes)
    names = range(len(outcomes)) if clusters is None else clusters
    for what, values in (("lists of groups", groups), ("clusters", names)):
        if len(values) != len(outcomes):
            msg = f"{len(values)} {what} are given for {len(outcomes)} outcomes."
            raise UsageError(msg, hint="Give one for each.")
    units: dict[ClusterKey, tuple[tuple[Hashable, ...], list[bool]]] = {}
    for outcome, own, name in zip(outcomes, groups, names, strict=True):
        unit_groups, results = units.setdefault(name, (tuple(own), []))
        if unit_groups != tuple(own):
            msg = f"The samples of the cluster {name!r} are in different groups."
            raise UsageError(msg, hint="Leave `clusters` out, so that single samples are dealt out.")
        results.append(bool(outcome))
    numbers: dict[Hashable, int] = {}
    members = [
        (place, numbers.setdefault(group, len(numbers)))
        for place, (own, _) in enumerate(units.values())
        for group in own
    ]
    places = np.array(members, dtype=np.int64).reshape(-1, 2)
    right = np.array([sum(results) for _, results in units.values()], dtype=np.float64)
    sizes = np.array([len(results) for _, results in units.values()], dtype=np.float64)
    return right, sizes, places[:, 0], places[:, 1]


def _pearson(table: Floats) -> float:
    """χ² of a table with two columns; 0 where nothing can differ."""
    totals = table.sum(axis=1)
    shares = table.sum(axis=0) / totals.sum()
    if not shares.all():
        return 0.0
    occupied = totals > 0
    off = (table[occupied, 0] - totals[occupied] * shares[0]) ** 2 / totals[occupied]
    return float(off.sum() / (shares[0] * shares[1]))


def _permutations(seed: int, *, draws: int, size: int) -> Iterator[npt.NDArray[np.intp]]:
    """Random orders of so many places, from raw words, so that they are the same with every release of NumPy."""
    import numpy as np

    check_counts(draws)
    source, rows = np.random.PCG64(seed), max(1, _CHUNK // max(1, size))
    for start in range(0, draws, rows):
        several = min(rows, draws - start)
        words = source.random_raw(several * size).reshape(several, size)
        yield from np.argsort(words, axis=1, kind="stable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """How far two lists of numbers rise together."""

    rho: float | None
    """From -1 to 1; None with fewer than three pairs, or where one list does not vary."""
    p: float | None
    """Two-sided, by Student's t."""
    n: int
    """Pairs."""


def spearman(a: Sequence[float], b: Sequence[float]) -> Correlation:
    """Spearman's rank correlation (1904), with mean ranks for ties.

    Raises:
        UsageError: the two are not equally long, or a value is not finite.
    """
    return _correlation(a, b, "spearmanr")


def pearson(a: Sequence[float], b: Sequence[float]) -> Correlation:
    """Pearson's correlation (1895): how far two lists of numbers lie on a line.

    Raises:
        UsageError: the two are not equally long, or a value is not finite.
    """
    return _correlation(a, b, "pearsonr")


def _correlation(a: Sequence[float], b: Sequence[float], name: Literal["spearmanr", "pearsonr"]) -> Correlation:
    """The correlation that scipy calls so."""
    check_equal_length(a, b)
    finite_array([*a, *b])
    if len(a) < 3 or min(len({*a}), len({*b})) < 2:
        return Correlation(rho=None, p=None, n=len(a))
    from scipy import stats

    result = stats.spearmanr(a, b) if name == "spearmanr" else stats.pearsonr(a, b)
    return Correlation(rho=float(result.statistic), p=float(result.pvalue), n=len(a))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorIndependence:
    """Whether two systems are wrong on the same samples more often than by chance."""

    both_right: int
    a_alone: int
    """Samples that only A has right."""
    b_alone: int
    both_wrong: int
    share: float | None
    """Of the samples that A has wrong, the share that B has right; None where A has none wrong."""
    expected: float | None
    """What `share` would be if errors were independent: the share that B has right of all samples."""
    p: float | None
    """Two-sided p of the permutation test, exact (Fisher's): B's outcomes are dealt out again among the samples."""
    interval: Interval | None
    """Of `share` - `expected`, by bootstrap of whole clusters. It takes account of clusters, which p does not."""

    @property
    def n(self) -> int:
        """Samples."""
        return self.both_right + self.a_alone + self.b_alone + self.both_wrong


def error_independence(
    a: Sequence[bool],
    b: Sequence[bool],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    seed: int,
    draws: int = DRAWS,
) -> ErrorIndependence:
    """How often B is right where A is wrong, and how often it would be if their errors were independent.

    Args:
        a: whether A has each sample right.
        b: whether B has it right.
        clusters: for the interval.
        seed: of the interval.
        draws: of the interval.

    Raises:
        UsageError: the two are not equally long, clusters and samples differ in number, or an outcome is neither right
            nor wrong.
    """
    check_equal_length(a, b)
    check_binary([*a, *b])
    pairs = [(bool(one), bool(other)) for one, other in zip(a, b, strict=True)]
    both, first, second, neither = (pairs.count((one, other)) for one in (True, False) for other in (True, False))
    wrong, right = second + neither, both + second
    rows = [(float(not one and other), float(not one), float(other), 1.0) for one, other in pairs]
    p = interval = None
    if pairs and wrong:
        import numpy as np
        from scipy import stats

        p = float(stats.fisher_exact(np.array([[both, first], [second, neither]])).pvalue)
        interval = bootstrap_totals(_beyond_independence, rows, clusters, seed=seed, draws=draws)
    return ErrorIndependence(
        both_right=both,
        a_alone=first,
        b_alone=second,
        both_wrong=neither,
        share=second / wrong if wrong else None,
        expected=right / len(pairs) if pairs else None,
        p=p,
        interval=interval,
    )


def _beyond_independence(sums: Floats) -> Floats:
    """From sums of: A wrong and B right, A wrong, B right, samples."""
    import numpy as np

    wrong = sums[..., 1]
    share = np.divide(sums[..., 0], wrong, out=np.full_like(wrong, math.nan), where=wrong > 0)
    return share - sums[..., 2] / sums[..., 3]
