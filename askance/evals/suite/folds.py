"""Five-fold splits by image, with a seed: for those who train (section 5 of the WHOOPS! paper: 60, 20 and 20 percent).

The authors' own splits are not published.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from askance.amounts import many
from askance.errors import UsageError
from askance.evals.suite.options import lot

FOLDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One split of the images; together the tests of all folds hold each image once."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]


def fold_of(ids: Iterable[str], *, seed: int = 0, count: int = FOLDS) -> dict[str, int]:
    """For each image the fold, from 0, in whose test it is; depends on the set of ids and the seed alone.

    Raises:
        UsageError: fewer than three folds, or fewer images than folds.
    """
    ordered = sorted({*ids}, key=lambda name: lot(seed, name, "fold"))
    if count < 3 or len(ordered) < count:
        raise UsageError(
            f"{many(len(ordered), 'image')} cannot be split into {count} folds.",
            hint="Three folds or more, none empty.",
        )
    return {name: place % count for place, name in enumerate(ordered)}


def folds(ids: Iterable[str], *, seed: int = 0, count: int = FOLDS) -> tuple[Fold, ...]:
    """The splits: of each, the next fold's test is the validation, and the rest is for training.

    Raises:
        UsageError: as `fold_of`.
    """
    places = fold_of(ids, seed=seed, count=count)
    parts = [tuple(sorted(name for name, place in places.items() if place == part)) for part in range(count)]
    return tuple(
        Fold(
            train=tuple(
                name for part in range(count) if part not in {number, (number + 1) % count} for name in parts[part]
            ),
            validation=parts[(number + 1) % count],
            test=parts[number],
        )
        for number in range(count)
    )
