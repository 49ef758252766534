"""Intervals where all samples agree: they have a width, and hold the truth about as often as they say."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy

from askance.errors import UsageError
from askance.statistics import (
    Agreement,
    Comparison,
    Interval,
    Resampling,
    bootstrap_mean,
    bootstrap_totals,
    cluster_bootstrap,
    cohen_kappa,
    compare_paired,
    compare_statistics,
    compare_totals,
    gwet_ac1,
    krippendorff_alpha,
    mean_estimate,
    paired_score_interval,
    pairwise_agreement,
    wilson,
)

Z = 1.959963984540054
RATES = (0.0, 0.02, 0.5, 0.98, 1.0)
ONE, NONE = [1.0] * 8, [0.0] * 8
TWO_EACH = list("aabbccdd")


def unit_bounds(count: int = 8) -> Callable[[], tuple[list[float], list[float]]]:
    return lambda: ([0.0] * count, [1.0] * count)


def with_unit_bounds(a: list[float], b: list[float]) -> Comparison:
    return compare_paired(a, b, seed=0, bounds=unit_bounds(len(a)))


def share(sums: Any) -> Any:
    return sums[..., 0] / sums[..., 1]


def share_of_rows(rows: Any) -> float:
    return math.fsum(row[0] for row in rows) / math.fsum(row[1] for row in rows)


def pairs(*values: float) -> list[tuple[float, float]]:
    return [(value, 1.0) for value in values]


RIGHT, WRONG = pairs(*ONE), pairs(*NONE)


# --- the score interval of a paired difference ---


def test_the_score_interval_is_the_published_one() -> None:
    """Fagerland, Lydersen and Laake 2014, *Statistics in Medicine* 33:2850-2875: 1 against 7 of 21."""
    found = paired_score_interval(1, 7, 21)

    assert (round(found.low, 3), round(found.high, 3), found.method) == (-0.517, -0.026, "tango")


def statistic(b: int, c: int, n: int, difference: float) -> float:
    """The score statistic at a difference, with the likelihood maximized by a search."""

    def loss(other: float) -> float:
        one = other + difference
        return -float(xlogy(b, one) + xlogy(c, other) + xlogy(n - b - c, max(0.0, 1 - one - other)))

    least = max(0.0, -difference)
    found = minimize_scalar(loss, bounds=(least, least + (1 - abs(difference)) / 2), method="bounded").x
    variance = n * (2 * found + difference - difference**2)
    return float((b - c - n * difference) / math.sqrt(variance))


@pytest.mark.parametrize(("b", "c", "n"), [(12, 3, 40), (5, 1, 9), (1, 1, 6), (2, 7, 20)])
def test_at_the_limits_the_score_test_is_just_significant(b: int, c: int, n: int) -> None:
    found = paired_score_interval(b, c, n)

    assert statistic(b, c, n, found.low) == pytest.approx(Z, abs=0.01)
    assert statistic(b, c, n, found.high) == pytest.approx(-Z, abs=0.01)


@pytest.mark.parametrize("n", [2, 5, 8, 20])
def test_where_all_agree_the_score_interval_is_wilsons(n: int) -> None:
    unseen = wilson(0, n).high

    assert limits(paired_score_interval(n, 0, n)) == pytest.approx((1 - 2 * unseen, 1))
    assert limits(paired_score_interval(0, n, n)) == pytest.approx((-1, 2 * unseen - 1))
    assert limits(paired_score_interval(0, 0, n)) == pytest.approx((-unseen, unseen))


def limits(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.parametrize("counts", [(2, 2, 3), (0, 0, 0)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(UsageError, match="are no discordant samples"):
        paired_score_interval(*counts)


def coverage(n: int, a: float, b: float) -> float:
    """How often the interval holds the difference of two systems that are right independently, by all outcomes."""
    first, second = a * (1 - b), b * (1 - a)
    total = 0.0
    for one, other in product(range(n + 1), repeat=2):
        if one + other <= n and limits_hold(one, other, n, a - b):
            rest = n - one - other
            log = gammaln(n + 1) - gammaln(one + 1) - gammaln(other + 1) - gammaln(rest + 1)
            total += float(
                np.exp(log + xlogy(one, first) + xlogy(other, second) + xlogy(rest, max(0.0, 1 - first - second)))
            )
    return total


def limits_hold(one: int, other: int, n: int, truth: float) -> bool:
    low, high = limits(paired_score_interval(one, other, n))
    return low - 1e-9 <= truth <= high + 1e-9


@pytest.mark.parametrize("n", [2, 5, 8, 20])
def test_the_score_interval_holds_the_truth_however_rare_a_difference_is(n: int) -> None:
    """Exact, over all outcomes. Wilson's interval, and so this one, holds 0.02 of 8 in 85 % only."""
    found = [coverage(n, a, b) for a, b in product(RATES, RATES)]

    assert min(found) > 0.85
    assert sum(found) / len(found) > 0.95


# --- where all clusters agree ---

