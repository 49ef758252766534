"""Which contests are hard: χ² with its controls, dates, agreement of runs, from run folders alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from askance.errors import UsageError
from askance.evals import Run, Sample, evaluate
from askance.evals.newyorker import contest_difficulty
from askance.evals.newyorker.contest_difficulty import TASK
from tests.evals.newyorker.matching_runs import CONTESTS, ITEMS, Matching, Ranking, by_contest, run


def test_items_are_balanced_as_those_of_the_authors() -> None:
    options = [text for each in ITEMS for text in each.inputs["options"]]

    assert len(ITEMS) == 3 * 30 + 6 * 10
    assert {options.count(text) for text in options} == {5}
    assert {each.inputs["options"][each.target["true"][0] - 1] for each in ITEMS} == {*options}


def test_errors_that_cluster_by_contest_are_found_and_the_controls_show_nothing() -> None:
    right = by_contest(1)
    (found,) = contest_difficulty(run("a", right)).runs

    table = [
        [
            sum(1 for each, ok in zip(ITEMS, right, strict=True) if each.tags["contest"] == contest and ok is hit)
            for hit in (True, False)
        ]
        for contest in range(1, CONTESTS + 1)
    ]
    expected = stats.chi2_contingency(table, correction=False)
    assert found.contests.statistic == pytest.approx(expected.statistic)
    assert found.contests.p == pytest.approx(expected.pvalue)
    assert (found.contests.rows, found.contests.permutation_p) == (40, pytest.approx(1 / 2001, abs=1 / 150))
    assert (found.folds.rows, found.distractors.rows) == (5, 150)
    assert found.folds.permutation_p is not None
    assert found.distractors.permutation_p is not None
    assert min(found.folds.permutation_p, found.distractors.permutation_p) > 0.05
    assert (found.samples, found.right, found.unanswered) == (150, sum(map(bool, right)), 0)


def test_errors_of_single_samples_do_not_cluster() -> None:
    (found,) = contest_difficulty(run("a", by_contest(2, spread=False))).runs

    assert found.contests.permutation_p is not None
    assert found.contests.permutation_p > 0.05


def test_distractors_that_mislead_are_found() -> None:
    bad = {f"caption {contest}.0" for contest in range(1, CONTESTS + 1, 3)}
    right = [
        not any(text in bad for number, text in enumerate(each.inputs["options"], 1) if [number] != each.target["true"])
        for each in ITEMS
    ]
    (found,) = contest_difficulty(run("a", right)).runs

    assert found.distractors.permutation_p == pytest.approx(1 / 2001, abs=1 / 150)


def test_later_contests_that_are_easier_are_found() -> None:
    right = [each.tags["contest"] > 20 or each.id.endswith("-0") for each in ITEMS]
    (found,) = contest_difficulty(run("a", right)).runs

    accuracies = [1.0 if contest > 20 else 1 / (6 if contest % 4 == 0 else 3) for contest in range(1, CONTESTS + 1)]
    expected = stats.spearmanr(range(1, CONTESTS + 1), accuracies)
    assert (found.date.rho, found.date.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert found.date.rho is not None
    assert found.date.rho > 0.8


def test_two_runs_are_held_against_each_other() -> None:
    one, other = by_contest(3), by_contest(4)
    found = contest_difficulty(run("a", one), run("b", other))
    (pair,) = found.pairs

    both = sum(a is True and b is True for a, b in zip(one, other, strict=True))
    neither = sum(a is False and b is False for a, b in zip(one, other, strict=True))
    assert (pair.samples, pair.same, pair.same_right, pair.unlike) == (150, both + neither, both, 0)
    assert (pair.errors.both_right, pair.errors.both_wrong) == (both, neither)
    assert pair.errors.share == pytest.approx(1 - neither / one.count(False))
    assert pair.errors.expected == pytest.approx(other.count(True) / 150)
    assert pair.errors_of_b.share == pytest.approx(1 - neither / other.count(False))
    assert [each.name for each in found.runs] == ["a", "b"]
    one_by_contest, other_by_contest = (
        [
            float(np.mean([bool(ok) for each, ok in zip(ITEMS, right, strict=True) if each.tags["contest"] == contest]))
            for contest in range(1, CONTESTS + 1)
        ]
        for right in (one, other)
    )
    assert pair.contests.rho == pytest.approx(stats.spearmanr(one_by_contest, other_by_contest).statistic)


def test_the_hardest_and_easiest_contests_are_listed() -> None:
    right = [each.tags["contest"] not in {3, 8, 12} for each in ITEMS]
    half = [each.tags["contest"] != 8 for each in ITEMS]
    found = contest_difficulty(run("a", right), run("b", half))

    assert [each.contest for each in found.contests[:4]] == [8, 12, 3, 4]
    assert (found.contests[0].right, found.contests[0].samples, found.contests[0].accuracy) == ((0, 0), (6, 6), 0.0)
    assert found.contests[1].accuracy == 0.5
    assert (len(found.hard), len(found.easy)) == (10, 10)
    assert [each.contest for each in found.easy[:3]] == [4, 16, 20]


def test_samples_without_an_answer_count_as_the_run_says() -> None:
    right = [None if place % 5 == 0 else True for place in range(150)]
    wrong = run("a", right)
    left_out = Run.open(evaluate(Matching(right=right), out="b", convention="answered").path)

    (found,) = contest_difficulty(wrong).runs
    assert (found.samples, found.right, found.unanswered) == (150, 120, 30)
    (found,) = contest_difficulty(left_out).runs
    assert (found.samples, found.right, found.unanswered) == (120, 120, 30)
    assert (found.contests.statistic, found.contests.permutation_p) == (None, None)


def test_runs_over_parts_of_the_data_share_what_they_share() -> None:
    found = contest_difficulty(run("a", by_contest(1)), run("b", by_contest(2), skip=30))

    assert [each.samples for each in found.runs] == [150, 120]
    assert (found.pairs[0].samples, len(found.contests)) == (120, 32)
    assert found.runs[1].folds.rows == 4


def test_what_cannot_be_looked_into_is_said() -> None:
    right: list[bool | None] = [True] * 150
    one = run("a", right)
    with pytest.raises(
        UsageError, match=r"^There is no run to look into\. Name the folder of a run of newyorker/matching"
    ):
        contest_difficulty()
    with pytest.raises(
        UsageError, match=r"^The run 'b' is of 'newyorker/ranking', and only matching .* Name runs of newyo"
    ):
        contest_difficulty(one, run("b", right, Ranking))
    with pytest.raises(
        UsageError, match=r"^The sample '001-0' does not say of which contest it is\. Its tag `contest`"
    ):
        contest_difficulty(run("c", right, tagged=False))
    with pytest.raises(UsageError, match=r"^The run 'a' is named twice\. Name each run once"):
        contest_difficulty(one, one)
    with pytest.raises(UsageError, match=r"^The run 'd' has no samples that count\."):
        contest_difficulty(Run.open(evaluate(Matching(right=[None] * 150), out="d", convention="answered").path))
    (Path("a") / "scores.jsonl").unlink()
    with pytest.raises(
        UsageError, match=r"its answers have no scores yet\. Finish it by the command that began it, or sc"
    ):
        contest_difficulty(replace(Run.open("a"), finished=None))


def test_runs_without_a_sample_in_common_are_refused() -> None:
    class Half(Matching):
        """The first items."""

        name = TASK

        def samples(self) -> Sequence[Sample]:
            """Those that the other run skips."""
            return ITEMS[:30]

    with pytest.raises(
        UsageError, match=r"^The runs 'a' and 'b' have no sample in common\. Run all over the same data"
    ):
        contest_difficulty(run("a", by_contest(1), Half), run("b", by_contest(1), skip=30))
