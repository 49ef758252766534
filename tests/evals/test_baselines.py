from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path
from typing import Any

import pytest

from askance.errors import UsageError
from askance.evals import Evaluation, Metric, Sample, Score, Scorer, aevaluate, mean
from askance.evals.baselines import (
    LongestOption,
    MajoritySolver,
    RandomSolver,
    chance,
    expected_figures,
    expected_score,
)
from askance.evals.solver import Solver
from askance.models import use_draw

OPTIONS = ["buy it", "do not buy it", "sleep", "eat well", "run"]


def answered(solver: Solver, given: Sample) -> list[int]:
    """What a solver answers."""
    return asyncio.run(solver.answer(given))


def sample(name: str = "one", true: Sequence[int] = (1, 3), options: Sequence[str] = OPTIONS) -> Sample:
    return Sample(id=name, inputs={"options": list(options)}, target=list(true))


def score(sample: Sample, value: Any) -> Score:
    """Precision and accuracy as the paper defines them, and a value that only answers with option 1 have."""
    target: Any = sample.target
    right = [number in target for number in value]
    values = {f"p@{k}": min(k, sum(right)) / k for k in (1, 2, 3)}
    values |= {f"acc@{k}": float(any(right[:k])) for k in (1, 2, 3)}
    return Score(values={**values, **({"place": value.index(1)} if 1 in value else {})})


SCORING = Scorer(
    score=score,
    metrics=(mean("p@1"), mean("acc@1"), Metric(name="most", columns=("p@1",), statistic=lambda matrix: matrix.max())),
    if_wrong=lambda _: Score(values={"p@1": 0.0, "acc@1": 0.0}),
    if_right=lambda _: Score(values={"p@1": 1.0, "acc@1": 1.0}),
)

# Of 18 options 3 are true. 816 ways to choose 3: 455 without a true one, 315 with one, 45 with two, 1 with three.
BY_HAND: dict[str, tuple[tuple[int, int, int], dict[str, float]]] = {
    "3 of 18": (
        (18, 3, 3),
        {
            "p@1": 361 / 816,
            "p@2": (315 / 2 + 46) / 816,
            "p@3": (315 / 3 + 45 * 2 / 3 + 1) / 816,
            "acc@1": 3 / 18,
            "acc@2": 1 - (15 * 14) / (18 * 17),
            "acc@3": 361 / 816,
        },
    ),
    "1 of 4, one answer": ((4, 1, 1), {"p@1": 0.25, "acc@1": 0.25}),
    "all": ((3, 3, 3), {"p@1": 1, "p@2": 1, "p@3": 1, "acc@1": 1, "acc@2": 1, "acc@3": 1}),
    "none": ((3, 0, 2), {"p@1": 0, "p@2": 0, "acc@1": 0, "acc@2": 0}),
    "fewer options than answers": (
        (2, 1, 3),
        {"p@1": 1, "p@2": 0.5, "p@3": 1 / 3, "acc@1": 0.5, "acc@2": 1, "acc@3": 1},
    ),
}


