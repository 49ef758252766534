"""A task of your own in Python: whether a picture has anything odd about it.

    askance demo --copy ads
    askance eval run examples/odd_or_not.py --data ads/samples.jsonl --vlm demo

The data are lines of JSON with a picture's name and what is true of it; any other reading of them is as good.
"""

from __future__ import annotations

import json
from pathlib import Path

from askance.chains import Reading, verbalize
from askance.evals import ChainSolver, Sample, Scorer, Task, right_or_wrong
from askance.images import Image
from askance.models import ModelLike


def odd(reading: Reading, _: Sample) -> bool:
    """Whether the model found something unusual: the answer to a sample."""
    said = reading.unusual.unwrap().text if reading.unusual else ""
    return not said.lower().startswith("nothing")


class OddOrNot(Task):
    """Whether a picture has anything odd about it."""

    name = "odd-or-not"

    data: Path
    """File with a line of JSON for each picture."""
    vlm: ModelLike
    """Sees the picture."""

    def samples(self) -> list[Sample]:
        """What is asked, and what is true of it."""
        rows = [json.loads(line) for line in self.data.read_text(encoding="utf-8").splitlines()]
        return [
            Sample(id=row["id"], image=Image.from_path(self.data.parent / row["image"]), target=row["tags"]["odd"])
            for row in rows
        ]

    def solver(self) -> ChainSolver:
        """What answers; it needs no data, so that a run can be read again without them."""
        return ChainSolver(verbalize(self.vlm, context="UH"), value=odd)

    def scorer(self) -> Scorer:
        """How answers are scored."""
        return right_or_wrong()
