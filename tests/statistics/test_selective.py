"""Risk by coverage and calibration, held against their definitions by brute force."""

from __future__ import annotations

from itertools import pairwise, permutations
from random import Random
from statistics import fmean

import pytest

from askance.errors import UsageError
from askance.statistics import (
    RiskPoint,
    calibration_bins,
    calibration_error,
    risk_coverage_area,
    risk_coverage_curve,
)


def area_of_orders(losses: list[float], confidences: list[float]) -> float:
    """The area by its definition: the mean over all orders that the confidences allow."""
    areas: list[float] = []
    for order in permutations(range(len(losses))):
        if all(confidences[a] >= confidences[b] for a, b in pairwise(order)):
            ranked = [losses[place] for place in order]
            areas.append(fmean(fmean(ranked[: k + 1]) for k in range(len(ranked))))
    return fmean(areas)


@pytest.mark.parametrize("seed", range(5))
def test_the_area_is_the_mean_risk_over_all_coverages_and_over_all_orders_of_ties(seed: int) -> None:
    random = Random(seed)
    losses = [random.choice([0.0, 0.5, 1.0]) for _ in range(6)]
    confidences = [random.choice([0.2, 0.5, 0.9]) for _ in range(6)]

    assert risk_coverage_area(losses, confidences) == pytest.approx(area_of_orders(losses, confidences))


def test_the_curve_has_a_point_for_each_confidence_from_the_surest_answers_to_all() -> None:
    curve = risk_coverage_curve([0, 1, 0, 1], [0.9, 0.5, 0.5, 0.1])

    assert curve == (
        RiskPoint(confidence=0.9, coverage=0.25, risk=0.0),
        RiskPoint(confidence=0.5, coverage=0.75, risk=pytest.approx(1 / 3)),  # pyright: ignore[reportArgumentType]
        RiskPoint(confidence=0.1, coverage=1.0, risk=0.5),
    )
    assert risk_coverage_curve([], []) == ()
    assert risk_coverage_area([], []) is None


def test_the_calibration_error_is_the_mean_distance_over_bins_of_equally_many_samples() -> None:
    values, confidences = [1, 0, 1, 1], [0.9, 0.2, 0.6, 0.8]

    two = calibration_bins(values, confidences, bins=2)

    assert [(each.samples, round(each.confidence, 3), each.value) for each in two] == [(2, 0.4, 0.5), (2, 0.85, 1.0)]
    assert calibration_error(values, confidences, bins=2) == pytest.approx((2 * 0.1 + 2 * 0.15) / 4)
    assert calibration_error(values, confidences) == pytest.approx((0.1 + 0.2 + 0.4 + 0.2) / 4)
    assert calibration_error([], []) is None


def test_samples_of_one_confidence_count_alike_whatever_their_order() -> None:
    assert calibration_error([1, 0, 1, 0], [0.5] * 4, bins=2) == 0.0
    assert calibration_error([1, 1, 0, 0], [0.5] * 4, bins=2) == 0.0


def test_numbers_that_are_no_shares_are_refused() -> None:
    with pytest.raises(UsageError, match=r"2\.0 is not between 0 and 1"):
        risk_coverage_area([2.0], [0.5])
    with pytest.raises(UsageError, match=r"80\.0 is not between 0 and 1"):
        calibration_error([1.0, 1.0], [0.5, 80.0])
    with pytest.raises(UsageError, match="1 confidences are given for 2 samples"):
        risk_coverage_curve([0.0, 1.0], [0.5])
