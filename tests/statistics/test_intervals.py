from __future__ import annotations

import pytest

from askance.errors import UsageError
from askance.statistics import Confusion, Estimate, Interval, confusion, share_estimate, wilson
from tests.statistics import reference

NEWCOMBE = {"usual": (81, 263, 0.2553, 0.3662), "few": (15, 148, 0.0624, 0.1605), "one": (1, 29, 0.0061, 0.1718)}
"""Newcombe 1998, *Statistics in Medicine* 17, table I, method 3."""


@pytest.mark.parametrize(("successes", "n", "low", "high"), NEWCOMBE.values(), ids=NEWCOMBE)
def test_wilson_gives_the_published_limits(successes: int, n: int, low: float, high: float) -> None:
    interval = wilson(successes, n)

    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_wilson_is_that_of_statsmodels() -> None:
    wrong: list[object] = []
    for case in reference.read()["wilson"]:
        interval = wilson(case["successes"], case["n"], level=case["level"])
        if [interval.low, interval.high] != pytest.approx(case["said"], abs=1e-12):
            wrong.append((case, interval))
        if case["successes"] / case["n"] not in interval:
            wrong.append((case, "does not hold the share itself"))
    assert wrong == []


def test_without_samples_a_share_may_be_anything() -> None:
    everything = Interval(low=0.0, high=1.0, method="wilson")

    assert share_estimate(0, 0) == Estimate(value=None, interval=everything, n=0, n_clusters=0, state="no data")


def test_counts_that_are_no_share_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^2 of 1 is not a share\."):
        wilson(2, 1)


def test_a_level_is_a_share() -> None:
    with pytest.raises(UsageError, match=r"^A level of 95 is not between 0 and 1\. Give it as a share"):
        wilson(1, 2, level=95)


def test_verdicts_are_counted_against_the_truth() -> None:
    counted = confusion([True, True, True, False, False, False], [True, True, False, False, True, None])

    assert counted == Confusion(true_yes=2, false_yes=1, true_no=1, false_no=1, unscored=1)
    shares = (counted.sensitivity, counted.specificity, counted.accuracy)
    assert [share.value for share in shares] == [2 / 3, 1 / 2, 3 / 5]


def test_without_true_samples_there_is_no_sensitivity() -> None:
    counted = confusion([False, False], [False, True])

    assert (counted.sensitivity.value, counted.sensitivity.state) == (None, "no data")


def test_a_verdict_for_each_truth() -> None:
    with pytest.raises(UsageError, match=r"^1 verdicts are given for 2 truths\."):
        confusion([True, False], [True])
