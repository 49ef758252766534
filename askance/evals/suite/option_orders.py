"""Position bias: the same options in a second order, and how much that changes.

Both orders of an ad are samples of one group. A score carries which pair it belongs to, which order it is of, and a
number that stands for what was answered, so that the figures need no more than the scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.errors import UsageError
from askance.evals.metric import Metric, mean
from askance.evals.suite.shuffle import ORDERS, small_lot

if TYPE_CHECKING:
    from askance.evals.metric import Matrix
    from askance.evals.sample import Sample

Orders: TypeAlias = Literal[1, 2]
"""How many orders options are shown in."""

PAIR, ORDER, ANSWER, PLACE = "pair", "order", "answer", "place"
"""Columns of a score."""
ANY = -1.0
"""Stands for the answer that a non-answer might have been; NaN stands for one that equals none."""

PLACES = mean(
    PLACE,
    name="place of the first answer",
    better="neither",
    summary="0: always the first of the options as they are listed, 1: always the last; 50 on average without a bias",
)


def sample_ids(key: str, *, orders: int) -> dict[int, str]:
    """Ids of an ad's samples by order.

    Raises:
        UsageError: neither one order nor two.
    """
    if orders not in ORDERS:
        raise UsageError(f"Options cannot be shown in {orders} orders.", hint="Give 1 or 2.")
    return {order: key if order == 1 else f"{key}#{order}" for order in range(1, orders + 1)}


def order_values(sample: Sample, chosen: Sequence[str] | float) -> Mapping[str, float]:
    """The columns of a score that tell of order: where there are two, its pair, its order and its answer.

    Args:
        sample: whose `order` is among its tags where there are two.
        chosen: the texts of the chosen options, which count as a set; or a number in their place.
    """
    order = sample.tags.get("order")
    if order is None:
        return {}
    answer = chosen if isinstance(chosen, (int, float)) else small_lot("answer", *sorted(chosen))
    return {PAIR: small_lot("pair", sample.cluster), ORDER: float(order), ANSWER: answer}


def order_metrics(headline: str) -> tuple[Metric, ...]:
    """How much the answers and the figure `headline` depend on order.

    Args:
        headline: the column of the score that stands for the task.
    """
    return (
        Metric(
            name="same answer in both orders",
            columns=(PAIR, ORDER, ANSWER),
            statistic=same_share,
            summary="share of ads whose two answers choose the same options",
        ),
        Metric(
            name="difference between orders",
            columns=(PAIR, ORDER, headline),
            statistic=mean_difference,
            better="lower",
            summary=f"mean over ads of how far the two orders' {headline} are apart",
        ),
    )


def same_share(matrix: Matrix) -> float:
    """Share of pairs with equal answers, of a matrix with pair, order and answer; NaN without pairs."""
    first, second = paired(matrix)
    if not len(first):
        return math.nan
    return float(((first == second) | (first == ANY) | (second == ANY)).mean())


def mean_difference(matrix: Matrix) -> float:
    """Mean absolute difference over pairs, of a matrix with pair, order and score; NaN without pairs."""
    first, second = paired(matrix)
    return float(abs(first - second).mean()) if len(first) else math.nan


def paired(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """The last column in the first order and in the second, for the rows of the first that have a second.

    A pair that is drawn twice stands there twice.
    """
    one, two = (matrix[matrix[:, 1] == order] for order in ORDERS)
    two = two[two[:, 0].argsort(kind="stable")]
    places = two[:, 0].searchsorted(one[:, 0])
    within = places < len(two)
    one, places = one[within], places[within]
    same = two[places, 0] == one[:, 0]
    return one[same, 2], two[places[same], 2]
