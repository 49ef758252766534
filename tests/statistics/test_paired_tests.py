from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from askance.errors import UsageError
from askance.statistics import (
    Comparison,
    Interval,
    compare_paired,
    compare_statistics,
    compare_totals,
    holm,
    holm_adjusted,
    mcnemar_exact,
    paired_cluster_bootstrap,
    sign_flip,
    smallest_detectable_difference,
    swap_test,
)
from tests.statistics import reference

about: Any = pytest.approx
REFERENCE = reference.read()
bits = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=40)


def test_mcnemar_gives_the_published_p() -> None:
    """Fagerland, Lydersen and Laake 2013, *BMC Medical Research Methodology* 13:91: 1 against 7 discordant pairs."""
    assert mcnemar_exact(1, 7) == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar_exact(0, 0) == 1.0


def test_mcnemar_is_that_of_statsmodels() -> None:
    assert [case for case in REFERENCE["mcnemar"] if mcnemar_exact(case["b"], case["c"]) != about(case["said"])] == []


def test_holm_is_that_of_statsmodels() -> None:
    assert [case for case in REFERENCE["holm"] if holm(case["p"]) != about(case["said"])] == []


def test_a_p_value_is_a_share() -> None:
    with pytest.raises(UsageError, match=r"^1\.5 is no p-value\."):
        holm([0.1, 1.5])


def test_few_signs_are_enumerated() -> None:
    differences = [0.5, -0.1, 0.4, 0.9, 0.2]
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=5)]

    assert sign_flip(differences, seed=0) == sum(total >= 1.9 - 1e-9 for total in sums) / 32


def test_many_signs_are_tossed() -> None:
    differences = np.random.default_rng(5).normal(0.3, 1.0, 60)
    students = float(differences.mean() / (differences.std(ddof=1) / sqrt(60)))

    assert sign_flip(differences.tolist(), seed=1) == about(2 * float(stdtr(59, -abs(students))), abs=0.02)
    assert sign_flip([0.0] * 9, seed=1) == 1.0


@given(bits)
def test_of_right_or_wrong_answers_the_sign_flip_is_mcnemars_test(pairs: list[tuple[int, int]]) -> None:
    above, below = pairs.count((1, 0)), pairs.count((0, 1))

    assert sign_flip([a - b for a, b in pairs], seed=1) == mcnemar_exact(above, below)


@given(bits)
def test_exchanging_two_systems_exchanges_the_verdict(pairs: list[tuple[int, int]]) -> None:
    a, b = ([pair[side] for pair in pairs] for side in (0, 1))
    forth, back = (compare_paired(*sides, seed=1, binary=True, draws=200) for sides in ((a, b), (b, a)))

    assert back.verdict == {"better": "worse", "worse": "better", "tied": "tied"}[forth.verdict]
    assert (back.p, back.detectable, back.discordant) == (forth.p, forth.detectable, forth.discordant[::-1])


CLEAR = ([1] * 12 + [0] * 8, [0] * 12 + [0] * 8)
CASES: dict[str, tuple[list[int], list[int], str, str]] = {
    "no pairs": ([], [], "tied", "no pairs"),
    "one pair": ([1], [0], "tied", "one cluster"),
    "all equal": ([1] * 20, [1] * 20, "tied", "no difference"),
    "equal means": ([1, 0] * 10, [0, 1] * 10, "tied", "compared"),
    "five of five": ([1] * 5, [0] * 5, "tied", "compared"),
    "six of six": ([1] * 6, [0] * 6, "better", "compared"),
    "clearly better": (*CLEAR, "better", "compared"),
    "clearly worse": (CLEAR[1], CLEAR[0], "worse", "compared"),
}


@pytest.mark.parametrize(("a", "b", "verdict", "ground"), CASES.values(), ids=CASES)
def test_verdicts(a: list[int], b: list[int], verdict: str, ground: str) -> None:
    comparison = compare_paired(a, b, seed=1, binary=True)

    assert (comparison.verdict, comparison.ground) == (verdict, ground)
    assert (comparison.n, comparison.n_clusters) == (len(a), len(a))


