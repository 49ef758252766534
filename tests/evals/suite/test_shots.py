"""Few-shot: which rows are drawn as examples, what is refused, and what a task makes of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from askance.errors import BadData, UsageError
from askance.evals import Sample, Scorer, right_or_wrong
from askance.evals.solver import Solver
from askance.evals.suite import ShotPool, ShotsTask
from askance.evals.suite.shots import ShotsDraw
from askance.nodes import Example

ROWS: dict[str | int, list[str]] = {
    contest: [f"{contest}.{n}" for n in range(1, contest % 4 + 2)] for contest in range(1, 31)
}
POOL = ShotPool(ROWS, fold=2, tested=range(100, 140), noun="contest")


def contest(row: str) -> int:
    return int(row.partition(".")[0])


def test_each_example_is_a_row_of_another_group() -> None:
    for key in map(str, range(200)):
        drawn = POOL.draw(key, 100, count=5, seed=0)

        assert len({contest(row) for row in drawn}) == 5
        assert all(row in ROWS[contest(row)] for row in drawn)


def test_the_draws_are_even_over_groups_and_rows() -> None:
    drawn = [POOL.draw(str(key), 100, count=5, seed=0) for key in range(3000)]
    groups = Counter(contest(row) for rows in drawn for row in rows)
    of_three = Counter(row for rows in drawn for row in rows if contest(row) == 2)

    assert min(groups.values()) > 400
    assert max(groups.values()) < 600
    assert len(of_three) == 3
    assert max(of_three.values()) < 1.5 * min(of_three.values())


@given(st.permutations(list(ROWS)), st.integers(0, 5))
def test_neither_the_order_of_the_groups_nor_other_samples_matter(order: list[int], count: int) -> None:
    pool = ShotPool({each: ROWS[each] for each in order}, fold=2)

    assert pool.draw("a", 100, count=count, seed=3) == POOL.draw("a", 100, count=5, seed=3)[:count]


def test_seed_fold_and_sample_decide() -> None:
    draws = {
        pool.draw(key, 100, count=5, seed=seed)
        for pool in (POOL, ShotPool(ROWS, fold=3))
        for key in ("a", "b")
        for seed in (0, 1)
    }

    assert len(draws) == 8


def test_what_is_drawn_stays_the_same_from_version_to_version() -> None:
    drawn = POOL.draw("21125bb8787b4e7e82aa3b0a1cba1571", 100, count=5, seed=0)

    assert drawn == ("1.2", "13.2", "28.1", "12.1", "17.1")


# --- leaks ---


def test_a_pool_with_the_samples_own_group_is_refused() -> None:
    with pytest.raises(BadData, match=r"The examples of 'a' would be drawn from its own contest 7 too\.") as caught:
        POOL.draw("a", 7, count=5, seed=0)
    assert caught.value.hint == "Draw them from the training part of the same fold."
    with pytest.raises(BadData, match="its own contest 7"):
        POOL.draw_official({"a": 100, "b": 7}, count=5)


def test_a_pool_with_a_group_of_the_test_part_is_refused() -> None:
    with pytest.raises(
        BadData, match=r"The examples of fold 2 .* test part, which holds 2 contests of them, such as 30\."
    ):
        ShotPool(ROWS, fold=2, tested=[30, 4, 31], noun="contest")


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(BadData, match=r"31 examples cannot be drawn from 30 contests of fold 2\."):
        POOL.draw("a", 100, count=31, seed=0)
    with pytest.raises(BadData, match=r"The group 'b' has no rows to show\."):
        ShotPool({"a": ["x"], "b": []})


# --- the official drawing ---


def test_the_official_drawing_is_the_one_of_the_authors_script() -> None:
    samples = {f"item {n}": 100 + n % 40 for n in range(80)}

    assert POOL.draw_official(samples, count=5) == of_the_script([*samples], count=5)


def of_the_script(keys: list[str], *, count: int) -> dict[str, tuple[str, ...]]:
    """The same by NumPy's global generator, over rows and samples that are mappings, as the data has them."""
    by_contest = {each: [{"row": row} for row in rows] for each, rows in ROWS.items()}
    state: Any = np.random.get_state()
    try:
        np.random.seed(2)
        order: Any = [{"instance_id": key} for key in keys]
        contests = sorted(by_contest, key=int)
        np.random.shuffle(order)
        drawn: dict[str, tuple[str, ...]] = {}
        choose: Any = np.random.choice
        for each in order:
            places: list[Any] = [contests[place] for place in choose(len(contests), size=count, replace=False)]
            rows: list[Any] = [choose(by_contest[place]) for place in places]
            drawn[each["instance_id"]] = tuple(row["row"] for row in rows)
        return drawn
    finally:
        np.random.set_state(state)


def test_the_official_drawing_leaves_numpys_own_generator_alone() -> None:
    np.random.seed(7)
    expected = np.random.random()
    np.random.seed(7)
    POOL.draw_official({"a": 100}, count=2)

    assert np.random.random() == expected


# --- tasks ---


class Few(ShotsTask):
    """Shows examples."""

    name = "few"

    @override
    def samples(self) -> list[Sample]:
        both = [
            Sample(
                id=f"{key}{'#2' if order == 2 else ''}", inputs={"question": "?"}, group=group, tags={"order": order}
            )
            for key, group in (("a", "100"), ("b", "101"))
            for order in (1, 2)
        ]
        return self.with_shots(
            both,
            POOL,
            example=lambda row: Example(values={"question": row}, answer="yes"),
            group=lambda sample: int(sample.group),
        )

    @override
    def solver(self) -> Solver:
        return how_many

    @override
    def scorer(self) -> Scorer:
        return right_or_wrong()


def how_many(sample: Sample) -> int:
    return len(sample.inputs.get("examples", ()))


def shown(sample: Sample) -> list[Any]:
    return [each["values"]["question"] for each in sample.form()["inputs"]["examples"]]


def test_a_task_shows_no_examples_by_default() -> None:
    assert [sample.inputs for sample in Few(data=Path()).samples()] == [{"question": "?"}] * 4


@pytest.mark.parametrize("draw", ["own", "official"])
def test_both_orders_of_a_question_have_the_same_examples(draw: ShotsDraw) -> None:
    one, again, other, _ = Few(data=Path(), shots=3, shots_draw=draw).samples()

    assert shown(one) == shown(again) != shown(other)
    assert len(shown(one)) == 3
    drawn = POOL.draw_official({"a": 100, "b": 101}, count=3)["a"]
    assert tuple(shown(one)) == (drawn if draw == "official" else POOL.draw("a", 100, count=3, seed=0))


@pytest.mark.parametrize("part", [{"limit": 3}, {"ids": ["a"]}])
def test_the_official_drawing_needs_the_whole_split(part: dict[str, Any]) -> None:
    assert Few(data=Path(), shots=3, **part)
    assert Few(data=Path(), shots_draw="official", **part)
    with pytest.raises(UsageError, match=f"goes through the whole split, and `{next(iter(part))}` takes") as caught:
        Few(data=Path(), shots=3, shots_draw="official", **part)
    assert caught.value.hint


def test_the_options_are_kept_and_checked() -> None:
    assert {"shots": 5, "shots_draw": "own"}.items() <= Few(data=Path(), shots=5).kept().items()
    with pytest.raises(UsageError, match="The option 'shots' of the task 'few' cannot be -1"):
        Few(data=Path(), shots=-1)
    with pytest.raises(UsageError, match=r"cannot be 'mine'\. It takes one of `own`, `official`"):
        Few(data=Path(), shots_draw=cast("Any", "mine"))
