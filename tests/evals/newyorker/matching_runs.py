"""Runs of a made-up matching task over forty contests, whose answers are told; for what is read from run folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from askance.errors import Refused
from askance.evals import Run, Sample, Scorer, Task, evaluate, mean
from askance.evals.newyorker.contest_difficulty import TASK
from askance.evals.scorer import Score
from askance.evals.suite import folds_of, over_folds

CONTESTS = 40
"""Numbers 1 to 40, in five folds, with three items each; every fourth has six."""


def items() -> list[Sample]:
    """Matching as the authors make it: each caption is right once, and wrong four times within its fold."""
    found: list[Sample] = []
    for fold in range(5):
        captions = [
            (contest, n) for contest in range(1 + fold, CONTESTS + 1, 5) for n in range(6 if contest % 4 == 0 else 3)
        ]
        for place, (contest, n) in enumerate(captions):
            options = [captions[(place + 7 * step) % len(captions)] for step in range(5)]
            true = (place + n) % 5
            shown = [f"caption {one}.{number}" for one, number in options[-true:] + options[:-true]]
            found.append(
                Sample(
                    id=f"{contest:03}-{n}",
                    inputs={"options": shown},
                    target={"true": [true + 1]},
                    group=f"contest {contest}",
                    tags={"fold": fold, "contest": contest},
                )
            )
    return found


ITEMS = items()


def score(sample: Sample, value: Any) -> Score:
    return Score(values={"accuracy": float(value[:1] == sample.target["true"])})


SCORER = Scorer(
    score=score,
    metrics=(mean("accuracy"),),
    if_wrong=lambda _: Score(values={"accuracy": 0.0}),
    if_right=lambda _: Score(values={"accuracy": 1.0}),
)


class Matching(Task):
    """Which of five captions was written for the cartoon."""

    name = TASK
    right: list[bool | None]
    """Whether each item is answered right; None is no answer."""
    skip: int = 0
    """Items from the beginning that are left out."""
    tagged: bool = True

    def samples(self) -> Sequence[Sample]:
        """The items."""
        if not self.tagged:
            return [Sample(id=each.id, inputs=each.inputs, target=each.target) for each in ITEMS]
        return ITEMS[self.skip :]

    def solver(self) -> Any:
        """Answers as it was told; wrong answers are the option before the right one."""
        told = {each.id: right for each, right in zip(ITEMS, self.right, strict=True)}

        def solve(sample: Sample) -> list[int]:
            right: int = sample.target["true"][0]
            if told[sample.id] is None:
                raise Refused("no")
            return [right if told[sample.id] else (right - 2) % 5 + 1]

        return solve

    def folds(self) -> Sequence[int]:
        """Those of the samples; a run keeps them."""
        return self.kept_or("folds", lambda: folds_of(self.samples()))

    def kept(self) -> dict[str, Any]:
        """With the folds."""
        return {**super().kept(), "folds": list(self.folds())}

    def scorer(self) -> Scorer:
        """Accuracy, over folds."""
        return over_folds(SCORER, self.folds())


class Ranking(Matching):
    """Another task of the suite."""

    name = "newyorker/ranking"


def by_contest(seed: int, *, spread: bool = True) -> list[bool | None]:
    """Answers of which those of one contest are mostly alike; without `spread` each is alone."""
    source = np.random.default_rng(seed)
    shares = {contest: (source.random() < 0.7 if spread else 0.7) for contest in range(1, CONTESTS + 1)}
    return [bool(source.random() < 0.1 + 0.8 * shares[each.tags["contest"]]) for each in ITEMS]


def run(name: str, right: Sequence[bool | None], task: type[Matching] = Matching, **options: Any) -> Run:
    evaluate(task(right=[*right], **options), out=name)
    return Run.open(name)