AGREED: dict[str, tuple[Callable[[], Interval | None], tuple[float, float]]] = {
    "right or wrong": (
        lambda: compare_paired(ONE, NONE, seed=0, binary=True).interval,
        (1 - 2 * wilson(0, 8).high, 1.0),
    ),
    "right or wrong, two of an image": (
        lambda: compare_paired(ONE, NONE, TWO_EACH, seed=0, binary=True).interval,
        (1 - 2 * wilson(0, 4).high, 1.0),
    ),
    "right or wrong, by folds": (
        lambda: compare_paired(ONE, NONE, seed=0, strata=[0, 0, 0, 0, 0, 1, 1, 1], binary=True).interval,
        (1 - 2 * wilson(0, 8).high, 1.0),
    ),
    "no difference": (
        lambda: compare_paired(ONE, ONE, seed=0, binary=True).interval,
        (-wilson(0, 8).high, wilson(0, 8).high),
    ),
    "scores of 0 to 1": (
        lambda: with_unit_bounds([0.75] * 8, [0.25] * 8).interval,
        ((0.5 * 8 - Z**2) / (8 + Z**2), (0.5 * 8 + Z**2) / (8 + Z**2)),
    ),
    "a figure of sums": (
        lambda: compare_totals(share, RIGHT, WRONG, seed=0, bounds=lambda: (WRONG, RIGHT)).interval,
        (1 - 2 * wilson(0, 8).high, 1.0),
    ),
    "a figure of a set": (
        lambda: (
            compare_statistics(share_of_rows, RIGHT, WRONG, seed=0, bounds=lambda: (WRONG, RIGHT), draws=50).interval
        ),
        ((8 - 4) / 12, 1.0),
    ),
    "one run's mean": (
        lambda: mean_estimate([0.75] * 8, seed=0, bounds=unit_bounds()).interval,
        (0.75 * 8 / (8 + Z**2), (0.75 * 8 + Z**2) / (8 + Z**2)),
    ),
    "one run's mean of images": (
        lambda: bootstrap_mean([0.75] * 8, TWO_EACH, seed=0, bounds=unit_bounds()),
        (0.75 * 4 / (4 + Z**2), (0.75 * 4 + Z**2) / (4 + Z**2)),
    ),
    "one run's figure of sums": (
        lambda: bootstrap_totals(share, RIGHT, seed=0, bounds=lambda: (WRONG, RIGHT)),
        limits(wilson(8, 8)),
    ),
    "one run's figure of a set": (
        lambda: cluster_bootstrap(share_of_rows, RIGHT, seed=0, draws=50, bounds=lambda: (WRONG, RIGHT)),
        (8 / 12, 1.0),
    ),
}


@pytest.mark.parametrize(("interval", "expected"), AGREED.values(), ids=AGREED)
def test_where_all_agree_an_interval_reaches_to_what_was_not_seen(
    interval: Callable[[], Interval | None], expected: tuple[float, float]
) -> None:
    assert limits(interval()) == pytest.approx(expected)


VOTES = [["yes", "yes"], ["no", "no"]] * 4
MEASURES: dict[str, Callable[[Resampling], Agreement]] = {
    "pairs": lambda how: pairwise_agreement(VOTES, resampling=how),
    "one label": lambda how: pairwise_agreement([["yes", "yes"]] * 8, resampling=how),
    "kappa": lambda how: cohen_kappa(*zip(*VOTES, strict=True), resampling=how),
    "AC1": lambda how: gwet_ac1(VOTES, resampling=how),
    "alpha": lambda how: krippendorff_alpha(VOTES, resampling=how),
}


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_raters_who_always_agree_may_differ_on_what_was_not_seen(measure: Callable[[Resampling], Agreement]) -> None:
    found = measure(Resampling(seed=0, draws=50))
    low, high = limits(found.interval)

    assert found.value == high == 1
    assert 0 < low < 0.7


UNBOUNDED: dict[str, Callable[[], Interval | None]] = {
    "no bounds": lambda: bootstrap_mean([2.0] * 8, seed=0),
    "outside of them": lambda: bootstrap_mean([2.0] * 8, seed=0, bounds=unit_bounds()),
    "a difference outside of them": lambda: with_unit_bounds([2.0] * 8, [0.0] * 8).interval,
    "no width": lambda: bootstrap_mean([2.0] * 8, seed=0, bounds=lambda: ([2.0] * 8, [2.0] * 8)),
    "no value": lambda: bootstrap_totals(
        lambda sums: np.where(sums[..., 0] > 8, np.nan, share(sums)),
        pairs(*ONE),
        seed=0,
        bounds=lambda: (WRONG, RIGHT),
    ),
    "a figure of sums": lambda: compare_totals(share, RIGHT, WRONG, seed=0).interval,
    "one image": lambda: bootstrap_mean([0.5] * 8, ["x"] * 8, seed=0, bounds=unit_bounds()),
}


@pytest.mark.parametrize("interval", UNBOUNDED.values(), ids=UNBOUNDED)
def test_without_bounds_there_is_no_interval_rather_than_one_without_width(
    interval: Callable[[], Interval | None],
) -> None:
    assert interval() is None


def test_what_nothing_bounds_is_tied_and_says_why() -> None:
    found = compare_paired([2.5] * 8, [0.5] * 8, seed=0)

    assert (found.verdict, found.ground, found.p) == ("tied", "no spread", 2 / 2**8)
    assert "all samples differ alike, so that nothing is known of chance; sign-flip test, p = 0.008" in found.sentence(
        "A", "B", "perplexity", unit=""
    )


def test_where_samples_differ_bounds_change_nothing() -> None:
    a, b = [0.1, 0.4, 0.9, 0.3], [0.2, 0.2, 0.3, 0.1]

    assert compare_paired(a, b, seed=1, bounds=unit_bounds(4)) == compare_paired(a, b, seed=1)
    assert mean_estimate(a, seed=1, bounds=unit_bounds(4)) == mean_estimate(a, seed=1)


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.98])
def test_of_images_with_several_samples_the_interval_holds_the_truth(rate: float) -> None:
    """Twenty images, whose three samples are all right or all wrong."""
    source, held = np.random.default_rng(3), 0
    clusters = np.repeat(np.arange(20), 3).tolist()
    for run in range(200):
        a, b = (np.repeat(source.random(20) < share, 3).astype(float).tolist() for share in (rate, 0.5))
        interval = compare_paired(a, b, clusters, seed=run, binary=True, draws=200).interval
        held += interval is not None and rate - 0.5 in interval

    assert held >= 172
