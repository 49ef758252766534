from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import UsageError
from askance.statistics import (
    Estimate,
    Interval,
    bootstrap_mean,
    bootstrap_totals,
    cluster_bootstrap,
    clustered_standard_error,
    mean_estimate,
    wilson,
)
from askance.statistics.resampling import coin_tosses, resampled_indices
from tests.statistics import reference

about: Any = pytest.approx
rows_in_clusters = st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 6)), min_size=2, max_size=30)


PLACES = [[3, 5, 4, 1, 1, 5], [0, 4, 4, 2, 1, 1]]
COINS = [[1, 0, 0, 0, 1, 0], [1, 0, 0, 1, 0, 1]]


def plain_mean(values: object) -> float:
    return float(np.mean(np.asarray(values)))


def test_draws_are_the_same_everywhere() -> None:
    assert next(resampled_indices(7, draws=2, strata=(6,))).tolist() == PLACES
    assert next(coin_tosses(7, draws=2, size=6)).astype(int).tolist() == COINS


def test_many_draws_come_in_chunks() -> None:
    chunks = list(resampled_indices(1, draws=3, strata=(1_000_000,)))

    assert [chunk.shape for chunk in chunks] == [(1, 1_000_000)] * 3
    assert 0.49 < float(chunks[1].mean()) / 1_000_000 < 0.51


@given(rows_in_clusters, st.integers(0, 9))
def test_the_order_of_rows_does_not_matter(rows: list[tuple[float, int]], seed: int) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    forth = mean_estimate(values, clusters, seed=seed, draws=50)

    assert mean_estimate(values[::-1], clusters[::-1], seed=seed, draws=50) == forth
    assert bootstrap_mean(values[::-1], seed=seed, draws=50) == bootstrap_mean(values, seed=seed, draws=50)


@given(rows_in_clusters)
def test_an_interval_holds_its_estimate(rows: list[tuple[float, int]]) -> None:
    estimate = mean_estimate([value for value, _ in rows], [cluster for _, cluster in rows], seed=3, draws=400)

    assert estimate.value is not None
    assert estimate.interval is None or estimate.interval.low - 1e-9 <= estimate.value <= estimate.interval.high + 1e-9


def test_the_three_ways_to_resample_a_mean_agree() -> None:
    values, clusters = [0.0, 1.0, 1.0, 0.5, 0.0, 1.0], ["a", "a", "b", "c", "d", "d"]
    fast = bootstrap_mean(values, clusters, seed=4, draws=300)
    by_rows = cluster_bootstrap(plain_mean, values, clusters, seed=4, draws=300)
    by_totals = bootstrap_totals(
        lambda sums: sums[..., 0] / sums[..., 1], [(value, 1) for value in values], clusters, seed=4, draws=300
    )

    assert fast is not None
    assert by_rows is not None
    assert by_totals is not None
    assert (fast.low, fast.high) == pytest.approx((by_rows.low, by_rows.high))
    assert (fast.low, fast.high) == pytest.approx((by_totals.low, by_totals.high))


def test_draws_without_a_value_are_left_out_and_counted() -> None:
    interval = cluster_bootstrap(lambda rows: max(rows) if 1 in rows else None, [1, 2, 3], seed=1, draws=300)
    never = cluster_bootstrap(lambda rows: None, [1, 2, 3], seed=1, draws=300)

    assert interval is not None
    assert 60 < interval.undefined < 120  # (2/3)³ of the draws lack the 1
    assert never is None


NAMED: dict[str, tuple[list[float], list[str] | None, Estimate]] = {
    "no data": ([], None, Estimate(value=None, interval=None, n=0, n_clusters=0, state="no data")),
    "one row": ([0.5], None, Estimate(value=0.5, interval=None, n=1, n_clusters=1, state="one cluster")),
    "one cluster": (
        [0.25, 0.75],
        ["a", "a"],
        Estimate(value=0.5, interval=None, n=2, n_clusters=1, state="one cluster"),
    ),
    "clusters alike": (
        [0.2, 0.4] * 3,
        [*"aabbcc"],
        Estimate(value=about(0.3), interval=None, n=6, n_clusters=3, state="no spread"),
    ),
    "all equal": ([0.1] * 3, None, Estimate(value=0.1, interval=None, n=3, n_clusters=3, state="no spread")),
}


@pytest.mark.parametrize(("values", "clusters", "estimate"), NAMED.values(), ids=NAMED)
def test_what_cannot_be_estimated_is_named(values: list[float], clusters: list[str] | None, estimate: Estimate) -> None:
    named = mean_estimate(values, clusters, seed=1)

    assert (named.value, named.interval, named.n, named.n_clusters) == (
        estimate.value,
        estimate.interval,
        estimate.n,
        estimate.n_clusters,
    )
    assert named.state == estimate.state


