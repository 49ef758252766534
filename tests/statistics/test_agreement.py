from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import UsageError
from askance.statistics import (
    Agreement,
    Resampling,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
    pairwise_agreement,
)
from tests.statistics import reference

about: Any = pytest.approx
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
"""Krippendorff 2004, section 11.3, and Gwet 2014, table 2.11: four observers of twelve units."""
UNITS = list(zip(*OBSERVERS, strict=True))


def test_the_published_example_of_four_observers() -> None:
    assert round(krippendorff_alpha(UNITS).value or 0, 3) == 0.743
    # The packages irrCAC 0.4 and krippendorff 0.8 give the same, to the digits shown: 0.77544 and 0.743421.
    assert round(gwet_ac1(UNITS, categories=5).value or 0, 5) == 0.77544
    assert round(krippendorff_alpha(UNITS).value or 0, 6) == 0.743421
    assert round(pairwise_agreement(UNITS).value or 0, 5) == 0.81818


def test_high_agreement_on_a_rare_label() -> None:
    """Gwet 2002, *Kappa statistic is not satisfactory*: 118, 5, 2 and 0 of 125 subjects; κ −0.023, AC₁ 0.941."""
    table = {("no", "no"): 118, ("no", "yes"): 5, ("yes", "no"): 2}
    votes = [pair for pair, count in table.items() for _ in range(count)]

    assert round(cohen_kappa(*zip(*votes, strict=True)).value or 0, 3) == -0.023
    assert round(gwet_ac1(votes).value or 0, 3) == 0.941


labels = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=40)


def test_kappa_is_that_of_scikit_learn() -> None:
    cases = reference.read()["kappa"]

    assert [case for case in cases if cohen_kappa(case["a"], case["b"]).value != about(case["said"])] == []


@given(labels)
def test_the_order_of_items_and_raters_does_not_matter(pairs: list[tuple[str, str]]) -> None:
    turned = [pair[::-1] for pair in pairs[::-1]]

    for measure in (gwet_ac1, krippendorff_alpha, pairwise_agreement):
        assert measure(turned).value == pytest.approx(measure(pairs).value)


def test_full_agreement_is_one() -> None:
    truth = [True, False, True, True]
    votes = list(zip(truth, truth, strict=True))

    assert [cohen_kappa(truth, truth).value, gwet_ac1(votes).value, krippendorff_alpha(votes).value] == [1, 1, 1]


def test_a_constant_judge_agrees_by_chance_alone() -> None:
    assert cohen_kappa([True, True, True, False], [True] * 4).value == 0


UNDEFINED = {
    "nothing": [],
    "one label each": [("a", None), (None, "b")],
    "no label": [(None, None)],
}


@pytest.mark.parametrize("votes", UNDEFINED.values(), ids=UNDEFINED)
def test_without_two_labels_of_an_item_there_is_no_agreement(votes: list[tuple[str | None, ...]]) -> None:
    values = [measure(votes).value for measure in (gwet_ac1, krippendorff_alpha, pairwise_agreement)]

    assert values == [None] * 3
    assert cohen_kappa([row[0] for row in votes], [row[1] for row in votes]).value is None


def test_one_label_throughout_leaves_nothing_beyond_chance() -> None:
    votes = [("a", "a")] * 3

    assert (cohen_kappa(["a"] * 3, ["a"] * 3).value, krippendorff_alpha(votes).value) == (None, None)
    assert gwet_ac1(votes).value == 1


def test_an_interval_by_items_and_by_clusters() -> None:
    votes = [("a", "a")] * 12 + [("a", "b")] * 4 + [("b", "b")] * 8
    by_item = pairwise_agreement(votes, resampling=Resampling(seed=1, draws=500))
    by_cluster = pairwise_agreement(
        votes, resampling=Resampling(seed=1, draws=500, clusters=[place // 4 for place in range(24)])
    )

    assert by_item == Agreement(
        measure="pairwise agreement", value=about(20 / 24), interval=by_item.interval, items=24, raters=2
    )
    assert by_item.interval is not None
    assert by_cluster.interval is not None
    assert by_cluster.interval.width > 1.5 * by_item.interval.width


def test_two_raters_label_the_same_items() -> None:
    with pytest.raises(UsageError, match=r"^1 labels of one rater and 2 of the other cannot be paired\."):
        cohen_kappa(["a"], ["a", "b"])
