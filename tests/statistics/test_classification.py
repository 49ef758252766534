from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from askance.statistics import LabelCounts, average_precision, f1, macro, micro, precision, recall, roc_area
from tests.statistics import reference

about: Any = pytest.approx


def counted(truth: Sequence[Sequence[int]], given: Sequence[Sequence[int]]) -> list[LabelCounts]:
    """The counts of each label; rows are samples, columns labels."""
    columns = zip(zip(*truth, strict=True), zip(*given, strict=True), strict=True)
    return [LabelCounts(sum(map(min, true, said)), sum(true), sum(said), len(truth)) for true, said in columns]


def test_figures_are_those_of_scikit_learn() -> None:
    for case in reference.read()["classification"]:
        labels, said = counted(case["truth"], case["predicted"]), case["said"]
        for name, average in (("macro", macro), ("micro", micro)):
            assert [average(figure, labels) for figure in (precision, recall, f1)] == about(said[name]), case
        assert list(map(f1, labels)) == about(said["f1"]), case


def test_areas_are_those_of_scikit_learn() -> None:
    for case in reference.read()["areas"]:
        (label,) = counted([[true] for true in case["truth"]], [[given] for given in case["given"]])
        roc, average = case["said"]
        assert roc_area(label) == about(math.nan if roc is None else roc, nan_ok=True), case
        assert average_precision(label) == about(average), case


def test_figures_by_hand() -> None:
    rare, absent = LabelCounts(1, 2, 4, 10), LabelCounts(0, 0, 0, 10)

    assert (precision(rare), recall(rare), f1(rare)) == (1 / 4, 1 / 2, 1 / 3)
    assert roc_area(rare) == (1 / 2 + 5 / 8) / 2
    assert average_precision(rare) == 1 / 2 * 1 / 4 + 1 / 2 * 2 / 10
    assert (precision(absent), recall(absent), f1(absent), average_precision(absent)) == (0, 0, 0, 0)
    assert (macro(f1, [rare, absent]), micro(f1, [rare, absent])) == (1 / 6, 1 / 3)


def test_a_label_without_a_value_is_left_out_of_the_mean() -> None:
    everywhere = LabelCounts(2, 10, 2, 10)

    assert math.isnan(roc_area(everywhere))
    assert macro(roc_area, [everywhere, LabelCounts(5, 5, 5, 10)]) == 1
    assert math.isnan(macro(roc_area, [everywhere]))
