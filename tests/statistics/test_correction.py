from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from askance.errors import UsageError
from askance.statistics import (
    ClusteredScores,
    Confusion,
    clustered_rogan_gladen,
    confusion,
    prediction_powered_mean,
    rogan_gladen,
    rogan_gladen_estimate,
)

about: Any = pytest.approx
PERFECT = Confusion(true_yes=10**9, false_yes=0, true_no=10**9, false_no=0)

RATES: dict[str, tuple[float, float, float, float | None]] = {
    "perfect judge": (0.25, 1.0, 1.0, 0.25),
    "by hand": (0.40, 0.90, 0.80, about(0.20 / 0.70)),
    "below its false alarms": (0.05, 0.9, 0.8, 0.0),
    "above its hits": (0.95, 0.9, 0.8, 1.0),
    "blind judge": (0.5, 0.4, 0.6, None),
}


@pytest.mark.parametrize(("rate", "sensitivity", "specificity", "true"), RATES.values(), ids=RATES)
def test_rogan_gladen(rate: float, sensitivity: float, specificity: float, true: float | None) -> None:
    assert rogan_gladen(rate, sensitivity, specificity) == true


def test_with_a_perfect_judge_the_interval_is_that_of_agresti_and_coull() -> None:
    interval = rogan_gladen_estimate(30, 100, PERFECT).interval
    z = 1.959963984540054
    n, share = 100 + z * z, (30 + z * z / 2) / (100 + z * z)
    half = z * math.sqrt(share * (1 - share) / n)

    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((share - half, share + half), abs=1e-6)


PUBLISHED: dict[str, tuple[tuple[int, int], tuple[int, int], tuple[int, int], float, tuple[float, float, float]]] = {
    "a good test": ((30, 100), (45, 50), (76, 80), 0.95, (0.29411765, 0.17932916, 0.42055144)),
    "few controls": ((259, 400), (17, 20), (24, 30), 0.95, (0.68846154, 0.52023067, 0.95612413)),
    "down to none": ((7, 200), (88, 100), (97, 100), 0.95, (0.00588235, 0.0, 0.05886666)),
    "another level": ((30, 100), (45, 50), (76, 80), 0.90, (0.29411765, 0.19559580, 0.39859283)),
}
"""Positives among those tested, among positive controls, negatives among negative ones, the level; and what R says: the
function `prevSeSp` of its package asht, by Lang and Reiczigel (2014), run in R 4.2."""


@pytest.mark.parametrize(("yes", "positive", "negative", "level", "said"), PUBLISHED.values(), ids=PUBLISHED)
def test_the_interval_of_lang_and_reiczigel_is_that_of_asht(
    yes: tuple[int, int],
    positive: tuple[int, int],
    negative: tuple[int, int],
    level: float,
    said: tuple[float, float, float],
) -> None:
    card = Confusion(
        true_yes=positive[0],
        false_no=positive[1] - positive[0],
        true_no=negative[0],
        false_yes=negative[1] - negative[0],
    )
    estimate = rogan_gladen_estimate(*yes, card, level=level)

    assert estimate.interval is not None
    assert (estimate.value, estimate.interval.low, estimate.interval.high) == pytest.approx(said, abs=1e-7)


NOTHING = {
    "no verdicts": (0, 0, PERFECT),
    "no labels": (3, 9, Confusion(true_yes=0, false_yes=0, true_no=0, false_no=0)),
    "blind judge": (3, 9, Confusion(true_yes=5, false_yes=5, true_no=5, false_no=5)),
}


@pytest.mark.parametrize(("yes", "n", "card"), NOTHING.values(), ids=NOTHING)
def test_nothing_is_made_of_nothing(yes: int, n: int, card: Confusion) -> None:
    estimate = rogan_gladen_estimate(yes, n, card)

    assert (estimate.value, estimate.interval, estimate.state) == (None, None, "no data")


