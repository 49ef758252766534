"""Figures of answers that give each sample any number of labels.

Where a figure would divide by nothing it follows scikit-learn with `zero_division=0`:

| figure | where | value |
|---|---|---|
| precision | a label that was never predicted | 0 |
| recall | a label that no sample has | 0 |
| F1 | a label that is neither predicted nor there | 0 |
| macro | over all labels given, those that never occur too | mean of the above |
| average precision | a label that no sample has | 0 |
| AUC-ROC | a label that no sample or every sample has | none; left out of the macro mean |
| every figure | no samples | none |
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.statistics.ranking import average_precision, roc_auc

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFigures:
    """Precision, recall and F1 of one label, or an average over labels."""

    precision: float
    recall: float
    f1: float
    support: int
    """Samples that have the label; for an average, samples times their labels."""
    predicted: int
    """Samples that were given it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """Figures of a set of multi-label answers."""

    n: int
    labels: Mapping[str, LabelFigures]
    macro: LabelFigures | None
    """Mean over labels, each counting the same; as its F1, the mean of the labels' F1."""
    micro: LabelFigures | None
    """Over all pairs of sample and label."""
    subset_accuracy: float | None
    """Share of samples with exactly the labels that they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Areas:
    """Areas under the curves of one label, or their mean over labels."""

    roc: float | None
    precision_recall: float | None
    """As average precision: the sum of precision times the gain in recall, without interpolation."""


def classify(
    truth: Sequence[Collection[str]], predicted: Sequence[Collection[str]], *, labels: Sequence[str]
) -> Classification:
    """Precision, recall, F1 and subset accuracy over `labels`; what is not among them is not counted.

    Raises:
        UsageError: there are not as many answers as samples, or no labels.
    """
    true, given = indicators(truth, labels=labels), indicators(predicted, labels=labels)
    if len(true) != len(given):
        msg = f"{len(given)} answers are given for {len(true)} samples."
        raise UsageError(msg, hint="Give one for each, an empty one where nothing was answered.")
    hits, support, positive = ((matrix).sum(axis=0) for matrix in (true & given, true, given))
    each = [_figures(*counts) for counts in zip(hits.tolist(), support.tolist(), positive.tolist(), strict=True)]
    return Classification(
        n=len(true),
        labels=dict(zip(labels, each, strict=True)),
        macro=_mean(each) if len(true) else None,
        micro=_figures(int(hits.sum()), int(support.sum()), int(positive.sum())) if len(true) else None,
        subset_accuracy=float((true == given).all(axis=1).mean()) if len(true) else None,
    )


def areas(
    truth: Sequence[Collection[str]], scores: Sequence[Mapping[str, float]], *, labels: Sequence[str]
) -> dict[str, Areas]:
    """AUC-ROC and average precision of each label, by its score; a label without a score has 0.

    For hard answers let the scores be 1 for the labels given.

    Raises:
        UsageError: there are not as many scored samples as samples, no labels, or a score that is no number.
    """
    true = indicators(truth, labels=labels)
    if len(true) != len(scores):
        msg = f"{len(scores)} scored samples are given for {len(true)}."
        raise UsageError(msg, hint="Give one for each, an empty one where nothing was answered.")
    columns = {label: [sample.get(label, 0.0) for sample in scores] for label in labels}
    return {
        label: Areas(
            roc=roc_auc(true[:, place].tolist(), columns[label]),
            precision_recall=average_precision(true[:, place].tolist(), columns[label]),
        )
        for place, label in enumerate(labels)
    }


def macro_areas(by_label: Mapping[str, Areas]) -> Areas:
    """The mean over labels that have a value."""
    return Areas(
        roc=_mean_of([area.roc for area in by_label.values()]),
        precision_recall=_mean_of([area.precision_recall for area in by_label.values()]),
    )


def indicators(samples: Sequence[Collection[str]], *, labels: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which sample has which label, shape (samples, labels).

    Raises:
        UsageError: there are no labels, or one twice.
    """
    import numpy as np

    if not labels or len(set(labels)) < len(labels):
        msg = f"Labels must be given, each once; these are {list(labels)!r}."
        raise UsageError(msg, hint="Give each label once.")
    table = [[label in sample for label in labels] for sample in samples]
    return np.array(table, dtype=np.bool_).reshape(len(samples), len(labels))


def _figures(hits: int, support: int, predicted: int) -> LabelFigures:
    return LabelFigures(
        precision=hits / predicted if predicted else 0.0,
        recall=hits / support if support else 0.0,
        f1=2 * hits / (support + predicted) if support + predicted else 0.0,
        support=support,
        predicted=predicted,
    )


def _mean(each: Sequence[LabelFigures]) -> LabelFigures:
    return LabelFigures(
        precision=sum(figures.precision for figures in each) / len(each),
        recall=sum(figures.recall for figures in each) / len(each),
        f1=sum(figures.f1 for figures in each) / len(each),
        support=sum(figures.support for figures in each),
        predicted=sum(figures.predicted for figures in each),
    )


def _mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
