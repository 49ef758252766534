"""Two runs side by side: what changed, on which samples, and the page of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.evals import Run, compare
from askance.evals.report import Difference, build_difference, difference_page
from tests.evals.pittads import worlds
from tests.evals.report.runs import Parsed, chain_run, plain_run


def difference_of(a: Run, b: Run) -> Difference:
    return build_difference(a, b, compare(a, b, task=None))


@pytest.fixture
def chains(tmp_path: Path) -> tuple[Run, Run]:
    """Two runs of the chain: the second narrates otherwise and chooses badly."""
    data = worlds.world(tmp_path / "data")
    worse = worlds.choosing(lambda text: not worlds.is_wrong(text))
    return (
        chain_run(tmp_path / "a", data),
        chain_run(tmp_path / "b", data, narration={"description": "ANOTHER VIEW."}, choose_action_reasons=worse),
    )


def test_pairs_are_better_worse_or_the_same(chains: tuple[Run, Run]) -> None:
    difference = difference_of(*chains)

    assert [row.change for row in difference.rows] == ["better"] * 3
    assert difference.names == ("a", "b")
    assert difference.metrics[0].comparison.discordant == (3, 0)
    assert [row.change for row in difference_of(chains[0], chains[0]).rows] == ["same"] * 3


def test_the_page_says_verdict_counts_and_what_differs(chains: tuple[Run, Run]) -> None:
    text = Parsed(difference_page(difference_of(*chains))).text

    for words in (
        "a against b",
        "a and b are tied on mean of five at this size: 100.00 % against 0.00 %",
        "adjusted for 9 comparisons",
        "A better 3 B better 0 Other answer 0 Same answer 0",
        "3 samples in both, 0 in A alone, 0 in B alone",
        "The two are of one configuration.",
    ):
        assert words in text


def test_both_sides_of_a_pair_are_there_with_their_calls(chains: tuple[Run, Run]) -> None:
    parsed = Parsed(difference_page(difference_of(*chains)))
    block = parsed.data("d-0-0")

    pair = block["details"][0]
    assert pair["a"]["verbalization"]["narration"] == "NARRATED."
    assert pair["b"]["verbalization"]["narration"] == "ANOTHER VIEW."
    assert {key for run in chains for answer in run.answers for key in answer.keys} == block["calls"].keys()
    row = parsed.data("index")["runs"][0]["rows"][0]
    assert (row["result"], row["worth"], row["figures"], row["unlike"]) == ("better", 1.0, "100.0 → 0.0", False)


def test_another_configuration_and_other_samples_are_shown(tmp_path: Path) -> None:
    a, b = (
        plain_run(tmp_path / name, count, shift=shift, label=name)
        for name, count, shift in (("a", 12, 0), ("b", 10, 1))
    )
    difference = build_difference(a, b, ())

    assert [row.change for row in difference.rows[:5]] == ["same", "better", "same", "other", "worse"]
    assert (difference.pairing.only_a, difference.pairing.unlike) == (2, 1)
    assert {place for place, _, _ in difference.configuration} >= {"options.shift", "samples.count"}
    assert [row.unlike for row in difference.rows].count(True) == 1
    assert "No figure of the task" in Parsed(difference_page(difference)).text