def test_of_errors_fewer_are_better() -> None:
    assert compare_paired(*CLEAR, seed=1, binary=True).with_lower_better().verdict == "worse"


def test_a_comparison_in_numbers() -> None:
    comparison = compare_paired(*CLEAR, seed=1, binary=True)

    assert comparison == Comparison(
        verdict="better",
        ground="compared",
        figure_a=0.6,
        figure_b=0.0,
        difference=0.6,
        interval=Interval(low=about(0.3422, abs=1e-4), high=about(0.7812, abs=1e-4), method="tango"),
        p=2 / 2**12,
        test="mcnemar exact",
        n=20,
        n_clusters=20,
        discordant=(12, 0),
        # 20 · d - 0.8416 · √(20 · (13 / 22 - d²)) = 7.5: of 11 or 12 samples that differ one must lead by 9 or 8
        detectable=about(0.48694, abs=1e-4),
    )


def test_rows_of_one_image_count_as_one() -> None:
    a, b = [1] * 12, [0] * 12
    clusters = ["x"] * 6 + ["y"] * 6

    assert compare_paired(a, b, seed=1, binary=True).verdict == "better"
    assert compare_paired(a, b, clusters, seed=1, binary=True).verdict == "tied"


SENTENCES: dict[str, tuple[tuple[list[int], list[int]], str]] = {
    "tied": (
        ([1, 0, 1, 1, 0, 1, 0, 1, 1, 1], [1, 1, 1, 0, 0, 1, 0, 1, 1, 0]),
        (
            "A and B are tied on accuracy at this size: 70.00 % against 60.00 %, a difference of +10.00 points "
            "(95 % interval -28.01 to +45.35; exact McNemar test, p = 1.000), over 10 samples. "
            "So many samples would show a true difference of 76.32 points or more in about 80 % of cases."
        ),
    ),
    "better": (
        ([1] * 20, [0] * 20),
        (
            "A is better than B on accuracy: 100.00 % against 0.00 %, a difference of +100.00 points "
            "(95 % interval +67.77 to +100.00; exact McNemar test, p < 0.001), over 20 samples."
        ),
    ),
    "no pairs": (([], []), "A and B cannot be told apart on accuracy: there is no sample that both answered."),
    "too few": (
        ([1, 0], [0, 0]),
        (
            "A and B are tied on accuracy at this size: 50.00 % against 0.00 %, a difference of +50.00 points "
            "(95 % interval -48.64 to +90.55; exact McNemar test, p = 1.000), over 2 samples. "
            "These samples can show no difference at all."
        ),
    ),
}


