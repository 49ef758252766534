"""What is no number, no count, no share or no label is refused in a sentence, by every public function alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from askance import statistics as s
from askance.errors import UsageError

NAN, INF = math.nan, math.inf
TWO = s.LabelCounts(1, 2, 4, 10)


def bare(counts: Any) -> s.LabelCounts:
    return s.LabelCounts(*counts)


def scores(*values: float) -> s.ClusteredScores:
    return s.ClusteredScores(scores=values)


LABELS: dict[str, Callable[[Any], object]] = {
    "kappa": lambda odd: s.cohen_kappa([odd, 1], [odd, 1]),
    "ac1": lambda odd: s.gwet_ac1([[odd, odd], [1, 1]]),
    "alpha": lambda odd: s.krippendorff_alpha([[odd, odd], [1, 1]]),
    "pairs": lambda odd: s.pairwise_agreement([[odd, odd], [1, 1]]),
}


@pytest.mark.parametrize("odd", [NAN, INF, np.float32("nan"), Decimal("nan")], ids=repr)
@pytest.mark.parametrize("measure", LABELS.values(), ids=LABELS)
def test_what_is_no_number_is_no_label(measure: Callable[[Any], object], odd: Any) -> None:
    with pytest.raises(UsageError, match=r"(?i)(nan|inf).* is no label\. Give None where a rater gave none"):
        measure(odd)


COUNTS: dict[str, Callable[[Any], object]] = {
    "wilson, successes": lambda odd: s.wilson(odd, 3),
    "wilson, n": lambda odd: s.wilson(0, odd),
    "share, successes": lambda odd: s.share_estimate(odd, 3),
    "share, n": lambda odd: s.share_estimate(0, odd),
    "mcnemar, b": lambda odd: s.mcnemar_exact(odd, 3),
    "mcnemar, c": lambda odd: s.mcnemar_exact(3, odd),
    "score interval, b": lambda odd: s.paired_score_interval(odd, 1, 9),
    "score interval, c": lambda odd: s.paired_score_interval(1, odd, 9),
    "score interval, n": lambda odd: s.paired_score_interval(1, 1, odd),
    "categories": lambda odd: s.gwet_ac1([[0, 1]], categories=odd),
    "table": lambda odd: s.chi_squared([[odd, 3], [4, 5]]),
    "draws": lambda odd: s.bootstrap_mean([0.0, 1.0], seed=1, draws=odd),
    "draws of swaps": lambda odd: s.swap_test(lambda rows: float(sum(rows)), [0.0, 1.0], [1.0, 1.0], seed=1, draws=odd),
    "draws of groups": lambda odd: s.outcomes_by_group([True, False], [["a"], ["b"]], seed=1, draws=odd),
    "clusters": lambda odd: s.linkage_clusters([np.ones(2, np.float16)] * 3, odd),
}


@pytest.mark.parametrize("odd", [NAN, INF, -1, 1.5])
@pytest.mark.parametrize("function", COUNTS.values(), ids=COUNTS)
def test_what_is_no_whole_number_is_no_count(function: Callable[[Any], object], odd: float) -> None:
    with pytest.raises(UsageError, match=rf"^{odd!r}(\.0)? is no count.* whole number"):
        function(odd)


WEIGHTED: dict[str, Callable[[Any], object]] = {
    "both": lambda odd: s.precision(bare((odd, 2, 4, 10))),
    "true": lambda odd: s.recall(bare((1, odd, 4, 10))),
    "given": lambda odd: s.f1(bare((1, 2, odd, 10))),
    "samples": lambda odd: s.roc_area(bare((1, 2, 4, odd))),
    "all samples": lambda odd: s.average_precision(bare((1, 2, 4, odd))),
}


@pytest.mark.parametrize("odd", [NAN, INF, -1])
@pytest.mark.parametrize("function", WEIGHTED.values(), ids=WEIGHTED)
def test_counts_of_a_label_are_finite(function: Callable[[Any], object], odd: float) -> None:
    with pytest.raises(UsageError, match=rf"^{odd!r} is no count.* finite number"):
        function(odd)


@pytest.mark.parametrize("figure", [s.precision, s.recall, s.f1, s.roc_area, s.average_precision])
def test_figures_of_labels_do_not_depend_on_the_unit_of_weight(figure: s.LabelFigure) -> None:
    """Samples may have weights, such as those of an interval where all samples agree."""
    assert figure(s.LabelCounts(0.25, 0.5, 1, 2.5)) == pytest.approx(figure(TWO))


def test_whole_counts_of_any_type_are_taken() -> None:
    numbers: list[Any] = [2, 2.0, np.int64(2)]

    assert len({s.wilson(number, 3) for number in numbers}) == 1
    assert len({s.mcnemar_exact(number, 0) for number in numbers}) == 1


PARTS: dict[str, tuple[Callable[[], object], str]] = {
    "wilson": (lambda: s.wilson(4, 3), r"^4 of 3 is not a share\."),
    "precision": (lambda: s.precision(s.LabelCounts(3, 4, 2)), r"^3 of 2 is not a share\."),
    "recall": (lambda: s.recall(s.LabelCounts(3, 2, 4)), r"^3 of 2 is not a share\."),
    "area": (lambda: s.roc_area(s.LabelCounts(1, 2, 4, 3)), r"^4 of 3 is not a share\."),
    "macro": (lambda: s.macro(s.f1, [TWO, s.LabelCounts(3, 2, 4)]), r"^3 of 2 is not a share\."),
}


@pytest.mark.parametrize(("function", "message"), PARTS.values(), ids=PARTS)
def test_a_part_is_no_larger_than_the_whole(function: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        function()


NUMBERS: dict[str, Callable[[Any], object]] = {
    "spearman": lambda odd: s.spearman([1, 2, 3, odd], [1, 2, 3, 4]),
    "spearman, few": lambda odd: s.spearman([1], [odd]),
    "mean": lambda odd: s.mean_estimate([odd, 1.0], seed=1),
    "error": lambda odd: s.clustered_standard_error([odd, 1.0]),
    "bootstrap": lambda odd: s.bootstrap_mean([odd, 1.0], seed=1),
    "totals": lambda odd: s.bootstrap_totals(lambda sums: sums[..., 0], [[odd], [1.0]], seed=1),
    "compared totals": lambda odd: s.compare_totals(lambda sums: sums[..., 0], [[odd], [1.0]], [[0.0], [1.0]], seed=1),
    "compared": lambda odd: s.compare_paired([odd, 1.0], [0.0, 1.0], seed=1),
    "paired": lambda odd: s.paired_cluster_bootstrap([odd, 1.0], [0.0, 1.0], seed=1),
    "signs": lambda odd: s.sign_flip([odd, 1.0], seed=1),
    "detectable": lambda odd: s.smallest_detectable_difference([odd, 1.0]),
    "powered, truth": lambda odd: s.prediction_powered_mean([odd, 1.0], scores(0.0, 1.0), scores(0.0, 1.0)),
    "powered, labelled": lambda odd: s.prediction_powered_mean([0.0, 1.0], scores(odd, 1.0), scores(0.0, 1.0)),
    "powered, others": lambda odd: s.prediction_powered_mean([0.0, 1.0], scores(0.0, 1.0), scores(odd, 1.0)),
    "bounds": lambda odd: s.mean_estimate([0.5, 0.5], seed=1, bounds=lambda: ([0.0, 0.0], [1.0, odd])),
    "bounds of a comparison": lambda odd: s.compare_paired(
        [0.5] * 2, [0.25] * 2, seed=1, bounds=lambda: ([0.0, 0.0], [odd, 1.0])
    ),
    "vectors": lambda odd: s.linkage_clusters([np.array([odd, 1], np.float16)] * 3, 2),
}


@pytest.mark.parametrize("odd", [NAN, INF])
@pytest.mark.parametrize("function", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.filterwarnings("error")
def test_what_is_not_finite_is_no_value(function: Callable[[Any], object], odd: float) -> None:
    with pytest.raises(UsageError, match=rf"^{odd!r} is not a finite number\."):
        function(odd)


RIGHT_OR_WRONG: dict[str, Callable[[Any], object]] = {
    "outcomes": lambda odd: s.outcomes_by_group([odd, True], [["a"], ["b"]], seed=1),
    "errors of a": lambda odd: s.error_independence([odd, True], [True, True], seed=1),
    "errors of b": lambda odd: s.error_independence([True, True], [odd, True], seed=1),
    "labels of people": lambda odd: s.clustered_rogan_gladen(scores(0, 1), scores(0, 1), [odd, True], seed=1),
    "compared": lambda odd: s.compare_paired([1.0, 1.0], [odd, 0.0], seed=1, binary=True),
    "verdicts of a judge": lambda odd: s.mean_estimate([odd, 1.0], seed=1, binary=True),
}


@pytest.mark.parametrize("odd", [NAN, 0.5, 2])
@pytest.mark.parametrize("function", RIGHT_OR_WRONG.values(), ids=RIGHT_OR_WRONG)
def test_what_is_neither_right_nor_wrong_is_refused(function: Callable[[Any], object], odd: float) -> None:
    with pytest.raises(UsageError, match=rf"^{odd!r} is (neither 0 nor 1|not a finite number)\."):
        function(odd)


@pytest.mark.parametrize("odd", [NAN, -0.5, 2.0])
def test_a_share_lies_between_0_and_1(odd: float) -> None:
    for function in (
        lambda: s.rogan_gladen(odd, 0.9, 0.9),
        lambda: s.clustered_rogan_gladen(scores(odd, 1), scores(0, 1), [True, False], seed=1),
        lambda: s.clustered_rogan_gladen(scores(0, 1), scores(odd, 1), [True, False], seed=1),
    ):
        with pytest.raises(UsageError, match=rf"^{odd!r} is not (between 0 and 1|a finite number)\."):
            function()
    with pytest.raises(UsageError, match=r" is no p-value\."):
        s.holm([odd])
    for function in (
        lambda: s.wilson(1, 3, level=odd),
        lambda: s.smallest_detectable_difference([0.0, 1.0] * 9, power=odd),
        lambda: s.smallest_detectable_difference([0.0, 1.0] * 9, alpha=odd),
    ):
        with pytest.raises(UsageError, match=rf"{odd!r} is not between 0 and 1\."):
            function()


@pytest.mark.parametrize("odd", [NAN, INF])
def test_a_statistic_without_a_number_has_no_value(odd: float) -> None:
    """It is no smallest p, and no end of an interval."""

    def statistic(rows: Any) -> float:
        return odd if 1.0 in rows else 0.0

    assert s.swap_test(statistic, [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], seed=1) is None
    interval = s.cluster_bootstrap(statistic, [1.0, *[0.0] * 9], seed=1, draws=200)
    assert interval is None or (interval.low, interval.high) == (0, 0)


@pytest.mark.parametrize("what", ["clusters", "strata"])
def test_a_missing_name_is_no_cluster_of_its_own(what: str) -> None:
    """As tables have it where a group is not given."""
    names: Any = {what: ["a", NAN, float("nan"), "b"]}

    with pytest.raises(UsageError, match=rf"^nan is no name of one of the {what}\."):
        s.bootstrap_mean([0.0, 1.0, 1.0, 0.0], seed=1, **names)
