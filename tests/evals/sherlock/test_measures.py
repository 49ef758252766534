"""Ranks, assignments and orders beside plain definitions of them, and what equal scores come to."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest
from scipy.stats import rankdata

from askance.errors import UsageError
from askance.evals.sherlock.measures import (
    assignment_accuracy,
    pairwise_accuracy,
    proposal_accuracy,
    retrieval_rank,
    right_proposals,
    tied_pairs,
)

GENERATOR = np.random.default_rng(3)


def names(count: int) -> list[str]:
    return [f"instance {number}" for number in range(count)]


# --- retrieval ---


@pytest.mark.parametrize("row", [GENERATOR.normal(size=40), GENERATOR.integers(0, 4, size=40).astype(float)])
def test_a_rank_is_that_of_scipy_where_ties_are_averaged(row: np.ndarray) -> None:
    assert [retrieval_rank(row, place) for place in range(40)] == rankdata(-row).tolist()


def test_twins_at_the_top_are_not_ranked_first() -> None:
    assert retrieval_rank([0.9, 0.9, 0.1], 0) == 1.5
    assert retrieval_rank([0.0] * 983, 17) == 492.0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_score_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match="is not a finite number"):
        retrieval_rank([0.0, value], 1)


def test_a_rank_needs_a_row_and_a_place_in_it() -> None:
    with pytest.raises(UsageError, match="There is no score 3 among 3"):
        retrieval_rank([0.0, 1.0, 2.0], 3)
    with pytest.raises(UsageError, match="Scores have 2 dimensions, not 1"):
        retrieval_rank([[0.0, 1.0]], 0)


# --- localization ---


def test_the_assignment_is_the_best_of_all() -> None:
    for _ in range(20):
        scores = GENERATOR.normal(size=(5, 5))
        best = max(permutations(range(5)), key=lambda order: sum(scores[row, order[row]] for row in range(5)))
        accuracy, ties = assignment_accuracy(scores, names(5))
        assert accuracy == np.mean([row == column for row, column in enumerate(best)])
        assert ties == 0.0


def test_one_region_cannot_take_what_another_needs_more() -> None:
    assert assignment_accuracy([[2.0, 3.0], [0.0, 2.5]], names(2)) == (1.0, 0.0)


def test_constant_scores_are_at_chance_and_all_tied() -> None:
    drawn = [assignment_accuracy(np.full((4, 4), 1e6), names(4), seed=seed) for seed in range(2000)]
    accuracies, ties = zip(*drawn, strict=True)
    assert np.mean(accuracies) == pytest.approx(1 / 4, abs=0.02)
    assert {*ties} == {1.0}


def test_a_draw_belongs_to_a_pair_and_not_to_its_place() -> None:
    count = 6
    for seed in range(20):
        turned = Random(seed).sample(names(count), count)
        scores = np.zeros((count, count))
        assert assignment_accuracy(scores, names(count), seed=seed) == assignment_accuracy(scores, turned, seed=seed)


def test_draws_decide_nothing_but_ties() -> None:
    scores = np.zeros((8, 8))
    scores[np.arange(8), np.arange(8)] = 1e-6
    scores[0, 1] = 1.0
    accuracy, ties = assignment_accuracy(scores, names(8))
    assert accuracy == 6 / 8
    assert ties == 55 / 64


def test_an_outlier_lets_no_draw_decide_what_scores_do() -> None:
    """A label without a log-probability may have a score that is far below all others."""
    scores = np.zeros((8, 8))
    scores[np.arange(8), np.arange(8)] = 0.01
    scores[0, 1] = -1e9
    for seed in range(20):
        assert assignment_accuracy(scores, names(8), seed=seed)[0] == 1.0


def test_ties_beside_an_outlier_are_still_drawn() -> None:
    scores = np.zeros((4, 4))
    scores[0, 0] = -1e12
    drawn = [assignment_accuracy(scores, names(4), seed=seed)[0] for seed in range(2000)]
    assert np.mean(drawn) == pytest.approx(3 * (2 / 9) / 4, abs=0.02)


def test_errors_of_rounding_leave_ties_to_the_draws() -> None:
    scores = np.full((4, 4), 0.3)
    scores[np.arange(4), np.arange(4)] = 0.1 + 0.2
    drawn = [assignment_accuracy(scores, names(4), seed=seed)[0] for seed in range(2000)]
    assert np.mean(drawn) == pytest.approx(1 / 4, abs=0.02)


def test_an_assignment_needs_one_score_for_each_pair() -> None:
    with pytest.raises(UsageError, match="2 regions do not have 3 × 2 scores"):
        assignment_accuracy(np.zeros((3, 2)), names(2))
    with pytest.raises(UsageError, match="Two regions of a picture have the same id"):
        assignment_accuracy(np.zeros((2, 2)), ["a", "a"])


def test_a_proposal_is_right_above_a_half_and_for_any_box_of_the_region() -> None:
    region = [(0, 0, 10, 10), (50, 50, 60, 60)]
    proposals = [(0, 0, 10, 5), (0, 0, 10, 6), (50, 50, 60, 59), (20, 20, 30, 30)]
    assert right_proposals(proposals, [region, [(20, 20, 30, 30)]]) == [[1, 2], [3]]


def test_the_first_of_equal_proposals_is_chosen() -> None:
    right = [[0], [1]]
    assert proposal_accuracy(np.zeros((3, 2)), right) == 0.5
    assert proposal_accuracy([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], right) == 0.5
    assert proposal_accuracy([[1.0, 0.0], [0.0, 1.0]], [[0], []]) == 0.5


def test_proposals_need_a_score_for_each_inference() -> None:
    with pytest.raises(UsageError, match=r"Scores of the shape \(2, 2\) do not go with the right proposals of 1 inf"):
        proposal_accuracy(np.zeros((2, 2)), [[0]])


# --- comparison ---


def test_chance_is_nothing_and_the_best_is_one() -> None:
    assert pairwise_accuracy([3.0, 2.0, 1.0], [3, 2, 1]) == 1.0
    assert pairwise_accuracy([1.0, 2.0, 3.0], [3, 2, 1]) == -1.0
    assert pairwise_accuracy([1.0, 3.0, 2.0], [1, 2, 3]) == pytest.approx((2 / 3 - 0.5) * 2)


def test_pairs_that_are_rated_equally_do_not_count() -> None:
    assert pairwise_accuracy([5.0, 1.0, 0.0], [2, 2, 1]) == 1.0
    assert pairwise_accuracy([5.0, 1.0], [2, 2]) == 0.0


def test_ties_are_broken_by_the_same_ten_draws_every_time() -> None:
    drawn = (0.417, 0.720, 0.000, 0.302, 0.147, 0.092, 0.186, 0.346, 0.397, 0.539)
    for a in range(10):
        ratings = [1] * 10
        ratings[a] = 2
        above = [drawn[a] > drawn[other] for other in range(10) if other != a]
        assert pairwise_accuracy([0.0] * 10, ratings) == pytest.approx((np.mean(above) - 0.5) * 2)
        assert tied_pairs([0.0] * 10, ratings) == 1.0


def test_probabilities_drown_in_the_draws_and_log_odds_do_not() -> None:
    assert pairwise_accuracy([2e-12, 1e-12], [2, 1]) == -1.0
    assert pairwise_accuracy(np.log([2e-12, 1e-12]), [2, 1]) == 1.0


def test_the_share_of_ties_is_of_pairs_that_count() -> None:
    assert tied_pairs([1.0, 1.0, 2.0], [1, 2, 3]) == pytest.approx(1 / 3)
    assert tied_pairs([1.0, 1.0, 2.0], [1, 1, 3]) == 0.0
    assert tied_pairs([1.0], [1]) == 0.0


def test_more_candidates_than_there_are_draws_are_refused() -> None:
    with pytest.raises(UsageError, match="A region cannot have 11 candidates"):
        pairwise_accuracy([0.0] * 11, [1] * 11)
    with pytest.raises(UsageError, match="2 scores do not go with 3 ratings"):
        pairwise_accuracy([0.0, 1.0], [1, 2, 3])
