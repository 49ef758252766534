from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from askance.errors import UsageError
from askance.statistics import (
    Areas,
    Interval,
    LabelFigures,
    area_intervals,
    areas,
    average_precision,
    classification_intervals,
    classify,
    cluster_bootstrap,
    compare_classifications,
    macro_areas,
    roc_auc,
)
from tests.statistics import reference

about: Any = pytest.approx
LABELS = reference.LABELS
Sets = list[set[str]]


def test_figures_are_those_of_scikit_learn() -> None:
    for case in reference.read()["classification"]:
        found, said = classify(named(case["truth"]), named(case["predicted"]), labels=LABELS), case["said"]
        for average, figures in (("macro", found.macro), ("micro", found.micro)):
            assert figures is not None
            assert [figures.precision, figures.recall, figures.f1] == about(said[average]), case
        assert [figures.f1 for figures in found.labels.values()] == about(said["f1"]), case
        assert [figures.support for figures in found.labels.values()] == said["support"], case
        assert found.subset_accuracy == about(said["right"]), case


def test_figures_by_hand() -> None:
    found = classify([{"TR1"}, {"TR1", "OR"}, set()], [{"TR1", "OR"}, {"TR1"}, {"OR"}], labels=["TR1", "OR", "OIO"])

    assert found.labels == {
        "TR1": LabelFigures(precision=1.0, recall=1.0, f1=1.0, support=2, predicted=2),
        "OR": LabelFigures(precision=0.0, recall=0.0, f1=0.0, support=1, predicted=2),
        "OIO": LabelFigures(precision=0.0, recall=0.0, f1=0.0, support=0, predicted=0),
    }
    assert found.micro == LabelFigures(precision=2 / 4, recall=2 / 3, f1=4 / 7, support=3, predicted=4)
    assert (found.n, found.subset_accuracy) == (3, 0.0)


def test_no_samples_have_no_figures() -> None:
    found = classify([], [], labels=LABELS)

    assert (found.macro, found.micro, found.subset_accuracy) == (None, None, None)
    assert classification_intervals([], [], labels=["a"], seed=1)["macro f1"] is None
    assert macro_areas(areas([], [], labels=LABELS)) == Areas(roc=None, precision_recall=None)


def test_areas_are_those_of_scikit_learn() -> None:
    for case in reference.read()["areas"]:
        truth, (roc, precision) = [bool(true) for true in case["truth"]], case["said"]
        assert roc_auc(truth, case["scores"]) == (None if roc is None else about(roc)), case
        assert average_precision(truth, case["scores"]) == about(precision), case


def test_a_label_that_every_sample_has_has_no_roc() -> None:
    found = areas([{"a"}, {"a", "b"}], [{"a": 1.0}, {"b": 0.7}], labels=["a", "b"])

    assert found == {"a": Areas(roc=None, precision_recall=1.0), "b": Areas(roc=1.0, precision_recall=1.0)}
    assert macro_areas(found) == Areas(roc=1.0, precision_recall=1.0)


def samples(seed: int, right: float) -> tuple[Sets, Sets]:
    source = np.random.default_rng(seed)
    truth = source.random((60, 4)) < 0.4
    given_ = np.where(source.random((60, 4)) < right, truth, ~truth)
    return named(truth), named(given_)


def named(table: Any) -> Sets:
    return [{label for label, has in zip(LABELS, row, strict=True) if has} for row in table]


def test_intervals_are_those_of_the_figures_on_each_draw() -> None:
    truth, predicted = samples(1, 0.8)
    clusters = [place // 2 for place in range(60)]
    fast = classification_intervals(truth, predicted, labels=LABELS, clusters=clusters, seed=3, draws=200)

    def macro_f1(places: Sequence[int]) -> float | None:
        found = classify([truth[at] for at in places], [predicted[at] for at in places], labels=LABELS).macro
        return found and found.f1

    slow = cluster_bootstrap(macro_f1, range(60), clusters, seed=3, draws=200)
    assert same(fast["macro f1"], slow)
    assert fast.keys() >= {"micro recall", "subset accuracy", "TR1 precision"}


def test_intervals_of_areas_are_those_of_the_areas_on_each_draw() -> None:
    truth, predicted = samples(2, 0.8)
    scores = [dict.fromkeys(sample, 1.0) for sample in predicted]
    clusters = [f"image {place // 3}" for place in range(60)]
    fast = area_intervals(truth, scores, labels=LABELS, clusters=clusters, seed=3, draws=100)

    def macro_roc(places: Sequence[int]) -> float | None:
        return macro_areas(areas([truth[at] for at in places], [scores[at] for at in places], labels=LABELS)).roc

    assert same(fast["macro"]["roc"], cluster_bootstrap(macro_roc, range(60), clusters, seed=3, draws=100))
    assert area_intervals([{"a"}], [{}], labels=["a"], seed=1)["a"] == {"roc": None, "precision recall": None}


def same(one: Interval | None, other: Interval | None) -> bool:
    assert one is not None
    assert other is not None
    return (one.low, one.high) == pytest.approx((other.low, other.high))


def test_two_systems_are_compared_on_a_figure() -> None:
    truth, good = samples(4, 0.95)
    _, poor = samples(4, 0.6)
    better = compare_classifications(truth, (good, poor), figure="macro f1", labels=LABELS, seed=1)
    equal = compare_classifications(truth, (good, good), figure="OR recall", labels=LABELS, seed=1)

    assert (better.verdict, better.test, better.n) == ("better", "swap", 60)
    assert (equal.verdict, equal.ground) == ("tied", "no difference")
    assert compare_classifications([], ([], []), figure="macro f1", labels=LABELS, seed=1).ground == "no pairs"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^1 answers are given for 2 samples\."):
        classify([set(), set()], [set()], labels=["a"])
    with pytest.raises(UsageError, match=r"^Labels must be given, each once; these are \['a', 'a'\]\."):
        classify([], [], labels=["a", "a"])
    with pytest.raises(UsageError, match=r"^There is no figure 'f1'\. Choose among macro precision, "):
        compare_classifications([set()], ([set()], [set()]), figure="f1", labels=["a"], seed=1)
    with pytest.raises(UsageError, match=r"^1 scores are given for 2 samples\."):
        roc_auc([True, False], [1.0])
