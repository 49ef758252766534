"""Figures of pairs of samples: the two orders of a question, lost halves, and intervals of whole clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from askance.evals import Score
from askance.evals.metric import Scored, figure
from askance.evals.suite.option_orders import ANSWER, ANY, ORDER, PAIR, PairMetric, both_right, order_metrics
from askance.statistics import cluster_bootstrap

SAME, DIFFERENCE = order_metrics("accuracy")
BOTH = PairMetric(name="right in both orders", columns=(PAIR, ORDER, "accuracy"), of_pair=both_right)


def half(pair: float, order: int, accuracy: float, answer: float = 0.0) -> Score:
    return Score(values={PAIR: pair, ORDER: float(order), "accuracy": accuracy, ANSWER: answer})


def test_pairs_are_found_in_any_order_and_lost_halves_are_left_out() -> None:
    scores = [half(3, 2, 1), half(1, 1, 1), half(3, 1, 0.25), half(1, 2, 1), half(2, 1, 1), half(4, 2, 1)]

    assert BOTH.of(scores) == (1 + 0.25) / 2
    assert DIFFERENCE.of(scores) == (0 + 0.75) / 2
    assert BOTH.matrix(scores).tolist() == [[0, 0], [1, 1], [0.25, 1], [0, 0], [0, 0], [0, 0]]
    assert BOTH.of([half(2, 1, 1), half(4, 2, 1)]) is None


def test_an_answer_may_equal_every_other_or_none() -> None:
    answers = {1: (5.0, 5.0), 2: (5.0, 6.0), 3: (ANY, 6.0), 4: (5.0, ANY), 5: (float("nan"), float("nan"))}
    scores = [half(pair, order, 1, said[order - 1]) for pair, said in answers.items() for order in (1, 2)]

    assert SAME.of(scores) == 3 / 5


def test_its_interval_is_that_of_pairs_in_the_clusters_that_are_drawn() -> None:
    source = np.random.default_rng(2)
    rows: list[Scored] = []
    pairs: list[tuple[float, str]] = []
    for pair in range(60):
        first, second = (float(source.random() < 0.6) for _ in range(2))
        cluster = str(pair // 3)
        for order, value in ((1, first), (2, second)):
            found = half(pair, order, value)
            rows.append(Scored(cluster=cluster, score=found, if_wrong=found, if_right=found))
        pairs.append((first * second, cluster))

    made = figure(BOTH, rows, seed=5)
    values: Sequence[Any] = [value for value, _ in pairs]
    expected = cluster_bootstrap(lambda drawn: sum(drawn) / len(drawn), values, [name for _, name in pairs], seed=5)
    assert made.value == pytest.approx(np.mean(values))
    assert made.interval is not None
    assert expected is not None
    assert (made.interval.low, made.interval.high) == pytest.approx((expected.low, expected.high))
    assert (made.samples, made.clusters) == (120, 20)
