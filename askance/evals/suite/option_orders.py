"""Position bias: the same options shown in a second order, and how much the answers change.

The two orders of an image are two samples of one group. Their scores hold the pair, the order, and a number that stands
for the answer, so that the figures can be made from the scores alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from typing_extensions import override

from askance.errors import UsageError
from askance.evals.metric import Metric, mean
from askance.evals.suite.shuffle import ORDERS, stable_number

if TYPE_CHECKING:
    from askance.evals.metric import Matrix
    from askance.evals.sample import Sample, Score

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


def question_id(sample: Sample) -> str:
    """The id of a sample's question, which is that of its first order."""
    return sample.id.removesuffix(f"#{sample.tags.get('order')}")


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
        PairMetric(
            name="same answer in both orders",
            columns=(PAIR, ORDER, ANSWER),
            of_pair=same_answer,
            summary="share of questions whose two answers choose the same options",
        ),
        PairMetric(
            name="difference between orders",
            columns=(PAIR, ORDER, headline),
            of_pair=difference,
            better="lower",
            summary=f"mean over questions of how far the two orders' {headline} are apart",
        ),
    )


def same_answer(first: Matrix, second: Matrix) -> Matrix:
    """1 where two answers are equal, or one equals every other; else 0."""
    return ((first == second) | (first == ANY) | (second == ANY)).astype(float)


def difference(first: Matrix, second: Matrix) -> Matrix:
    """How far two values are apart."""
    return abs(first - second)


def both_right(first: Matrix, second: Matrix) -> Matrix:
    """1 where both halves are right, 0 where one is wrong."""
    return first * second


def _mean_of_pairs(sums: Sequence[float]) -> float:
    return sums[0] / sums[1] if sums[1] else math.nan


@dataclass(frozen=True, kw_only=True)
class PairMetric(Metric):
    """A mean over pairs of samples, such as the two orders of a question; a half without the other does not count.

    Its columns are the pair, the half (1 or 2) and the value of a sample. The halves of a pair are in one cluster, so
    pairs are made once, before clusters are drawn.
    """

    of_pair: Callable[[Matrix, Matrix], Matrix]
    """From the values of the first halves and those of the second, shape (pairs,), to what is averaged."""
    of_sums: Callable[[Sequence[float]], float] | None = _mean_of_pairs

    @override
    def matrix(self, scores: Sequence[Score]) -> Matrix:
        """A row for each sample: what its pair gives and 1 if it is the first half of a whole pair, else 0 and 0."""
        rows = super().matrix(scores)
        one, two = ((rows[:, 1] == half).nonzero()[0] for half in ORDERS)
        two = two[rows[two, 0].argsort(kind="stable")]
        places = rows[two, 0].searchsorted(rows[one, 0])
        within = places < len(two)
        one, two = one[within], two[places[within]]
        whole = rows[one, 0] == rows[two, 0]
        one, two = one[whole], two[whole]
        values = rows[:, :2] * 0
        values[one, 0] = self.of_pair(rows[one, 2], rows[two, 2])
        values[one, 1] = 1
        return values
