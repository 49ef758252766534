"""Position bias: the same options shown in a second order, and how much the answers change.

The two orders of an image are two samples of one group. Their scores hold the pair, the order, and a number that stands
for the answer, so that the figures can be made from the scores alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.errors import UsageError
from askance.evals.metric import Metric, mean
from askance.evals.suite.shuffle import ORDERS, stable_number

if TYPE_CHECKING:
    from askance.evals.metric import Matrix
    from askance.evals.sample import Sample

Orders: TypeAlias = Literal[1, 2]
"""In how many orders options are shown."""

PAIR, ORDER, ANSWER, PLACE = "pair", "order", "answer", "place"
"""Columns of a score."""
ANY = -1.0
"""Stands for an answer that equals every other; NaN stands for one that equals no other."""

PLACES = mean(
    PLACE,
    name="place of the first answer",
    better="neither",
    summary="0: always the first of the options as they are listed, 1: always the last; 50 on average without a bias",
)


def sample_ids(key: str, *, orders: int) -> dict[int, str]:
    """Ids of the samples of an image, by order.

    Raises:
        UsageError: neither one order nor two.
    """
    if orders not in ORDERS:
        raise UsageError(f"Options cannot be shown in {orders} orders.", hint="Give 1 or 2.")
    return {order: key if order == 1 else f"{key}#{order}" for order in range(1, orders + 1)}


def order_values(sample: Sample, chosen: Sequence[str] | float, *, pair: str | None = None) -> Mapping[str, float]:
    """The columns of a score for position bias, if options are shown in two orders: pair, order and answer.

    Args:
        sample: has the tag `order` if there are two orders.
        chosen: the texts of the chosen options, as a set; or `ANY` or NaN.
        pair: tells the two orders of one question from other questions; by default the cluster.
    """
    order = sample.tags.get("order")
    if order is None:
        return {}
    answer = chosen if isinstance(chosen, (int, float)) else stable_number("answer", *sorted(chosen))
    return {PAIR: stable_number("pair", pair or sample.cluster), ORDER: float(order), ANSWER: answer}


def order_metrics(headline: str) -> tuple[Metric, ...]:
    """Metrics of how much the answers and the score depend on the order.

    Args:
        headline: the column of the task's first metric.
    """
    return (
        Metric(
            name="same answer in both orders",
            columns=(PAIR, ORDER, ANSWER),
            statistic=same_share,
            summary="share of questions whose two answers choose the same options",
        ),
        Metric(
            name="difference between orders",
            columns=(PAIR, ORDER, headline),
            statistic=mean_difference,
            better="lower",
            summary=f"mean over questions of how far the two orders' {headline} are apart",
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


def both_right(matrix: Matrix) -> float:
    """Share of pairs that are right in both halves, of a matrix of pair, half (1 or 2) and right; NaN without pairs."""
    first, second = paired(matrix)
    return float((first * second).mean()) if len(first) else math.nan


def paired(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """The last column of a matrix of pair, order and value: in the first order, and in the second, row by row.

    Rows without the other order are left out. A pair that the bootstrap drew twice is there twice.
    """
    one, two = (matrix[matrix[:, 1] == order] for order in ORDERS)
    two = two[two[:, 0].argsort(kind="stable")]
    places = two[:, 0].searchsorted(one[:, 0])
    within = places < len(two)
    one, places = one[within], places[within]
    same = two[places, 0] == one[:, 0]
    return one[same, 2], two[places[same], 2]
