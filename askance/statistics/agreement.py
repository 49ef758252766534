"""Agreement of raters beyond chance, for nominal labels.

Gwet, *Handbook of Inter-Rater Reliability* (4th edition, 2014), chapter 2; Krippendorff, *Content Analysis* (2nd
edition, 2004), chapter 11; Cohen 1960.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from askance.errors import UsageError
from askance.statistics.arguments import check_counts, check_labels
from askance.statistics.estimate import DRAWS, Interval
from askance.statistics.resampling import cluster_bootstrap

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from askance.statistics.clusters import ClusterKey

Label = Hashable
Votes = Sequence[Sequence[Label | None]]
"""One row for each item, one column for each rater; None where a rater gave no label."""

Measure = Literal["cohen kappa", "gwet ac1", "krippendorff alpha", "pairwise agreement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One measure of agreement."""

    measure: Measure
    value: float | None
    """None where it is not defined: no item has two labels or, for kappa and alpha, all labels are the same."""
    interval: Interval | None
    """From resampled items, or whole clusters of them; None without `resampling`."""
    items: int
    """Items with at least two labels."""
    raters: int
    """Number of raters: the length of the longest row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """How the interval of an agreement is drawn."""

    seed: int
    clusters: Sequence[ClusterKey] | None = None
    """The cluster of each item; None draws each item alone."""
    draws: int = DRAWS


def cohen_kappa(
    a: Sequence[Label | None], b: Sequence[Label | None], *, resampling: Resampling | None = None
) -> Agreement:
    """Cohen's κ of two raters; items that lack either label are left out.

    Raises:
        UsageError: the two are not equally long, or a label is NaN or infinite.
    """
    import numpy as np

    if len(a) != len(b):
        msg = f"{len(a)} labels of one rater and {len(b)} of the other cannot be paired."
        raise UsageError(msg, hint="Give one for each item, None where there is none.")
    votes = list(zip(a, b, strict=True))
    labels = _labels(votes)
    codes = np.array([[labels.get(x, -1), labels.get(y, -1)] for x, y in votes], dtype=np.int64).reshape(-1, 2)
    categories = max(2, len(labels))
    return _agreement("cohen kappa", lambda rows: _kappa(rows, categories), codes, votes=votes, resampling=resampling)


def gwet_ac1(votes: Votes, *, categories: int = 2, resampling: Resampling | None = None) -> Agreement:
    """Gwet's AC₁ of any number of raters, missing labels allowed.

    `categories` is the number of labels that raters could choose from, where not all of them were used.

    Raises:
        UsageError: a label is NaN or infinite, or `categories` is no count.
    """
    check_counts(categories)
    counts = _counts(votes)
    categories = max(categories, 2, counts.shape[1])
    return _agreement("gwet ac1", lambda rows: _ac1(rows, categories), counts, votes=votes, resampling=resampling)


def krippendorff_alpha(votes: Votes, *, resampling: Resampling | None = None) -> Agreement:
    """Krippendorff's alpha for nominal labels of any number of raters, missing labels allowed.

    Raises:
        UsageError: a label is NaN or infinite.
    """
    return _agreement("krippendorff alpha", _alpha, _counts(votes), votes=votes, resampling=resampling)


def pairwise_agreement(votes: Votes, *, resampling: Resampling | None = None) -> Agreement:
    """Share of pairs of raters that gave an item the same label, averaged over items with at least two labels.

    Raises:
        UsageError: a label is NaN or infinite.
    """
    return _agreement("pairwise agreement", _observed_agreement, _counts(votes), votes=votes, resampling=resampling)


def _agreement(
    measure: Measure,
    compute: Callable[[npt.NDArray[np.int64]], float | None],
    rows: npt.NDArray[np.int64],
    *,
    votes: Votes,
    resampling: Resampling | None,
) -> Agreement:
    interval = None
    if resampling is not None:
        import numpy as np

        count = len(rows)
        apart, alike = _codes_at_ends(rows) if measure == "cohen kappa" else _counts_at_ends(rows)
        whole = np.vstack([rows, apart, alike])
        interval = cluster_bootstrap(
            lambda indices: compute(whole[list(indices)]),
            range(count),
            resampling.clusters,
            bounds=lambda: (range(count, 2 * count), range(2 * count, 3 * count)),
            seed=resampling.seed,
            draws=resampling.draws,
        )
    return Agreement(
        measure=measure,
        value=compute(rows),
        interval=interval,
        items=sum(sum(label is not None for label in row) > 1 for row in votes),
        raters=max(map(len, votes), default=0),
    )


def _codes_at_ends(codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The items as two raters would label them who never agree, and who always do."""
    import numpy as np

    known = (codes >= 0).all(axis=1)
    largest = max(1, int(codes.max(initial=0)))
    apart = np.where(codes[:, 0] < largest, codes[:, 0] + 1, 0)

    def second(other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.column_stack([codes[:, 0], np.where(known, other, codes[:, 1])])

    return second(apart), second(codes[:, 0])


def _counts_at_ends(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The items as raters would label them who agree as little as can be, and who always do."""
    import numpy as np

    label_counts, labels = counts.sum(axis=1)[:, None], counts.shape[1]
    columns = np.arange(labels, dtype=np.int64)
    apart = label_counts // labels + (columns < label_counts % labels)
    return apart, np.where(columns == counts.argmax(axis=1)[:, None], label_counts, 0)


def _labels(votes: Votes) -> dict[Label, int]:
    """A number for each label, in the order of first use.

    Raises:
        UsageError: a label is NaN or infinite.
    """
    check_labels(votes)
    seen = dict.fromkeys(label for row in votes for label in row if label is not None)
    return {label: number for number, label in enumerate(seen)}


def _counts(votes: Votes) -> npt.NDArray[np.int64]:
    """How often each item was given each label, shape (items, labels); there are two labels at least."""
    import numpy as np

    labels = _labels(votes)
    counts = np.zeros((len(votes), max(2, len(labels))), dtype=np.int64)
    for item, row in enumerate(votes):
        for label in row:
            if label is not None:
                counts[item, labels[label]] += 1
    return counts


def _observed_agreement(counts: npt.NDArray[np.int64]) -> float | None:
    """Mean share of agreeing pairs over items with at least two labels."""
    label_counts = counts.sum(axis=1)
    pairs = label_counts * (label_counts - 1)
    judged = pairs > 0
    if not judged.any():
        return None
    agreeing = (counts * (counts - 1)).sum(axis=1)
    return float((agreeing[judged] / pairs[judged]).mean())


def _kappa(codes: npt.NDArray[np.int64], categories: int) -> float | None:
    import numpy as np

    both = codes[(codes >= 0).all(axis=1)]
    if not len(both):
        return None
    observed = float((both[:, 0] == both[:, 1]).mean())
    left, right = (np.bincount(both[:, rater], minlength=categories) / len(both) for rater in (0, 1))
    return _beyond_chance(observed, float((left * right).sum()))


def _ac1(counts: npt.NDArray[np.int64], categories: int) -> float | None:
    """Gwet 2014, chapter 2: prevalences over all items with a label, agreement over those with two."""
    observed = _observed_agreement(counts)
    if observed is None:
        return None
    label_counts = counts.sum(axis=1)
    labelled = counts[label_counts > 0] / label_counts[label_counts > 0][:, None]
    prevalence = labelled.mean(axis=0)
    return _beyond_chance(observed, float((prevalence * (1 - prevalence)).sum()) / (categories - 1))


def _alpha(counts: npt.NDArray[np.int64]) -> float | None:
    """Krippendorff 2004, section 11.3: coincidences of labels within items."""
    label_counts = counts.sum(axis=1)
    paired = counts[label_counts > 1]
    total = int(paired.sum())
    if not total:
        return None
    agreeing = float(((paired * (paired - 1)).sum(axis=1) / (paired.sum(axis=1) - 1)).sum()) / total
    by_label = paired.sum(axis=0)
    return _beyond_chance(agreeing, float((by_label * (by_label - 1)).sum()) / (total * (total - 1)))


def _beyond_chance(observed: float, expected: float) -> float | None:
    """(observed − expected) / (1 − expected); None where chance alone would always agree."""
    return None if expected >= 1 else (observed - expected) / (1 - expected)
