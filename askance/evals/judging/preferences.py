"""What many preferences come to: wins, ties, and how often the order decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance import statistics

if TYPE_CHECKING:
    from askance.agents import Preference
    from askance.statistics import Estimate
    from askance.statistics.clusters import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceFigures:
    """Shares of the pairs that have a preference, but for `unscored`, which is one of all pairs."""

    a: Estimate
    """Of pairs, the share that a wins."""
    b: Estimate
    tie: Estimate
    flip: Estimate
    """Of pairs, the share where the same place won in both orders; all of them are ties."""
    unscored: Estimate


def preference_figures(
    preferences: Sequence[Preference], clusters: Sequence[Key] | None = None, *, seed: int = 0
) -> PreferenceFigures:
    """The shares of wins, ties, flips and of what is unscored, with their intervals.

    Args:
        preferences: of pairs of answers, from `judge_preference`.
        clusters: what each pair belongs to, such as its picture; without, each stands alone.
        seed: of the bootstraps.

    Raises:
        UsageError: clusters and preferences differ in number.
    """
    groups = range(len(preferences)) if clusters is None else clusters
    rows = list(zip(preferences, groups, strict=False))
    scored = [(preference, group) for preference, group in rows if preference.value is not None]

    def share(values: Sequence[bool], among: Sequence[Key]) -> Estimate:
        return statistics.mean_estimate([float(value) for value in values], among, seed=seed, binary=True)

    kept = [group for _, group in scored]
    return PreferenceFigures(
        a=share([preference.value == "a" for preference, _ in scored], kept),
        b=share([preference.value == "b" for preference, _ in scored], kept),
        tie=share([preference.value == "tie" for preference, _ in scored], kept),
        flip=share([preference.flipped for preference, _ in scored], kept),
        unscored=share([preference.value is None for preference in preferences], groups),
    )
