"""In how many categories one run is better than another."""

from __future__ import annotations

from pathlib import Path

from askance.evals import Run, compare, evaluate, find_task
from askance.evals.analysis.category_wins import category_wins
from tests.evals.whoops import files, worlds

NAMES = ("one", "two")
ROWS = [
    ("art", (1.0, 0.0)),
    ("art", (0.0, 0.0)),
    ("rules", (0.0, 1.0)),
    ("food", (1.0, 1.0)),
    ("food", (0.0, 0.0)),
    (None, (1.0, 0.0)),
]


def test_categories_are_won_by_their_means() -> None:
    wins = category_wins(ROWS, names=NAMES, metric="accuracy", higher=True)

    assert wins is not None
    assert (wins.better, wins.worse, wins.alike) == (("art",), ("rules",), ("food",))
    assert wins.sentence == "By category and accuracy: one better in 33 % of 3 (art), two in 33 %, alike in 33 %."


def test_where_less_is_better_the_other_wins() -> None:
    wins = category_wins(ROWS, names=NAMES, metric="errors", higher=False)

    assert wins is not None
    assert (wins.better, wins.worse) == (("rules",), ("art",))


def test_one_category_is_no_comparison() -> None:
    assert category_wins(ROWS[:2], names=NAMES, metric="accuracy", higher=True) is None
    assert category_wins([(None, (1.0, 0.0))] * 3, names=NAMES, metric="accuracy", higher=True) is None


def test_a_comparison_of_two_runs_counts_the_categories_of_their_samples(tmp_path: Path) -> None:
    data = files.first_release(tmp_path / "data")

    def run(name: str, answer: str) -> Run:
        model = worlds.model(answer_from_picture={"answer": answer})
        return evaluate(find_task("whoops/vqa")(data=data, vlm=model), out=tmp_path / name)

    comparison = compare(run("a", "two"), run("b", "a brick cup"))

    wins = comparison.categories
    assert wins is not None
    assert wins.better == tuple(sorted({*files.CATEGORIES})), "half of the answers are two, and one is a brick cup"
    assert comparison.form()["categories"]["better"] == wins.better
