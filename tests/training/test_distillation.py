from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import Field
from typing_extensions import override

from askance.errors import UsageError
from askance.evals import Prediction, Run, Sample, Scorer, Solver, Task, evaluate, right_or_wrong
from askance.images import Image
from askance.training import ChatExample, Source, TrainingSet, distillation, write_training_set
from tests.golden.commands import askance
from tests.images import samples as drawn
from tests.training.colour_shapes import examples, make_set

COUNT = 40


class Knows(Solver):
    """Right on the first so many of the pictures, at a price for each."""

    def __init__(self, right: int, dollars: float) -> None:
        self.right = right
        self.dollars = dollars

    @override
    async def answer(self, sample: Sample) -> Prediction:
        value = sample.target if int(sample.id) < self.right else "another"
        return Prediction(outcome="answered", value=value, meta={"cost": self.dollars})


class Shown(Task):
    """What a picture shows."""

    name = "tests/shown"
    solves: Any = Field(exclude=True)
    pictures: Any = Field(exclude=True)
    who: str = ""

    def samples(self) -> list[Sample]:
        return [
            Sample(id=str(number), image=image, inputs={}, target=f"thing {number}")
            for number, image in enumerate(self.pictures)
        ]

    def solver(self) -> Solver:
        return self.solves

    def scorer(self) -> Scorer:
        return right_or_wrong()

    def label(self) -> str:
        return self.who


def run(name: str, pictures: Sequence[Image | None], *, right: int, dollars: float) -> Run:
    return evaluate(Shown(solves=Knows(right, dollars), pictures=pictures, who=name), out=name, seed=0)


@pytest.fixture
def data(own_place: Path) -> TrainingSet:
    return make_set(Path("set"), "chat", train=12, validation=4)


def three(pictures: Sequence[Image | None]) -> list[Run]:
    dollars = {"teacher": (36, 0.002), "before": (4, 0.0), "after": (30, 0.0)}
    return [run(name, pictures, right=right, dollars=price) for name, (right, price) in dollars.items()]


def test_teacher_and_student_are_compared_in_pairs_with_what_a_thousand_pictures_cost(data: TrainingSet) -> None:
    pictures = [Image.from_bytes(drawn.encoded(drawn.photo(seed=seed), "PNG")) for seed in range(COUNT)]

    made = distillation(*three(pictures), data=data)
    printed = askance("train", "report", "teacher", "before", "after", "--set", "set")

    assert made.pictures == COUNT
    assert made.dollars == (pytest.approx(2.0), 0.0, 0.0)
    differences = {each.names: each for each in made.comparison.metrics if each.metric == "accuracy"}
    assert len(differences) == 3
    assert all(each.verdict in {"better", "worse", "tied"} for each in differences.values())
    lines = [line.split() for line in printed.out.splitlines()]
    assert ["teacher", "teacher", "$2.00"] in lines
    assert ["student", "after", "after", "$0.00"] in lines
    assert "a model on this machine costs nothing a call" in printed.err
    form = json.loads(askance("train", "report", "teacher", "before", "after", "--set", "set", "--json").out)
    assert [each["dollars_a_thousand_pictures"] for each in form["runs"]] == [pytest.approx(2.0), 0.0, 0.0]


def test_pictures_that_were_learnt_are_refused(data: TrainingSet) -> None:
    learnt = [each.pictures[0] for each in examples("chat", 12, seed=0)]
    fresh = [Image.from_bytes(drawn.encoded(drawn.photo(seed=seed), "PNG")) for seed in range(COUNT - 12)]

    with pytest.raises(UsageError, match="12 pictures of the runs are in the training set 'set'"):
        distillation(*three([*learnt, *fresh]), data=data)


@pytest.mark.parametrize(("group", "task"), [("tests: {}", {}), ("contest {}", {"task": "tests/shown"})], ids=str)
def test_samples_without_a_picture_are_known_by_name(own_place: Path, group: str, task: dict[str, str]) -> None:
    words = [
        replace(each, images=(), prompt=each.completion, group=group.format(n), meta={"sample": str(n), **task})
        for n, each in enumerate(cast("list[ChatExample]", list(examples("chat", 4, seed=0))))
    ]
    data = write_training_set(Path("words"), {"train": words[:3], "validation": words[3:]}, source=Source(origin={}))

    with pytest.raises(UsageError, match="4 samples of the runs are in the training set 'words'"):
        distillation(*three([None] * COUNT), data=data)
