"""How votes of a judge stand to what people say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from askance.agents import VerdictValue
from askance.evals.judges import JudgedPair
from askance.evals.judges.verdicts import Reliability, reliability_of, reliability_summary
from askance.statistics import wilson


def case(
    number: int, truth: bool | None, verdicts: Sequence[VerdictValue | None], members: Sequence[VerdictValue] = ()
) -> JudgedPair:
    return JudgedPair(
        group=f"g{number}",
        id="",
        candidate=str(number),
        truth=truth,
        verdicts=tuple(verdicts),
        members=tuple(members),
    )


DRAWN = [
    case(0, True, ["true", "true"]),
    case(1, True, ["true", None]),
    case(2, False, ["true", "unclear"]),
    case(3, False, ["false", "unclear"]),
    case(4, None, ["true", "true"]),
    case(5, True, [None, None]),
]


def test_pairs_are_put_together_by_the_share_of_draws_that_say_true() -> None:
    assert reliability_of(DRAWN) == (
        Reliability(said=0.0, pairs=1, value=0.0, interval=wilson(0, 1)),
        Reliability(said=0.5, pairs=1, value=0.0, interval=wilson(0, 1)),
        Reliability(said=1.0, pairs=2, value=1.0, interval=wilson(2, 2)),
    )


def test_members_of_a_panel_vote_where_there_are_some() -> None:
    cases = [case(0, True, ["true", "true"], ["true", "false"]), case(1, False, ["false"], ["false", "false"])]

    assert [(each.said, each.value) for each in reliability_of(cases)] == [(0.0, 0.0), (0.5, 1.0)]
    assert reliability_summary(cases, seed=0)["reliability"]["by"] == "members"


@pytest.mark.parametrize("cases", [[], [case(0, True, ["true"])]], ids=["no pairs", "one draw"])
def test_one_vote_each_is_no_curve(cases: list[JudgedPair]) -> None:
    assert (reliability_of(cases), reliability_summary(cases, seed=0)) == ((), {})
