from __future__ import annotations

import pytest

from askance.errors import UsageError
from askance.statistics import Estimate, Interval, share_estimate, wilson
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
