"""χ² by its distribution and by permutation, rank correlation, independence of errors: against scipy and by hand."""

from __future__ import annotations

import time
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from askance.errors import UsageError
from askance.statistics import ChiSquared, chi_squared, error_independence, outcomes_by_group, pearson, spearman

about: Any = pytest.approx
TABLES = {
    "two by two": [[10, 20], [30, 40]],
    "folds": [[410, 128], [399, 139], [420, 118], [401, 137], [398, 140]],
    "three columns": [[5, 9, 2], [7, 1, 8]],
    "contests": [[3, 0], [2, 1], [0, 3], [6, 0], [1, 5]],
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_chi_squared_is_that_of_scipy(table: list[list[int]]) -> None:
    expected = stats.chi2_contingency(table, correction=False)

    assert chi_squared(table) == ChiSquared(
        statistic=about(expected.statistic),
        freedom=expected.dof,
        p=about(expected.pvalue),
        rows=len(table),
        least_expected=about(expected.expected_freq.min()),
    )


def test_what_is_empty_is_left_out_and_what_cannot_differ_has_no_p() -> None:
    assert chi_squared([[3, 1], [0, 0], [2, 2]]) == chi_squared([[3, 1], [2, 2]])
    assert chi_squared([[3, 0], [5, 0]]) == ChiSquared(statistic=None, freedom=0, p=None, rows=2, least_expected=None)
    assert chi_squared([[3, 2]]).p is None
    assert outcomes_by_group([True, True], [["a"], ["b"]], seed=1).permutation_p is None
    assert outcomes_by_group([], [], seed=1).statistic is None


@pytest.mark.parametrize("table", [[[1, 2], [3]], [1, 2]], ids=str)
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(UsageError, match=r"^A contingency table has rows of equally many counts\. Give each"):
        chi_squared(table)


def test_groups_of_samples_make_the_table() -> None:
    outcomes = [True, True, False, True, False, False, True]
    found = outcomes_by_group(outcomes, [[name] for name in "aaabbbb"], seed=1)
    expected = chi_squared([[2, 1], [2, 2]])

    assert (found.statistic, found.p, found.rows) == (expected.statistic, expected.p, 2)


def test_a_sample_may_count_in_several_groups() -> None:
    found = outcomes_by_group([True, False, True], [["a", "b"], ["b", "c"], ["a", "c"]], seed=1)

    assert found.statistic == about(chi_squared([[2, 0], [1, 1], [1, 1]]).statistic)


def test_the_permutation_p_is_that_of_all_ways_to_deal_out() -> None:
    """Eight samples, four of them right: 70 ways, each equally likely."""
    groups = list("aaabbbcc")
    outcomes = [True, True, False, True, False, False, True, False]

    def statistic(right: set[int]) -> float:
        table = [
            [sum(groups[n] == name and (n in right) is hit for n in range(8)) for hit in (True, False)]
            for name in "abc"
        ]
        return float(stats.chi2_contingency(table, correction=False).statistic)

    seen = statistic({n for n in range(8) if outcomes[n]})
    exact = np.mean([statistic({*each}) >= seen - 1e-9 for each in combinations(range(8), 4)])
    found = outcomes_by_group(outcomes, [[name] for name in groups], seed=3, draws=20_000)

    assert found.permutation_p == about(float(exact), abs=0.01)
    assert found.p != about(float(exact), abs=0.02)  # so few counts are expected that the distribution is another


def test_with_many_counts_both_p_agree() -> None:
    source = np.random.default_rng(2)
    groups = [[int(number)] for number in source.integers(0, 5, 2500)]
    outcomes = [bool(source.random() < 0.7 + 0.02 * own[0]) for own in groups]
    found = outcomes_by_group(outcomes, groups, seed=4)

    assert found.least_expected is not None
    assert found.least_expected > 100
    assert found.p is not None
    assert 0.001 < found.p < 0.9
    assert found.permutation_p == about(found.p, abs=0.03)


def test_whole_clusters_are_dealt_out() -> None:
    """Two folds of two contests each; each contest is all right or all wrong, so that only six ways differ."""
    outcomes = [True] * 10 + [False] * 10
    folds, contests = [[place // 10] for place in range(20)], [place // 5 for place in range(20)]
    whole = outcomes_by_group(outcomes, folds, contests, seed=1)
    single = outcomes_by_group(outcomes, folds, seed=1)

    assert whole.permutation_p == about(1 / 3, abs=0.04)
    assert single.permutation_p == about(1 / 2001)
    with pytest.raises(
        UsageError, match=r"^The samples of the cluster 0 are in different groups\. Leave `clusters` out"
    ):
        outcomes_by_group([True, False], [["a"], ["b"]], [0, 0], seed=1)
    with pytest.raises(UsageError, match=r"^1 lists of groups are given for 2 outcomes\."):
        outcomes_by_group([True, False], [["a"]], seed=1)


def test_without_an_effect_the_permutation_p_is_uniform() -> None:
    """Contests of three samples, in which the χ² distribution errs."""
    source = np.random.default_rng(6)
    found = [
        outcomes_by_group(
            (source.random(60) < 0.8).tolist(), [[place // 3] for place in range(60)], seed=run, draws=199
        )
        for run in range(200)
    ]
    small = sum((each.permutation_p or 1) <= 0.1 for each in found)

    assert 8 <= small <= 32  # twenty are expected


def test_a_whole_test_set_takes_seconds() -> None:
    source = np.random.default_rng(5)
    outcomes = (source.random(2690) < 0.7).tolist()
    distractors = [source.choice(2646, 4, replace=False).tolist() for _ in outcomes]
    start = time.process_time()
    found = outcomes_by_group(outcomes, distractors, seed=1)

    assert time.process_time() - start < 4
    assert found.freedom > 2500
    assert found.permutation_p is not None
    assert found.permutation_p > 0.02


ranks = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30)


@pytest.mark.parametrize(("correlation", "reference"), [(spearman, stats.spearmanr), (pearson, stats.pearsonr)])
@given(pairs=ranks)
def test_a_correlation_is_that_of_scipy(correlation: Any, reference: Any, pairs: list[tuple[int, int]]) -> None:
    a, b = [one for one, _ in pairs], [other for _, other in pairs]
    found = correlation(a, b)

    if len({*a}) < 2 or len({*b}) < 2:
        assert (found.rho, found.p) == (None, None)
    else:
        expected = reference(a, b)
        assert (found.rho, found.p) == (about(expected.statistic), about(expected.pvalue))


def test_pearson_s_correlation_goes_by_distances() -> None:
    assert pearson([1, 2, 3], [2, 4, 6]).rho == about(1.0)
    assert pearson([1, 2, 3, 10], [1, 4, 9, 100]).rho == about(0.99, abs=0.01)
    assert pearson([1, 2, 3, 4], [1, 0, 0, 1]).rho == about(0.0)


def test_rank_correlation_goes_by_ranks_alone() -> None:
    assert spearman([1, 2, 3, 10], [1, 4, 9, 100]).rho == about(1.0)
    assert spearman([1, 2], [2, 1]).rho is None
    with pytest.raises(UsageError, match=r"^2 and 1 samples cannot be paired\."):
        spearman([1, 2], [1])


def test_errors_that_are_independent_and_not() -> None:
    a = [True] * 60 + [False] * 40
    together = [True] * 55 + [False] * 45
    found = error_independence(a, together, seed=1)

    assert (found.both_right, found.a_alone, found.b_alone, found.both_wrong, found.n) == (55, 5, 0, 40, 100)
    assert (found.share, found.expected) == (0.0, 0.55)
    assert found.p == about(stats.fisher_exact(np.array([[55, 5], [0, 40]])).pvalue)
    assert found.interval is not None
    assert found.interval.high < -0.4

    apart = error_independence([True, True, False, False] * 25, [True, False] * 50, seed=1)
    assert (apart.share, apart.expected, apart.p) == (0.5, 0.5, 1.0)
    assert apart.interval is not None
    assert 0 in apart.interval


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_p_is_that_of_all_ways_to_deal_out_the_outcomes(pairs: list[tuple[bool, bool]]) -> None:
    a, b = [one for one, _ in pairs], [other for _, other in pairs]
    wrong, right, n = a.count(False), b.count(True), len(pairs)

    def likely(hits: int) -> float:
        return comb(wrong, hits) * comb(n - wrong, right - hits) / comb(n, right)

    found = error_independence(a, b, seed=1, draws=10)
    if not wrong:
        assert (found.share, found.p, found.interval) == (None, None, None)
        return
    seen = sum(not one and other for one, other in pairs)
    ways = [likely(hits) for hits in range(max(0, right + wrong - n), min(wrong, right) + 1)]
    assert found.p == about(sum(way for way in ways if way <= likely(seen) * (1 + 1e-7)), abs=1e-9)


def test_clusters_widen_what_is_known_of_independence() -> None:
    """Each contest stands there four times."""
    source = np.random.default_rng(9)
    a, b = ((source.random(50) < 0.6).repeat(4).tolist() for _ in range(2))
    clusters = [place // 4 for place in range(200)]
    by_cluster, by_sample = error_independence(a, b, clusters, seed=1), error_independence(a, b, seed=1)

    assert by_cluster.interval is not None
    assert by_sample.interval is not None
    assert by_cluster.interval.width > 1.6 * by_sample.interval.width
    assert error_independence([], [], seed=1).expected is None
