"""A task of your own in Python: whether a picture has anything odd about it.

    askance demo --copy ads
    askance eval run examples/odd_or_not.py --data ads/samples.jsonl --vlm demo

The data are lines of JSON with a picture's name and what is true of it; any other reading of them is as good.
"""

from __future__ import annotations

import json
from pathlib import Path

from askance.chains import Reading, verbalize
from askance.evals import ChainSolver, Sample, Task, right_or_wrong, task
from askance.images import Image
from askance.models import ModelLike


def odd(reading: Reading, _: Sample) -> bool:
    """Whether the model found something unusual: the answer to a sample."""
    said = reading.unusual.unwrap().text if reading.unusual else ""
    return not said.lower().startswith("nothing")


def solver(vlm: ModelLike) -> ChainSolver:
    """What answers a sample; from this alone a run can be read again without its data."""
    return ChainSolver(verbalize(vlm, context="UH"), value=odd)


@task("odd-or-not", scoring=right_or_wrong(), solver=solver)
def odd_or_not(data: Path, *, vlm: ModelLike) -> Task:
    """Whether a picture has anything odd about it."""
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    samples = [
        Sample(id=row["id"], image=Image.from_path(data.parent / row["image"]), target=row["tags"]["odd"])
        for row in rows
    ]
    return Task(samples=samples, solver=solver(vlm))