def test_an_interval_is_not_empty_where_every_cluster_has_one_mean() -> None:
    alike = mean_estimate([1, 0] * 4, list("aabbccdd"), seed=1, binary=True)

    assert (alike.value, alike.state) == (0.5, "no spread")
    assert alike.interval == mean_estimate([1, 1, 0, 0], seed=1, binary=True).interval


def test_right_or_wrong_answers_get_wilsons_interval() -> None:
    alone = mean_estimate([1, 0, 1, 1], seed=1, binary=True)
    all_right = mean_estimate([1] * 8, list("aabbccdd"), seed=1, binary=True)

    assert alone.interval == Interval(low=about(0.30064, abs=1e-5), high=about(0.95441, abs=1e-5), method="wilson")
    assert all_right.interval is not None
    assert (round(all_right.interval.low, 4), all_right.interval.high) == (0.5101, 1.0)  # 4 of 4


REFUSED = {
    "too few clusters": ([1.0, 2.0], ["a"], False, r"^1 clusters are given for 2 rows\."),
    "not a number": ([1.0, float("nan")], None, False, r"^nan is not a finite number\."),
    "partly right": ([1.0, 0.5], None, True, r"^0\.5 is neither 0 nor 1\."),
}


@pytest.mark.parametrize(("values", "clusters", "binary", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_computed_with_is_refused(
    values: list[float], clusters: list[str] | None, binary: bool, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        mean_estimate(values, clusters, seed=1, binary=binary)


def test_standard_errors_are_those_of_statsmodels() -> None:
    for case in reference.read()["clustered error"]:
        values, clusters = case["values"], case["clusters"]
        assert clustered_standard_error(values, clusters) == about(case["said"])


def test_with_one_row_in_each_cluster_the_error_is_the_ordinary_one() -> None:
    values = [1.0, 4.0, 2.0, 8.0]

    assert clustered_standard_error(values, [3, 1, 2, 0]) == pytest.approx(float(np.std(values, ddof=1)) / 2)
    assert clustered_standard_error([1.0]) is None


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Images differ in difficulty, and each has one to four rows; without clusters too few hold the truth."""
    source = np.random.default_rng(11)
    held = {"clusters": 0, "rows": 0}
    for run in range(400):
        sizes = source.integers(1, 5, 80)
        clusters = np.repeat(np.arange(80), sizes).tolist()
        values = (source.random(len(clusters)) < np.repeat(source.beta(0.5, 0.5, 80), sizes)).astype(float).tolist()
        for name, given_clusters in (("clusters", clusters), ("rows", None)):
            interval = bootstrap_mean(values, given_clusters, seed=run, draws=300)
            held[name] += interval is not None and 0.5 in interval

    assert 0.92 <= held["clusters"] / 400 <= 0.975
    assert held["rows"] / 400 < 0.90


# --- strata ---


Rows = tuple[list[float], list[str], list[int]]
"""Values, clusters, strata."""


def stratified(source: np.random.Generator, *, times: int = 1) -> Rows:
    """Right or wrong answers of three strata of unlike sizes and difficulty, with one to five rows a cluster."""
    values: list[float] = []
    clusters: list[str] = []
    strata: list[int] = []
    for stratum, (count, share) in enumerate(((40 * times, 0.9), (25 * times, 0.5), (60 * times, 0.3))):
        for cluster, rows in enumerate(source.integers(1, 6, count)):
            worth = source.beta(share * 3, (1 - share) * 3)
            values += [float(source.random() < worth) for _ in range(int(rows))]
            clusters += [f"{stratum}-{cluster}"] * int(rows)
            strata += [stratum] * int(rows)
    return values, clusters, strata


def drawn_by_numpy(rows: Rows, *, draws: int) -> tuple[float, float, float]:
    """Mean over strata and the limits of its interval, by the plainest code there is and other random numbers."""
    source = np.random.default_rng(99)
    table: dict[int, dict[str, list[float]]] = {}
    for value, cluster, stratum in zip(*rows, strict=True):
        table.setdefault(stratum, {}).setdefault(cluster, []).append(value)
    figures: list[float] = []
    for _ in range(draws):
        means: list[float] = []
        for of_stratum in table.values():
            names = source.choice([*of_stratum], len(of_stratum))
            means.append(plain_mean([value for name in names for value in of_stratum[name]]))
        figures.append(plain_mean(means))
    value = plain_mean([plain_mean([*chain(*each.values())]) for each in table.values()])
    low, high = np.quantile(figures, [0.025, 0.975])
    return value, float(low), float(high)


def test_a_mean_over_strata_is_that_of_plain_numpy() -> None:
    values, clusters, strata = stratified(np.random.default_rng(5))
    value, low, high = drawn_by_numpy((values, clusters, strata), draws=3000)
    found = mean_estimate(values, clusters, strata=strata, seed=1, binary=True)

    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.value != pytest.approx(np.mean(values), abs=0.005)  # the pooled one is another
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), abs=0.008)
    assert found.n_clusters == 125


def test_the_three_ways_to_resample_a_mean_over_strata_agree() -> None:
    values, clusters, strata = stratified(np.random.default_rng(6))
    fast = bootstrap_mean(values, clusters, strata=strata, seed=4, draws=300)
    by_rows = cluster_bootstrap(plain_mean, values, clusters, strata=strata, seed=4, draws=300)
    by_totals = bootstrap_totals(
        lambda sums: sums[..., 0] / sums[..., 1],
        [(value, 1) for value in values],
        clusters,
        strata=strata,
        seed=4,
        draws=300,
    )

    assert fast is not None
    assert by_rows is not None
    assert by_totals is not None
    assert (fast.low, fast.high) == pytest.approx((by_rows.low, by_rows.high))
    assert (fast.low, fast.high) == pytest.approx((by_totals.low, by_totals.high))


def test_one_stratum_is_none() -> None:
    values, clusters, _ = stratified(np.random.default_rng(7))
    one = ["same"] * len(values)

    assert mean_estimate(values, clusters, strata=one, seed=2) == mean_estimate(values, clusters, seed=2)
    assert mean_estimate([1, 0, 1], strata=[0, 0, 0], seed=2, binary=True).interval == wilson(2, 3)


@given(rows_in_clusters, st.integers(0, 9))
def test_the_order_of_rows_does_not_matter_with_strata(rows: list[tuple[float, int]], seed: int) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    strata = [cluster % 2 for cluster in clusters]
    forth = mean_estimate(values, clusters, strata=strata, seed=seed, draws=50)

    assert mean_estimate(values[::-1], clusters[::-1], strata=strata[::-1], seed=seed, draws=50) == forth


def test_every_draw_has_as_many_clusters_of_a_stratum_as_there_are() -> None:
    drawn = next(resampled_indices(3, draws=400, strata=(2, 5, 1)))

    assert [sorted({*drawn[:, place].tolist()}) for place in (0, 4, 7)] == [[0, 1], [2, 3, 4, 5, 6], [7]]


def test_the_standard_error_over_strata_is_that_of_independent_parts() -> None:
    values, clusters, strata = stratified(np.random.default_rng(8))
    each = [
        clustered_standard_error(
            [value for value, own in zip(values, strata, strict=True) if own == stratum],
            [cluster for cluster, own in zip(clusters, strata, strict=True) if own == stratum],
        )
        for stratum in range(3)
    ]

    assert None not in each
    expected = np.sqrt(sum(error**2 for error in each if error)) / 3
    assert clustered_standard_error(values, clusters, strata) == pytest.approx(float(expected))


def test_without_spread_within_strata_there_is_no_bootstrap() -> None:
    clusters, strata = list("aabbccdd"), [0] * 4 + [1] * 4
    right = mean_estimate([1] * 8, clusters, strata=strata, seed=1, binary=True)
    apart = mean_estimate([0.25] * 4 + [0.75] * 4, clusters, strata=strata, seed=1)
    alone = mean_estimate([1, 0, 0, 1, 1, 0], list("aabbcc"), strata=[0, 0, 0, 0, 1, 1], seed=1, binary=True)

    assert right.interval == wilson(4, 4)
    assert (apart.value, apart.interval, apart.state) == (0.5, None, "no spread")
    assert (alone.value, alone.interval, alone.state) == (0.5, None, "one cluster")


def test_a_stratum_without_a_value_leaves_a_draw_without_one() -> None:
    """The second stratum has a value in three draws of four: those that are not twice its second row."""
    rows, strata = [1, 2, 5, 0], [0, 0, 1, 1]
    interval = cluster_bootstrap(lambda drawn: max(drawn) or None, rows, strata=strata, seed=1, draws=400)

    assert interval is not None
    assert 60 < interval.undefined < 140
    assert (interval.low, interval.high) == (3, 3.5)


def test_a_stratum_for_each_row() -> None:
    with pytest.raises(UsageError, match=r"^2 strata are given for 3 rows\. Give one for each row"):
        mean_estimate([1, 0, 1], strata=["a", "b"], seed=1)


def test_intervals_over_strata_hold_the_truth_as_often_as_they_say() -> None:
    source, held = np.random.default_rng(12), 0
    for run in range(300):
        values, clusters, strata = stratified(source, times=3)
        interval = bootstrap_mean(values, clusters, strata=strata, seed=run, draws=300)
        held += interval is not None and (0.9 + 0.5 + 0.3) / 3 in interval

    assert 0.9 <= held / 300 <= 0.98  # 1,000 runs give 93 and 94 % by two seeds; 300 of them vary by 1.4 %
