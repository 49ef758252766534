"""A task of the tests that has something of every kind of plot: labels, tags, folds, confidences, costs, ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from askance.evals import Prediction, Run, Sample, Score, Scorer, Task, evaluate, mean
from askance.evals.solver import SolverLike
from askance.evals.suite.breakdown import over_folds

LABELS = ("TR1", "OIO", "OR_&_$x$")
COUNT = 60


def _rank(sample: Sample, value: Any) -> int | None:
    number = int(sample.id[1:])
    return 1 if value == sample.target else None if number % 7 == 0 else 2 + number % 30


def _score(sample: Sample, value: Any) -> Score:
    return Score(values={"accuracy": float(value == sample.target)}, notes={"ranks": {"true": _rank(sample, value)}})


class Relations(Task):
    """Which relation holds, of sixty made-up samples."""

    name = "tests/plotted"
    which: str
    wrong: int = 3
    """Of so many samples one is answered wrong."""
    cost: float = Field(default=0.001, exclude=True)

    def samples(self) -> list[Sample]:
        return [
            Sample(
                id=f"s{number:02}",
                target=LABELS[number % 3],
                tags={"fold": number % 4, "topic": ("cars", "food & drink", "politics")[number % 3]},
            )
            for number in range(COUNT)
        ]

    def solver(self) -> SolverLike:
        def solve(sample: Sample) -> Prediction:
            number, meta = int(sample.id[1:]), {"cost": self.cost, "calls": 1}
            if number % 20 == 19:
                return Prediction(outcome="refused", reason="No.", meta=meta)
            wrong = number % self.wrong == 0 or (number * 7 + self.wrong) % 11 == 0
            value = LABELS[(number // 3 + 1) % 3] if wrong else sample.target
            sure = (0.5 if wrong else 0.8) + (number % 10) / 50
            return Prediction(outcome="answered", value=value, confidence=sure, meta=meta)

        return solve

    def scorer(self) -> Scorer:
        scorer = Scorer(
            score=_score,
            metrics=(mean("accuracy"),),
            if_wrong=lambda _: Score(values={"accuracy": 0.0}),
            if_right=lambda _: Score(values={"accuracy": 1.0}),
        )
        return over_folds(scorer, range(4), count=4)

    def label(self) -> str:
        return self.which


NAMES = ("Gemma_3 $\\alpha$ & 100%", "a long name of two models + another-model-7b-instruct (swapped-image)", "x^2 <b>")


def runs_of(folder: Path, count: int = 3) -> list[Run]:
    """Runs with names in which LaTeX and HTML would find a meaning."""
    return [
        evaluate(Relations(which=name, wrong=wrong, cost=cost), out=folder / f"run{number}")
        for number, (name, wrong, cost) in enumerate(zip(NAMES[:count], (3, 5, 9), (0.0005, 0.002, 0.03), strict=False))
    ]
