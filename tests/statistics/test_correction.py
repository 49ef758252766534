from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askance.errors import UsageError
from askance.statistics import (
    ClusteredScores,
    clustered_rogan_gladen,
    prediction_powered_mean,
    rogan_gladen,
)

about: Any = pytest.approx

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


def test_corrected_rates_hold_the_truth_as_often_as_they_say() -> None:
    """A judge of sensitivity 0.85 and specificity 0.9, a true rate of 0.3, 250 runs of 400 samples and 120 labels."""
    source = np.random.default_rng(5)
    held = {"rogan-gladen": 0, "prediction-powered": 0}
    for place in range(250):
        true, labelled = source.random(400) < 0.3, source.random(120) < 0.5
        verdicts, card_verdicts = (judge(truth, source) for truth in (true, labelled))
        corrected = clustered_rogan_gladen(
            ClusteredScores(scores=verdicts.astype(float).tolist()),
            ClusteredScores(scores=card_verdicts.astype(float).tolist()),
            labelled.tolist(),
            seed=place,
            draws=200,
        )
        powered = prediction_powered_mean(
            true[:80].astype(float).tolist(),
            ClusteredScores(scores=verdicts[:80].astype(float).tolist()),
            ClusteredScores(scores=verdicts[80:].astype(float).tolist()),
        )
        for name, estimate in (("rogan-gladen", corrected), ("prediction-powered", powered)):
            held[name] += estimate.interval is not None and 0.3 in estimate.interval

    assert 230 <= held["rogan-gladen"] <= 245
    assert 230 <= held["prediction-powered"] <= 245


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
