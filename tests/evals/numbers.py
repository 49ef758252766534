"""A task of the tests without pictures or models: whether a number is odd; and runs of it, also as a process.

python -m tests.evals.numbers FOLDER SECONDS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typing_extensions import override

from askance.errors import Filtered, InvalidOutput, ModelError, Refused, Skipped, Truncated
from askance.evals import Evaluation, Run, Sample, evaluate, right_or_wrong
from askance.evals.solver import Solver, SolverLike

NON_ANSWERS: dict[str, type[Exception]] = {
    "invalid": InvalidOutput,
    "refused": Refused,
    "filtered": Filtered,
    "truncated": Truncated,
    "failed": ModelError,
    "skipped": Skipped,
}


def samples(count: int) -> list[Sample]:
    return [Sample(id=f"{number:02}", target=number % 2 == 1, inputs={"number": number}) for number in range(count)]


def always_odd(sample: Sample) -> bool:
    return True


class RunCounters(Solver):
    """Always says odd, and tells of whom it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @override
    async def answer(self, sample: Sample) -> Any:
        self.asked.append(sample.id)
        return True

    @override
    def form(self) -> dict[str, Any]:
        return {"solver": "counting"}


def task_of(solver: SolverLike = always_odd, *, count: int = 6, **more: Any) -> Evaluation:
    return Evaluation(samples=samples(count), solver=solver, name="numbers", scorer=right_or_wrong(), **more)


def run_of(solver: SolverLike = always_odd, *, count: int = 6, out: str | Path = "run", **options: Any) -> Run:
    return evaluate(task_of(solver, count=count), out=out, **options)


def stable(folder: str | Path) -> list[dict[str, Any]]:
    """The samples of a run, sorted, without what is volatile."""
    texts = Path(folder, "samples.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [{**json.loads(text), "meta": None} for text in texts]
    return sorted(lines, key=lambda line: (line["id"], line["epoch"]))


def scores(folder: str | Path) -> str:
    return Path(folder, "scores.jsonl").read_text(encoding="utf-8")


def slowly(seconds: float) -> Callable[[Sample], int]:
    def solve(sample: Sample) -> int:
        time.sleep(seconds)
        if sample.id == "07":
            raise Refused("no")
        return sample.inputs["number"] ** 2

    return solve


if __name__ == "__main__":
    run_of(slowly(float(sys.argv[2])), count=30, out=sys.argv[1])
