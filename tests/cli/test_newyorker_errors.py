"""`askance newyorker errors`: which contests are hard, and whether two runs err on the same samples."""

from __future__ import annotations

import pytest

from tests.cli.command import Command
from tests.evals.newyorker.matching_runs import Ranking, by_contest, run


@pytest.fixture(autouse=True, scope="module")
def draws_are_few(few_draws: None) -> None:
    """What the command prints is tested here, and not the statistics behind it."""


def test_the_command_prints_tables_sentences_and_lists(askance: Command) -> None:
    run("a", by_contest(3))
    run("b", by_contest(4))
    done = askance("newyorker", "errors", "a", "b", "--show", "2")

    assert done.code == 0, done.err
    assert "A  a: " in done.out
    for words in (
        "p by permutation",
        "Spearman's rho",
        "same answer, %",
        "were errors independent, in",
        "Hardest of 40 contests",
    ):
        assert words in done.out
    assert done.out.count(" of 3") + done.out.count(" of 6") == 8
    assert max(map(len, done.out.splitlines())) < 200


def test_the_command_gives_json(askance: Command) -> None:
    right = by_contest(3)
    run("a", right)
    (found,) = askance("newyorker", "errors", "a", "--json").lines

    assert found["runs"][0]["right"] == sum(map(bool, right))
    assert found["runs"][0]["contests"]["freedom"] == 39
    assert (found["pairs"], len(found["hard"]), len(found["contests"])) == ([], 10, 40)
    assert {"contest", "right", "samples", "accuracy"} == {*found["contests"][0]}


def test_the_command_refuses_other_runs_with_a_way_out(askance: Command) -> None:
    run("a", [True] * 150, Ranking)
    done = askance("newyorker", "errors", "a")

    assert done.code == 2
    assert "only matching has several samples a contest" in done.err
    assert "askance compare" in done.err
