from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest

from askance.agents import PositionVerdict, Preference, PreferenceValue
from askance.agents.judge import Position
from askance.errors import UsageError
from askance.evals.judges import PreferenceAgreement, preference_figures
from tests.judges import gamma

about: Any = pytest.approx


def said(a_first: Position | None, b_first: Position | None) -> Preference:
    both: list[PositionVerdict] = [
        PositionVerdict(value=place) if place else PositionVerdict(outcome="invalid", reason="prose")
        for place in (a_first, b_first)
    ]
    return Preference(a_first=both[0], b_first=both[1])


PREFERENCES = [
    said("first", "second"),
    said("first", "second"),
    said("second", "first"),
    said("first", "first"),
    said("same", "first"),
    said(None, "first"),
]


def test_wins_ties_and_flips_are_counted() -> None:
    figures = preference_figures(PREFERENCES)

    shares = [each.value for each in (figures.a, figures.b, figures.tie, figures.flip, figures.unscored)]
    assert shares == pytest.approx([2 / 5, 1 / 5, 2 / 5, 1 / 5, 1 / 6])
    assert [figures.flip.n, figures.unscored.n] == [5, 6]


def test_swapping_all_swaps_the_wins_alone() -> None:
    figures, turned = preference_figures(PREFERENCES), preference_figures([each.swapped for each in PREFERENCES])

    assert (turned.a, turned.b, turned.tie, turned.flip) == (figures.b, figures.a, figures.tie, figures.flip)


def test_intervals_go_by_clusters() -> None:
    clustered: Any = preference_figures(PREFERENCES, ["x", "x", "x", "y", "y", "y"]).a

    assert (clustered.n_clusters, clustered.interval.method) == (2, "cluster bootstrap")
    assert preference_figures([]).a.state == "no data"
    with pytest.raises(UsageError, match="clusters are given for"):
        preference_figures(PREFERENCES, ["x"])


def test_p_is_that_of_a_fair_coin_and_of_whole_groups() -> None:
    wins = [said("first", "second")] * 6

    assert preference_figures(wins).p == about(2 / 2**6)
    assert preference_figures(wins, [1, 1, 2, 2, 3, 3]).p == about(2 / 2**3)
    assert preference_figures([*wins, said("same", "same")]).p == about(2 / 2**6)
    assert preference_figures([said("first", "first")]).p is None


def test_gamma_is_that_of_its_definition() -> None:
    source = random.Random(3)
    for raters in (2, 3, 5):
        choices: list[PreferenceValue | None] = ["a", "a", "a", "b", "tie", None]
        votes = [source.choices(choices, k=raters) for _ in range(130)]

        found = PreferenceAgreement.of(votes, range(len(votes)), seed=0)

        assert found.ac1.value == about(gamma(votes))
        same = [[x == y for x, y in combinations([v for v in row if v in {"a", "b"}], 2)] for row in votes]
        assert found.pairwise.value == about(sum(sum(row) / len(row) for row in same if row) / sum(map(bool, same)))


def test_gamma_of_a_case_by_hand() -> None:
    """Three raters, four items: 3:0, 2:1, 3:0 for b, 2:1; so P = (1 + 1/3 + 1 + 1/3)/4, and the share of a is 7/12."""
    votes: list[list[PreferenceValue | None]] = [["a", "a", "a"], ["a", "a", "b"], ["b", "b", "b"], ["a", "b", "a"]]
    chance = 2 * (7 / 12) * (5 / 12)

    found = PreferenceAgreement.of(votes, "wxyz", seed=0)

    assert found.ac1.value == about((2 / 3 - chance) / (1 - chance))
    assert found.ac1.interval is not None
    assert found.ac1.items == 4