@pytest.mark.parametrize(("sides", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_a_comparison_in_words(sides: tuple[list[int], list[int]], sentence: str) -> None:
    assert compare_paired(*sides, seed=1, binary=True).sentence("A", "B", "accuracy") == sentence


def test_a_comparison_of_plain_numbers_in_words() -> None:
    comparison = compare_paired([0.5, 0.7, 0.9], [0.5, 0.6, 0.9], ["x", "y", "y"], seed=1, draws=100)

    assert comparison.sentence("A", "B", "similarity", unit="").startswith(
        "A and B are tied on similarity at this size: 0.700 against 0.667, a difference of +0.033 (95 % interval +0.000"
    )
    assert "over 3 samples of 2 images." in comparison.sentence("A", "B", "similarity", unit="")


def test_in_a_family_verdicts_are_harder_to_get() -> None:
    six, twelve = (compare_paired([1] * n + [0] * 9, [0] * (n + 9), seed=1, binary=True) for n in (6, 12))
    family = holm_adjusted([six, twelve])

    assert (six.verdict, twelve.verdict) == ("better", "better")
    assert family == (replace(six, p=2 / 2**6, family=2), replace(twelve, p=4 / 2**12, family=2))
    assert holm_adjusted([six, six, twelve])[0].verdict == "tied"
    assert "adjusted for 2 comparisons" in family[0].sentence("A", "B", "accuracy")


DETECTABLE: dict[str, tuple[list[float], bool, float | None]] = {
    "too few": ([1.0] * 5, True, None),
    "six that all point one way": ([1.0] * 6, True, 1.0),
    "all tied, right or wrong": ([0.0] * 100, True, about(0.08896, abs=1e-4)),
    "all tied, partly right": ([0.0] * 100, False, None),
    # e = 2.85332 standard errors of √(1 / 99): e = 1.9842 + 0.8416 · √(1 + (1.9842² + e²) / 198) / (1 - 1 / 396)
    "spread": ([1.0, -1.0] * 50, False, about(0.28677, abs=1e-4)),
}


@pytest.mark.parametrize(("differences", "binary", "expected"), DETECTABLE.values(), ids=DETECTABLE)
def test_what_so_many_samples_could_show(differences: list[float], binary: bool, expected: float | None) -> None:
    assert smallest_detectable_difference(differences, binary=binary) == expected


@pytest.mark.parametrize(("n", "repetitions"), [(6, 1500), (8, 1000), (60, 150)])
def test_the_detectable_difference_is_found_as_often_as_it_says(n: int, repetitions: int) -> None:
    source = np.random.default_rng(8)
    found = 0
    for run in range(repetitions):
        planned = smallest_detectable_difference(source.normal(0, 1, n).tolist())
        assert planned is not None
        found += sign_flip(source.normal(planned, 1, n).tolist(), seed=run) < 0.05

    assert 0.71 < found / repetitions < 0.87


def test_without_a_difference_a_verdict_is_rare() -> None:
    source = np.random.default_rng(9)
    clusters = np.repeat(np.arange(30), 2).tolist()
    verdicts = [
        compare_paired(
            (np.repeat(source.random(30), 2) + source.random(60)).tolist(),
            (np.repeat(source.random(30), 2) + source.random(60)).tolist(),
            clusters,
            seed=run,
            draws=200,
        ).verdict
        for run in range(150)
    ]

    assert verdicts.count("tied") >= 0.90 * 150


def recall(rows: object) -> float | None:
    table = np.asarray(rows)
    return float(table[:, 0].sum() / table[:, 1].sum()) if table[:, 1].sum() else None


def test_figures_of_a_set_are_compared_alike_by_rows_and_by_totals() -> None:
    source = np.random.default_rng(3)
    true = source.integers(0, 2, 80)
    a, b = (np.stack([true * (source.random(80) < right), true], axis=1).tolist() for right in (0.9, 0.5))
    clusters = (np.arange(80) // 2).tolist()
    by_rows = compare_statistics(recall, a, b, clusters=clusters, seed=2, draws=400)
    by_totals = compare_totals(lambda sums: sums[..., 0] / sums[..., 1], a, b, clusters=clusters, seed=2, draws=400)

    assert by_rows.verdict == by_totals.verdict == "better"
    assert (by_rows.difference, by_rows.p) == pytest.approx((by_totals.difference, by_totals.p))
    assert by_rows.interval is not None
    assert by_totals.interval is not None
    assert (by_rows.interval.low, by_rows.interval.high) == pytest.approx(
        (by_totals.interval.low, by_totals.interval.high)
    )


GROUNDS: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]], str]] = {
    "no pairs": ([], [], "no pairs"),
    "no value": ([(0, 0), (0, 0)], [(0, 0), (0, 0)], "no value"),
    "one cluster": ([(1, 1)], [(0, 1)], "one cluster"),
    "no difference": ([(1, 1), (0, 1)], [(1, 1), (0, 1)], "no difference"),
}


@pytest.mark.parametrize(("a", "b", "ground"), GROUNDS.values(), ids=GROUNDS)
def test_a_figure_of_a_set_that_tells_nothing_is_tied(
    a: list[tuple[int, int]], b: list[tuple[int, int]], ground: str
) -> None:
    comparison = compare_statistics(recall, a, b, seed=1, draws=50)

    assert (comparison.verdict, comparison.ground) == ("tied", ground)


