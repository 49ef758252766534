"""Whether length tells negatives from true statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance import statistics

if TYPE_CHECKING:
    from askance.evals.negatives.files import OptionSet
    from askance.statistics import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Words of true and of wrong statements."""

    true: float
    wrong: float
    difference: Estimate
    """Words that negatives of an image have more, in the mean; by image."""
    longest_true: Estimate
    """How often the longest option is true; ties count in parts."""
    chance: float
    """How often any option is."""


def compare_lengths(sets: Sequence[OptionSet], *, seed: int = 0) -> Lengths:
    """Words of the true statements and of the negatives; `seed` is that of the bootstraps."""
    true = [[len(text.split()) for text in each.true] for each in sets]
    wrong = [[len(one.text.split()) for one in each.negatives] for each in sets]
    both = [*zip(true, wrong, strict=True)]
    return Lengths(
        true=_mean([count for counts in true for count in counts]),
        wrong=_mean([count for counts in wrong for count in counts]),
        difference=statistics.mean_estimate([_mean(one) - _mean(other) for other, one in both], seed=seed),
        longest_true=statistics.mean_estimate([_share(*pair) for pair in both], seed=seed),
        chance=_mean([len(one) / (len(one) + len(other)) for one, other in both]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _share(true: Sequence[int], wrong: Sequence[int]) -> float:
    """Of the longest options, the share that is true."""
    most = max([*true, *wrong])
    longest = true.count(most)
    return longest / (longest + wrong.count(most))
