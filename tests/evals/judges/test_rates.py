from __future__ import annotations

from typing import Any

import pytest

from askance.agents import PositionVerdict, Preference
from askance.agents.judge import Position
from askance.errors import UsageError
from askance.evals.judges import preference_figures


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
