from __future__ import annotations

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
    assert next(resampled_indices(7, draws=2, size=6)).tolist() == PLACES
    assert next(coin_tosses(7, draws=2, size=6)).astype(int).tolist() == COINS


def test_many_draws_come_in_chunks() -> None:
    chunks = list(resampled_indices(1, draws=3, size=1_000_000))

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