@pytest.mark.parametrize(("numbers", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_chance_is_what_counting_gives(numbers: tuple[int, int, int], expected: dict[str, float]) -> None:
    options, true, count = numbers

    assert chance(options, true, count=count) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("numbers", [(0, 0, 1), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_chance_of_nothing_is_refused(numbers: tuple[int, int, int]) -> None:
    options, true, count = numbers
    with pytest.raises(UsageError, match=r"^There cannot be "):
        chance(options, true, count=count)


def test_the_expected_score_is_the_mean_over_every_answer() -> None:
    expected = expected_score(sample(), SCORING)

    assert expected.values == pytest.approx({**chance(5, 2), "place": 1.0})


def test_expected_figures_are_means_over_samples() -> None:
    samples = [sample("one", [1]), sample("two", [1, 2, 3])]

    figures = expected_figures(samples, SCORING, count=1)

    assert [(each.metric, each.value) for each in figures] == [
        ("p@1", pytest.approx((1 / 5 + 3 / 5) / 2)),
        ("acc@1", pytest.approx((1 / 5 + 3 / 5) / 2)),
    ]


def test_alike_samples_are_worked_out_once() -> None:
    scored: list[str] = []

    def counted(sample: Sample, value: Any) -> Score:
        scored.append(sample.id)
        return score(sample, value)

    scoring = Scorer(score=counted, metrics=SCORING.metrics, if_wrong=SCORING.if_wrong, if_right=SCORING.if_right)
    figures = expected_figures([sample("one"), sample("two")], scoring, count=1, alike=lambda _: "same")

    assert scored == ["one"] * 5
    assert figures == expected_figures([sample("one"), sample("two")], SCORING, count=1)


async def test_random_answers_come_near_their_expectation(tmp_path: Path) -> None:
    samples = [sample(f"sample {number}", [1, 3]) for number in range(400)]
    solver = RandomSolver(count=3, seed=7)

    run = await aevaluate(Evaluation(name="t", samples=samples, solver=solver, scorer=SCORING), out=tmp_path / "run")

    interval = run.figure("p@1").interval
    assert interval is not None
    assert interval.low < chance(5, 2)["p@1"] < interval.high


def test_lots_depend_on_seed_id_and_epoch_alone() -> None:
    solver = RandomSolver(seed=1)
    longer = sample(options=[f"{option}, or not" for option in OPTIONS])

    first = answered(solver, sample())

    assert answered(solver, longer) == first
    assert sorted({*first}) == sorted(first)
    assert len({tuple(answered(RandomSolver(seed=seed), sample())) for seed in range(30)}) > 10
    assert len({tuple(answered(solver, sample(f"sample {number}"))) for number in range(30)}) > 10
    with use_draw(1):
        assert answered(solver, sample()) != first
    assert sorted(answered(RandomSolver(count=9), sample())) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("options", "numbers"),
    [(OPTIONS, [2, 4, 1]), (["a", "b", "cc"], [3, 1, 2]), (["aaa", "b"], [1, 2])],
    ids=["by length", "equally long", "fewer than asked for"],
)
def test_the_longest_options_come_first(options: list[str], numbers: list[int]) -> None:
    assert answered(LongestOption(), sample(options=options)) == numbers


def test_the_majority_is_what_is_true_most_often() -> None:
    samples = [sample("a", [2, 4]), sample("b", [4, 5]), sample("c", [4, 1, 2])]

    solver = MajoritySolver(samples, count=3)

    assert solver.form() == {"baseline": "majority", "numbers": [4, 2, 1]}
    assert [answered(solver, each) for each in (sample(), sample(options=["a", "b", "c"]))] == [[4, 2, 1], [2, 1]]


def test_a_target_may_name_the_true_ones() -> None:
    one = Sample(id="one", inputs={"options": OPTIONS}, target={"true": [3], "kinds": []})

    assert answered(MajoritySolver([one], count=1), one) == [3]


async def _asks(sample: Sample, value: Any) -> Score:
    return Score(values={"p@1": nan})


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no options": (
        lambda: answered(RandomSolver(), Sample(id="one")),
        "The sample 'one' has no options to choose from.",
    ),
    "no target": (
        lambda: MajoritySolver([Sample(id="one", inputs={"options": OPTIONS}, target="x")]),
        "The target of the sample 'one' does not say which numbers are true.",
    ),
    "nothing true": (lambda: MajoritySolver([sample(true=[])]), "No sample has a true number"),
    "too many answers": (
        lambda: expected_score(sample(options=list("abcdefghijklmnop")), SCORING, count=5),
        "The sample 'one' has 524,160 possible answers, more than can be tried.",
    ),
    "scores that ask": (
        lambda: expected_score(
            sample(),
            Scorer(score=_asks, metrics=(), if_wrong=SCORING.if_wrong, if_right=SCORING.if_right),
        ),
        "An answer whose score asks somebody has no exact expectation.",
    ),
}


@pytest.mark.parametrize(("ask", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ask()
    assert str(caught.value).startswith(message)
