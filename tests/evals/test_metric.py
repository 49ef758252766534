"""Figures: conventions, bounds, and which interval goes with which metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.evals import Figure, Metric, Score, mean
from askance.evals.metric import Scored, figure
from askance.statistics import Interval, bootstrap_mean, cluster_bootstrap, wilson

ACCURACY = mean("right", name="accuracy")


def score(value: float) -> Score:
    return Score(values={"right": value})


def row(value: float | None, cluster: str, *, right: float = 1.0) -> Scored:
    return Scored(
        cluster=cluster, score=None if value is None else score(value), if_wrong=score(0.0), if_right=score(right)
    )


def rows(*values: float | None, clusters: Sequence[str] | None = None) -> list[Scored]:
    names = clusters or [str(place) for place in range(len(values))]
    return [row(value, cluster) for value, cluster in zip(values, names, strict=True)]


def test_a_figure_has_its_counts_and_what_non_answers_could_make_of_it() -> None:
    found = figure(ACCURACY, rows(1, 1, 0, None))

    assert found == Figure(
        metric="accuracy",
        value=0.5,
        interval=wilson(2, 4),
        convention="wrong",
        samples=4,
        clusters=4,
        answered=3,
        among_answered=2 / 3,
        if_wrong=0.5,
        if_right=0.75,
    )


def test_by_the_other_convention_non_answers_are_left_out() -> None:
    found = figure(ACCURACY, rows(1, 1, 0, None), convention="answered")

    assert (found.value, found.interval, found.samples, found.answered) == (2 / 3, wilson(2, 3), 4, 3)


def test_the_best_that_a_sample_allows_bounds_it() -> None:
    found = figure(ACCURACY, [row(1, "a"), row(None, "b", right=0.5)])

    assert (found.if_wrong, found.if_right) == (0.5, 0.75)


EMPTY = {"nothing": (rows(), "wrong", 0, None), "no answer": (rows(None, None), "answered", 2, 0.0)}


@pytest.mark.parametrize(("given_rows", "convention", "samples", "lower"), EMPTY.values(), ids=EMPTY)
def test_without_samples_that_count_there_is_no_value(
    given_rows: list[Scored], convention: Any, samples: int, lower: float | None
) -> None:
    found = figure(ACCURACY, given_rows, convention=convention)

    assert (found.value, found.interval, found.samples, found.if_wrong) == (None, None, samples, lower)


def test_a_sample_without_the_column_is_no_part_of_a_metric() -> None:
    odd = Scored(cluster="x", score=Score(values={}), if_wrong=Score(values={}), if_right=Score(values={}))

    assert figure(ACCURACY, [*rows(1, 0), odd]).samples == 2


INTERVALS: dict[str, tuple[tuple[float, ...], str | None, Callable[[], Interval | None]]] = {
    "shares of independent samples": ((1, 0, 1, 1), None, lambda: wilson(3, 4)),
    "shares of samples in clusters": (
        (1, 0, 1, 1),
        "aabc",
        lambda: bootstrap_mean([1, 0, 1, 1], list("aabc"), seed=0),
    ),
    "means": ((0.5, 0.25, 1, 0), None, lambda: bootstrap_mean([0.5, 0.25, 1, 0], list("0123"), seed=0)),
}


@pytest.mark.parametrize(("values", "clusters", "interval"), INTERVALS.values(), ids=INTERVALS)
def test_the_interval_is_wilsons_for_independent_shares_and_a_bootstrap_of_clusters_else(
    values: tuple[float, ...], clusters: str | None, interval: Callable[[], Interval | None]
) -> None:
    assert figure(ACCURACY, rows(*values, clusters=clusters)).interval == interval()


def share_of_sums(sums: Sequence[float]) -> float:
    return sums[0] / sums[1]


def of_two(right: float) -> Score:
    return Score(values={"right": right, "all": 1.0})


def agreeing(value: float, *, ends: Any = None) -> list[Scored]:
    """Eight samples that are all worth as much, of tasks that say what a wrong and a right answer is worth."""
    score = of_two(value)
    return [Scored(cluster=str(place), score=score, if_wrong=score, if_right=score, ends=ends) for place in range(8)]


def both_ends() -> tuple[Score, Score]:
    return of_two(0.0), of_two(1.0)


AGREEING = {
    "a mean": mean("right"),
    "a figure of sums": Metric(name="by sums", columns=("right", "all"), of_sums=share_of_sums),
    "a statistic": Metric(name="own", columns=("right", "all"), statistic=lambda rows: float(rows.mean(axis=0)[0])),
}


@pytest.mark.parametrize("metric", AGREEING.values(), ids=AGREEING)
def test_where_all_samples_agree_the_interval_reaches_to_what_was_not_seen(metric: Metric) -> None:
    found = figure(metric, agreeing(0.75, ends=both_ends)).interval
    more = 4 if metric.statistic is not None else 1.959963984540054**2

    assert found is not None
    assert (found.low, found.high) == pytest.approx((6 / (8 + more), (6 + more) / (8 + more)))
    assert found.method == "unseen clusters"


NO_ENDS: dict[str, Any] = {
    "that cannot be told": lambda: None,
    "without the column": lambda: (Score(values={}), Score(values={})),
    "none": None,
}


@pytest.mark.parametrize("ends", NO_ENDS.values(), ids=NO_ENDS)
@pytest.mark.parametrize("metric", AGREEING.values(), ids=AGREEING)
def test_without_ends_there_is_no_interval_rather_than_one_without_width(metric: Metric, ends: Any) -> None:
    assert figure(metric, agreeing(0.75, ends=ends)).interval is None


def test_the_ends_are_asked_for_only_where_all_samples_agree() -> None:
    def never() -> tuple[Score, Score]:
        raise AssertionError

    several = [replace(row, score=of_two(0.1 * place), ends=never) for place, row in enumerate(agreeing(0.0))]

    for name in ("a mean", "a figure of sums"):
        assert figure(AGREEING[name], several).interval is not None


def largest(matrix: Any) -> float:
    return float(matrix.max())


def test_a_metric_of_its_own_statistic_is_bootstrapped() -> None:
    metric = Metric(name="best", columns=("right",), statistic=largest)
    found = figure(metric, rows(0.2, 0.9, 0.4), seed=3)

    expected = cluster_bootstrap(max, [0.2, 0.9, 0.4], list("012"), seed=3)
    assert (found.value, found.interval) == (0.9, expected)


def test_a_statistic_without_a_value_gives_none() -> None:
    metric = Metric(name="none", columns=("right",), statistic=lambda _: float("nan"))

    assert (figure(metric, rows(1, 0)).value, figure(metric, rows(1, 0)).interval) == (None, None)


values = st.lists(st.none() | st.floats(0, 1), max_size=12)


@given(values)
def test_bounds_hold_the_value_and_the_form_holds_all(found: list[float | None]) -> None:
    made = figure(ACCURACY, rows(*found))

    assert Figure.from_form(made.form()) == made
    if made.value is not None and made.if_wrong is not None and made.if_right is not None:
        assert made.if_wrong == made.value <= made.if_right + 1e-12


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_samples_changes_no_value(found: list[float | None], random: Any) -> None:
    one = rows(*found)
    other = random.sample(one, len(one))

    assert figure(ACCURACY, one).value == pytest.approx(figure(ACCURACY, other).value)