def test_corrected_rates_hold_the_truth_as_often_as_they_say() -> None:
    """A judge of sensitivity 0.85 and specificity 0.9, a true rate of 0.3, 1,000 runs of 400 samples and 120 labels."""
    source = np.random.default_rng(5)
    held = {"rogan-gladen": 0, "prediction-powered": 0}
    for _ in range(1000):
        true, labelled = source.random(400) < 0.3, source.random(120) < 0.5
        verdicts, card_verdicts = (judge(truth, source) for truth in (true, labelled))
        card = confusion(labelled.tolist(), card_verdicts.tolist())
        corrected = rogan_gladen_estimate(int(verdicts.sum()), 400, card)
        powered = prediction_powered_mean(
            true[:80].astype(float).tolist(),
            ClusteredScores(scores=verdicts[:80].astype(float).tolist()),
            ClusteredScores(scores=verdicts[80:].astype(float).tolist()),
        )
        for name, estimate in (("rogan-gladen", corrected), ("prediction-powered", powered)):
            held[name] += estimate.interval is not None and 0.3 in estimate.interval

    assert 935 <= held["rogan-gladen"] <= 980
    assert 930 <= held["prediction-powered"] <= 970


def judge(
    truth: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], source: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.where(truth, source.random(len(truth)) < 0.85, source.random(len(truth)) < 0.1)


def test_images_with_several_samples_are_resampled_whole() -> None:
    verdicts = ClusteredScores(scores=[1, 1, 1, 1, 0, 0, 0, 0] * 6, clusters=[place // 4 for place in range(48)])
    apart = ClusteredScores(scores=verdicts.scores)
    labelled, truth = (
        ClusteredScores(scores=[1, 1, 1, 0, 0, 0, 0, 1] * 40),
        [True, True, True, True, False, False, False, False] * 40,
    )
    whole, single = (clustered_rogan_gladen(judged, labelled, truth, seed=1, draws=400) for judged in (verdicts, apart))

    assert whole.value == single.value == pytest.approx(0.5)
    assert (whole.n, whole.n_clusters, whole.state) == (48, 12, "estimated")
    assert whole.interval is not None
    assert single.interval is not None
    assert whole.interval.width > 1.3 * single.interval.width


def test_the_prediction_powered_mean_is_that_of_ppi_py() -> None:
    """`ppi_mean_ci` of ppi-python 0.2 with λ = 1; its variances are divided by n, ours by n − 1."""
    source = np.random.RandomState(0)
    truth = (source.rand(60) < 0.6) * 1.0
    scores = np.where(source.rand(60) < 0.85, truth, 1 - truth)
    others = (source.rand(400) < 0.55) * 1.0
    estimate = prediction_powered_mean(
        truth.tolist(), ClusteredScores(scores=scores.tolist()), ClusteredScores(scores=others.tolist()), tuned=False
    )

    assert estimate.value == pytest.approx(0.6075)
    assert estimate.interval is not None
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx((0.50912, 0.70588), abs=1e-3)


def test_a_judge_that_knows_nothing_is_given_no_weight() -> None:
    truth, constant = [1.0, 0.0, 1.0, 1.0], [1.0] * 4
    estimate = prediction_powered_mean(truth, ClusteredScores(scores=constant), ClusteredScores(scores=[1.0] * 20))

    assert estimate.value == 0.75
    assert estimate.standard_error == pytest.approx(0.25)


def test_one_label_gives_no_interval() -> None:
    estimate = prediction_powered_mean([1.0], ClusteredScores(scores=[1.0]), ClusteredScores(scores=[1.0, 0.0]))

    assert (estimate.value, estimate.interval, estimate.state) == (0.5, None, "one cluster")
    assert prediction_powered_mean([], ClusteredScores(scores=[]), ClusteredScores(scores=[1.0])).state == "no data"


def test_what_is_no_share_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^1\.2 is not between 0 and 1\."):
        rogan_gladen(1.2, 0.9, 0.9)
    with pytest.raises(UsageError, match=r"^5 of 3 is not a share\."):
        rogan_gladen_estimate(5, 3, PERFECT)
