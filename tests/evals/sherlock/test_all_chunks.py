"""Retrieval over as many chunks as the published corpus has, each of its size: what it takes, and what it gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.evals.sherlock.layout import CHUNKS
from tests.evals.sherlock import corpus

SIZE = 983
"""Regions of a chunk, as the published one with the number 0 has."""
A_SAMPLE = 12_000
"""Most bytes that memory may grow by for each further sample. All scores of all chunks would be 8,000 more."""

RUN = """\
import json, resource, sys
from pathlib import Path
from askance.evals import evaluate
from askance.evals.sherlock import Retrieval
chunk = "all" if sys.argv[2] == "all" else int(sys.argv[2])
run = evaluate(Retrieval(data=Path(sys.argv[1]), solver="random", chunk=chunk), out=Path(sys.argv[3]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
values = {figure.metric: figure.value for figure in run.figures}
print(json.dumps({"peak": peak, "samples": len(run.answers), "values": values}))
"""


def ran(data: Path, chunk: str, out: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", RUN, str(data), chunk, str(out)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=1800).stdout)


@pytest.mark.soak
def test_memory_grows_by_what_is_known_of_samples_and_not_by_their_scores(tmp_path: Path) -> None:
    """Three regions an image, all in one chunk; every tenth inference of a chunk repeats the first one."""
    rows = [
        corpus.sealed(
            {
                "image": {"url": f"{corpus.VG}VG_100K/{chunk}-{place // 3}.jpg", "width": 500, "height": 375},
                "bboxes": corpus.forms([(place % 300, 10, 100, 80)]),
                "clue": "something",
                "confidence": 2.0,
                "obs_idx": place % 3,
            },
            "the same" if place % 10 == 0 else f"inference {place}",
            chunk,
        )
        for chunk in range(CHUNKS)
        for place in range(SIZE)
    ]
    corpus.write_json(tmp_path / "data" / corpus.CORPUS, rows)

    one, every = (ran(tmp_path / "data", chunk, tmp_path / f"run-{chunk}") for chunk in ("0", "all"))

    assert (one["samples"], every["samples"]) == (SIZE, CHUNKS * SIZE)
    assert every["peak"] - one["peak"] < A_SAMPLE * (every["samples"] - one["samples"])
    twins = len(range(0, SIZE, 10))
    assert every["values"]["P@1 ceiling"] == pytest.approx((SIZE - twins) / SIZE)
    assert every["values"]["rank chance"] == (SIZE + 1) / 2
    for rank in ("rank im→txt", "rank txt→im"):
        assert every["values"][rank] == pytest.approx((SIZE + 1) / 2, abs=10)  # five standard errors
