"""Figures of multi-label classification, from counts of each label.

Answers have no scores, so each curve has one inner point: the area under the ROC curve is the mean of recall and
specificity, and average precision is recall · precision + (1 − recall) · share of samples with the label.

Where a figure would divide by nothing it follows scikit-learn with `zero_division=0`:

| figure | where | value |
|---|---|---|
| precision | a label that was never given | 0 |
| recall | a label that no sample has | 0 |
| F1 | a label that was never given and that no sample has | 0 |
| average precision | a label that no sample has | 0 |
| ROC area | a label that no sample or every sample has | NaN; left out of the macro mean |
| macro | over all labels, those that never occur too | mean of the above |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from askance.statistics.arguments import check_counts, check_part


class LabelCounts(NamedTuple):
    """How many samples have a label, were given it by the answers, or both; sums of weights where samples have some."""

    both: float
    true: float
    given: float
    samples: float = math.nan
    """All samples; the areas need it."""


LabelFigure: TypeAlias = Callable[[LabelCounts], float]


def precision(counts: LabelCounts) -> float:
    """Of the samples that were given the label, the share that has it.

    Raises:
        UsageError: a count is negative, NaN or infinite, or a part is larger than its whole.
    """
    _check(counts)
    return _ratio(counts.both, counts.given)


def recall(counts: LabelCounts) -> float:
    """Of the samples that have the label, the share that was given it.

    Raises:
        UsageError: a count is negative, NaN or infinite, or a part is larger than its whole.
    """
    _check(counts)
    return _ratio(counts.both, counts.true)


def f1(counts: LabelCounts) -> float:
    """Harmonic mean of precision and recall.

    Raises:
        UsageError: a count is negative, NaN or infinite, or a part is larger than its whole.
    """
    _check(counts)
    return _ratio(2 * counts.both, counts.true + counts.given)


def roc_area(counts: LabelCounts) -> float:
    """Area under the ROC curve; NaN where all samples or none have the label.

    Raises:
        UsageError: a count is negative, NaN or infinite, or a part is larger than its whole.
    """
    _check_samples(counts)
    both, true, predicted, samples = counts
    if not 0 < true < samples:
        return math.nan
    return (both / true + 1 - (predicted - both) / (samples - true)) / 2


def average_precision(counts: LabelCounts) -> float:
    """Average precision, where the samples that were given the label rank before all others.

    Raises:
        UsageError: a count is negative, NaN or infinite, or a part is larger than its whole.
    """
    _check_samples(counts)
    both, true, _, samples = counts
    if not true:
        return 0.0
    return both / true * precision(counts) + (1 - both / true) * true / samples


def macro(figure: LabelFigure, labels: Sequence[LabelCounts]) -> float:
    """Mean of a figure over labels, without those for which it is NaN; NaN where it is NaN for all."""
    known = [value for counts in labels if not math.isnan(value := figure(counts))]
    return math.fsum(known) / len(known) if known else math.nan


def micro(figure: LabelFigure, labels: Sequence[LabelCounts]) -> float:
    """A figure over all pairs of sample and label."""
    return figure(LabelCounts(*(math.fsum(column) for column in zip(*labels, strict=True))))


def _check(counts: LabelCounts) -> None:
    """Refuses counts that are none, or of which a part is larger than its whole."""
    both, true, predicted, _ = counts
    # Figures are computed for thousands of resamples, so a single line tells sound counts; NaN and infinity fail it.
    if 0 <= both <= true < math.inf and both <= predicted < math.inf:
        return
    check_counts(true, predicted, weighted=True)
    check_part(both, min(true, predicted), weighted=True)


def _check_samples(counts: LabelCounts) -> None:
    """Refuses counts that are none, or more than all samples."""
    _check(counts)
    if not max(counts.true, counts.given) <= counts.samples < math.inf:
        check_part(max(counts.true, counts.given), counts.samples, weighted=True)


def _ratio(above: float, below: float) -> float:
    return above / below if below else 0.0