def test_pairs_need_two_of_each() -> None:
    for compare in (paired_cluster_bootstrap, compare_paired):
        with pytest.raises(UsageError, match=r"^1 and 2 samples cannot be paired\."):
            compare([1.0], [1.0, 0.0], seed=1)
    with pytest.raises(UsageError, match=r"^1 and 2 samples cannot be paired\."):
        swap_test(recall, [(1, 1)], [(1, 1), (0, 1)], seed=1)


@pytest.mark.parametrize(
    ("n", "discordant"),
    [(n, discordant) for n in (20, 40, 100, 250) for discordant in (0, 2, 5, 10, 20, 40) if 2 * discordant <= n],
)
def test_the_difference_is_shown_as_often_as_is_said(n: int, discordant: int) -> None:
    """Exactly: of the samples that differ and of the leads among them, what McNemar's test finds."""
    from scipy import stats

    differences = [1.0, -1.0] * (discordant // 2) + [1.0] * (discordant % 2) + [0.0] * (n - discordant)
    found = smallest_detectable_difference(differences, binary=True)
    assert found is not None
    share = max(found, (discordant + 1) / (n + 2))
    power = sum(
        stats.binom.pmf(differing, n, share)
        * sum(
            stats.binom.pmf(won, differing, (1 + found / share) / 2)
            for won in range(differing + 1)
            if mcnemar_exact(won, differing - won) < 0.05
        )
        for differing in range(n + 1)
        if stats.binom.pmf(differing, n, share) > 1e-6
    )

    assert 0.78 < power < 0.95


# --- strata ---


def test_strata_are_weighed_alike_in_a_comparison() -> None:
    """A is better on all ten clusters of the one stratum, by as much as B is on all thirty of the other."""
    strata = [0] * 10 + [1] * 30
    a, b = [1.0] * 10 + [0.0] * 30, [0.0] * 10 + [1.0] * 30
    found = compare_paired(a, b, strata=strata, seed=1, binary=True)

    assert (found.figure_a, found.figure_b, found.difference) == (0.5, 0.5, 0.0)
    assert (found.test, found.p, found.verdict) == ("sign flip", 1.0, "tied")
    assert compare_paired(a, b, seed=1, binary=True).verdict == "worse"


def test_a_difference_over_strata_is_found_by_all_three_ways() -> None:
    source = np.random.default_rng(3)
    strata = source.integers(0, 3, 240).tolist()
    clusters = [f"{stratum}-{place // 2}" for place, stratum in enumerate(strata)]
    a = (source.random(240) < 0.75).astype(float).tolist()
    b = (source.random(240) < 0.5).astype(float).tolist()
    mean = compare_paired(a, b, clusters, strata=strata, seed=2)
    pairs_a, pairs_b = ([(value, 1.0) for value in values] for values in (a, b))
    totals = compare_totals(
        lambda sums: sums[..., 0] / sums[..., 1], pairs_a, pairs_b, seed=2, clusters=clusters, strata=strata
    )
    whole = compare_statistics(
        lambda rows: sum(rows) / len(rows), a, b, seed=2, clusters=clusters, strata=strata, draws=400
    )

    by_hand = [
        np.mean([value for value, own in zip(a, strata, strict=True) if own == stratum])
        - np.mean([value for value, own in zip(b, strata, strict=True) if own == stratum])
        for stratum in range(3)
    ]
    assert mean.difference == pytest.approx(float(np.mean(by_hand)))
    for found in (mean, totals, whole):
        assert found.difference == pytest.approx(mean.difference)
        assert found.verdict == "better"
        assert found.n_clusters == len({*clusters})
    assert mean.interval is not None
    assert totals.interval is not None
    assert (mean.interval.low, mean.interval.high) == pytest.approx((totals.interval.low, totals.interval.high))
    assert mean.detectable == pytest.approx(totals.detectable, rel=0.15)


def test_a_stratum_of_one_cluster_lets_nothing_be_told() -> None:
    found = compare_paired([1, 1, 1, 0], [0, 0, 0, 0], list("aabc"), strata=[0, 0, 1, 1], seed=1, binary=True)

    assert (found.ground, found.interval, found.p, found.verdict) == ("one cluster", None, None, "tied")
    assert "or all of one stratum, are of one cluster" in found.sentence("A", "B", "accuracy")
