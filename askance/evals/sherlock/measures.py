"""Figures of retrieval, localization and comparison as the authors' scorers compute them: numbers in, numbers out.

A score says how plausible an inference is of a region; higher is more plausible, and its scale is free. Scores that are
not finite are refused, since NaN would rank first. Where scores are equal, the order of a file would decide:

| figure | where scores are equal |
|---|---|
| rank | the mean of the tied ranks; so a tie for the first place is no P@1 |
| accuracy of regions | a draw for each pair, seeded by the names of its region and its inference |
| accuracy of proposals | the first in the order of the proposals |
| pairwise accuracy | ten draws in the order of the candidates, the same for every set of candidates |

All but the second are the authors' own rules. Their solver of the second, `lapjv`, gives 0 % for constant scores, and
scipy's 100 %; with the draws constant scores are at chance. Scores at float32 precision are what the authors' files
hold: draws of the last rule reach 1e-9, so that probabilities below that drown in them, and log-odds do not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeAlias

from askance.errors import UsageError
from askance.images.regions import iou
from askance.statistics import best_assignment
from askance.statistics.arguments import finite_array

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Scores: TypeAlias = npt.ArrayLike
    _Array: TypeAlias = npt.NDArray[np.float64]

CANDIDATES: Final = 10
"""Inferences of a region in comparison at most: the authors draw no more numbers for ties."""
OVERLAP: Final = 0.5
"""Intersection over union above which a proposal is right."""
_NOISE_SEED: Final = 1
_JITTER: Final = 1e-9
"""Size of the draws for an assignment, as a part of the least difference of its scores."""
_PRECISION: Final = 2.0**-46
"""Size of the draws at least, as a part of the largest score: lesser differences are errors of rounding, so ties."""


# --- retrieval ---


def retrieval_rank(row: Scores, place: int) -> float:
    """The rank of one of several scores, from 1 for the highest; equal scores share the mean of their ranks.

    Raises:
        UsageError: there is no score at `place`, or one is not finite.
    """
    scores = _finite(row, dimensions=1)
    if not 0 <= place < len(scores):
        raise UsageError(f"There is no score {place} among {len(scores)}.", hint="Count from 0.")
    own = scores[place]
    return int((scores > own).sum()) + (int((scores == own).sum()) + 1) / 2


# --- localization ---


def assignment_accuracy(matrix: Scores, ids: Sequence[str], *, seed: int = 0) -> tuple[float, float]:
    """How many regions of a picture get their own inference where each gets one and their scores are highest together.

    Args:
        matrix: regions × inferences, as many of each; the true inference of a region stands in its column.
        ids: of the regions and of their inferences, in this order. What is drawn for a pair depends on its two ids and
            the seed alone.
        seed: of the draws for ties.

    Returns:
        The share of regions with their own inference, and the share of pairs whose score equals another one of the same
        region or of the same inference.

    Raises:
        UsageError: the matrix is not as large as the ids say, two ids are equal, or a score is not finite.
    """
    import numpy as np

    scores, count = _finite(matrix, dimensions=2), len(ids)
    if scores.shape != (count, count) or not count:
        raise UsageError(
            f"{count} regions do not have {' × '.join(map(str, scores.shape))} scores.",
            hint="Give a score for each region with each inference, and an id for each region.",
        )
    if len({*ids}) != count:
        raise UsageError("Two regions of a picture have the same id.", hint="Name each region once.")
    draws = np.array([[draw(seed, region, inference) for inference in ids] for region in ids])
    least = np.diff(np.unique(scores)).min(initial=1.0)
    size = max(_JITTER * least, _PRECISION * np.abs(scores).max())
    columns = best_assignment(scores - scores.min() + size * draws)
    return sum(row == column for row, column in enumerate(columns)) / count, float(_tied(scores).mean())


def draw(seed: int, *names: str) -> float:
    """A number from 0 up to 1 that is always the same for these names."""
    digest = sha256("\n".join((str(seed), *names)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _tied(scores: _Array) -> npt.NDArray[np.bool_]:
    """Which scores equal another one in their row or in their column."""
    rows = (scores[:, :, None] == scores[:, None, :]).sum(axis=2) > 1
    columns = (scores[:, None, :] == scores[None, :, :]).sum(axis=1) > 1
    return rows | columns


def right_proposals(
    proposals: Sequence[Sequence[float]], boxes: Sequence[Sequence[Sequence[float]]]
) -> list[list[int]]:
    """By inference, the places of the proposals that are right: they overlap one of its boxes by more than a half.

    Args:
        proposals: boxes that a detector found in the picture.
        boxes: by inference, the boxes of its region.
    """
    return [
        [place for place, found in enumerate(proposals) if any(iou(found, box) > OVERLAP for box in region)]
        for region in boxes
    ]


def proposal_accuracy(matrix: Scores, right: Sequence[Collection[int]]) -> float:
    """The share of the inferences of a picture that have their highest score at a proposal that is right.

    Args:
        matrix: proposals × inferences.
        right: by inference, the places of the proposals that are right, as of `right_proposals`.

    Raises:
        UsageError: the counts of inferences differ, there is no proposal or no inference, or a score is not finite.
    """
    scores = _finite(matrix, dimensions=2)
    if scores.shape[1] != len(right) or not scores.size:
        raise UsageError(
            f"Scores of the shape {scores.shape} do not go with the right proposals of {len(right)} inferences.",
            hint="Give a score for each proposal with each inference, at least one of each.",
        )
    first: list[int] = scores.argmax(axis=0).tolist()
    return sum(place in places for place, places in zip(first, right, strict=True)) / len(right)


# --- comparison ---


def pairwise_accuracy(scores: Scores, ratings: Sequence[float]) -> float:
    """How often scores order two candidates as a rater does, so that chance is 0 and the best is 1.

    Pairs that the rater rates equally do not count; 0 where all are.

    Args:
        scores: of the candidates of one region; those of the other rater give the agreement of people.
        ratings: of the same candidates, in the same order.

    Raises:
        UsageError: there are more than `CANDIDATES`, the lengths differ, or a score is not finite.
    """
    tiebroken = _compared(scores, ratings) + _noise()[: len(ratings)]
    outcomes = [(ratings[a] < ratings[b]) == (tiebroken[a] < tiebroken[b]) for a, b in _ordered(ratings)]
    return (sum(outcomes) / len(outcomes) - 0.5) * 2 if outcomes else 0.0


def tied_pairs(scores: Scores, ratings: Sequence[float]) -> float:
    """The share of pairs with unequal ratings whose scores are equal, so that the draws order them; 0 without pairs.

    Raises:
        UsageError: as for `pairwise_accuracy`.
    """
    values = _compared(scores, ratings)
    ties = [bool(values[a] == values[b]) for a, b in _ordered(ratings)]
    return sum(ties) / len(ties) if ties else 0.0


def _compared(scores: Scores, ratings: Sequence[float]) -> _Array:
    """Scores of candidates that have these ratings."""
    values = _finite(scores, dimensions=1)
    if len(values) != len(ratings):
        raise UsageError(
            f"{len(values)} scores do not go with {len(ratings)} ratings.", hint="Give one of each for each candidate."
        )
    if len(values) > CANDIDATES:
        raise UsageError(
            f"A region cannot have {len(values)} candidates.",
            hint=f"The rule for ties, which is the authors', is for {CANDIDATES} at most.",
        )
    return values


def _ordered(ratings: Sequence[float]) -> list[tuple[int, int]]:
    """The pairs of candidates that a rater rates unequally."""
    return [(a, b) for a, b in combinations(range(len(ratings)), 2) if ratings[a] != ratings[b]]


def _noise() -> _Array:
    """What the authors add to scores, so that ties are broken in the same way for every model."""
    import numpy as np

    return np.random.RandomState(_NOISE_SEED).random_sample(CANDIDATES) / 1e9


def _finite(scores: Scores, *, dimensions: int) -> _Array:
    """Scores as an array of so many dimensions.

    Raises:
        UsageError: one is not finite, or there are other dimensions.
    """
    values = finite_array(scores)
    if values.ndim != dimensions:
        raise UsageError(
            f"Scores have {values.ndim} dimensions, not {dimensions}.",
            hint="Give one row of scores." if dimensions == 1 else "Give rows and columns of scores.",
        )
    return values
