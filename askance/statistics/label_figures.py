"""Every figure of multi-label answers with its interval, and two systems compared on one of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from askance.errors import UsageError
from askance.statistics.classification import indicators
from askance.statistics.clusters import Key, checked, codes_of
from askance.statistics.comparing import compare_totals
from askance.statistics.draws import resamples
from askance.statistics.ranking import curve_areas
from askance.statistics.resampling import percentiles
from askance.statistics.totals import cluster_sums, drawn_totals, times_drawn
from askance.statistics.values import DRAWS, LEVEL, Interval

if TYPE_CHECKING:
    from askance.statistics.comparison import Comparison
    from askance.statistics.totals import Floats

Average = Literal[
    "macro precision",
    "macro recall",
    "macro f1",
    "micro precision",
    "micro recall",
    "micro f1",
    "subset accuracy",
]
Area = Literal["roc", "precision recall"]


def classification_intervals(
    truth: Sequence[Collection[str]],
    predicted: Sequence[Collection[str]],
    *,
    labels: Sequence[str],
    seed: int,
    clusters: Sequence[Key] | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> dict[str, Interval | None]:
    """Intervals of what `classify` gives: of each `Average`, and as `"TR1 f1"` of each label's figures.

    Raises:
        UsageError: as `classify` says, or clusters and samples differ in number.
    """
    sums = cluster_sums(_counts(truth, predicted, labels=labels), clusters)
    if len(sums) < 2:
        return dict.fromkeys(_all_figures(sums.sum(axis=0), labels))
    figures = _all_figures(drawn_totals(sums, seed=seed, draws=draws), labels)
    return {name: percentiles(drawn, level=level) for name, drawn in figures.items()}


def compare_classifications(
    truth: Sequence[Collection[str]],
    answers: tuple[Sequence[Collection[str]], Sequence[Collection[str]]],
    *,
    figure: Average | str,
    labels: Sequence[str],
    seed: int,
    clusters: Sequence[Key] | None = None,
    draws: int = DRAWS,
) -> Comparison:
    """Compare two systems' answers, A's and B's, on one figure: an `Average`, or such as `"TR1 f1"`.

    Raises:
        UsageError: as `classify` says, there is no such figure, or clusters and samples differ in number.
    """
    a, b = (_counts(truth, given, labels=labels) for given in answers)
    names = _all_figures(a.sum(axis=0), labels)
    if figure not in names:
        msg = f"There is no figure {figure!r}."
        raise UsageError(msg, hint=f"Choose among {', '.join(names)}.")
    return compare_totals(
        lambda sums: _all_figures(sums, labels)[figure], a, b, clusters=clusters, seed=seed, draws=draws
    )


def area_intervals(
    truth: Sequence[Collection[str]],
    scores: Sequence[Mapping[str, float]],
    *,
    labels: Sequence[str],
    seed: int,
    clusters: Sequence[Key] | None = None,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> dict[str, dict[Area, Interval | None]]:
    """Intervals of what `areas` and `macro_areas` give: by label, and under `"macro"`.

    Raises:
        UsageError: as `areas` says, or clusters and samples differ in number.
    """
    import numpy as np

    true = indicators(truth, labels=labels)
    codes, count = codes_of(clusters if clusters is not None else range(len(true)), n=len(true))
    if count < 2:
        return {name: {"roc": None, "precision recall": None} for name in (*labels, "macro")}
    drawn = np.full((2, len(labels), draws), np.nan)
    start = 0
    for places in resamples(seed, draws=draws, size=count):
        weights = times_drawn(places, size=count)[:, codes]
        for column, label in enumerate(labels):
            levels = checked([sample.get(label, 0.0) for sample in scores])
            drawn[:, column, start : start + len(places)] = curve_areas(true[:, column], levels, weights)
        start += len(places)
    named = {label: drawn[:, column] for column, label in enumerate(labels)} | {"macro": _mean_of_known(drawn)}
    return {
        name: {"roc": percentiles(roc, level=level), "precision recall": percentiles(precision, level=level)}
        for name, (roc, precision) in named.items()
    }


def _counts(truth: Sequence[Collection[str]], predicted: Sequence[Collection[str]], *, labels: Sequence[str]) -> Floats:
    """For each sample 1, whether it is exactly right, hits, its labels, those given; shape (n, 2 + 3·labels)."""
    import numpy as np

    true, given = indicators(truth, labels=labels), indicators(predicted, labels=labels)
    if len(true) != len(given):
        msg = f"{len(given)} answers are given for {len(true)} samples."
        raise UsageError(msg, hint="Give one for each, an empty one where nothing was answered.")
    ones, exact = np.ones((len(true), 1)), (true == given).all(axis=1)[:, None]
    return np.concatenate([ones, exact, true & given, true, given], axis=1).astype(np.float64)


def _all_figures(sums: Floats, labels: Sequence[str]) -> dict[str, Floats]:
    """Every figure from sums of `_counts`, by name; 0 where it would divide by nothing."""
    many = len(labels)
    counts = sums[..., 2:].reshape(*sums.shape[:-1], 3, many)
    hits, support, given = (counts[..., kind, :] for kind in range(3))
    each = _three(hits, support, given)
    micro = _three(hits.sum(axis=-1), support.sum(axis=-1), given.sum(axis=-1))
    return {
        **{f"macro {name}": values.mean(axis=-1) for name, values in each.items()},
        **{f"micro {name}": values for name, values in micro.items()},
        "subset accuracy": _ratio(sums[..., 1], sums[..., 0]),
        **{f"{label} {name}": values[..., at] for at, label in enumerate(labels) for name, values in each.items()},
    }


def _three(hits: Floats, support: Floats, given: Floats) -> dict[str, Floats]:
    return {"precision": _ratio(hits, given), "recall": _ratio(hits, support), "f1": _ratio(2 * hits, support + given)}


def _ratio(above: Floats, below: Floats) -> Floats:
    import numpy as np

    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _mean_of_known(drawn: Floats) -> Floats:
    """Mean over labels that have a value, shape (2, draws); NaN where none has."""
    import numpy as np

    known = ~np.isnan(drawn)
    return np.divide(
        np.nansum(drawn, axis=1), known.sum(axis=1), out=np.full_like(drawn[:, 0], np.nan), where=known.any(axis=1)
    )
