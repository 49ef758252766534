"""Training sets are loaded by `datasets` and learnt by TRL, by a script that loads nothing of askance."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from askance.chains import action_reason
from askance.chat import ChatRequest
from askance.evals import Run
from askance.evals.run import picture_answer
from askance.images import Image
from askance.replay import MemoryStore
from askance.training import Source, write_training_set
from askance.training.example_splits import split_by_group
from askance.training.recorded_calls import CallFilter, examples_of_runs
from tests.scripted import OPTIONS, PICTURES, model_of, scripted
from tests.slow.environments import HERE, TRAINING, checked, environment, make_once

pytestmark = pytest.mark.slow(group="training")


@pytest.fixture(scope="module")
def trl() -> Path:
    """A Python with TRL."""
    return environment("training", TRAINING)


@pytest.fixture(scope="module")
def tiny(trl: Path) -> Path:
    """A tiny model that sees, and one that does not."""
    make = HERE / "make_tiny.py"

    def made(folder: Path) -> None:
        checked([str(trl), str(make), str(folder), "idefics3", "llama"])

    return make_once("tiny-trl", make.read_text(encoding="utf-8"), made)


@pytest.fixture(scope="module")
def run() -> Run:
    """A chain's run over the demo's pictures, which says something else of each."""
    records = MemoryStore()
    chain = action_reason(model_of(scripted(narration=seen), records))
    images = [Image.from_path(path) for path in sorted(PICTURES.glob("*.jpg"))]
    answers = [picture_answer(chain.invoke({"image": image, "options": OPTIONS}).to_dict()) for image in images]
    return Run.unkept({"chain": "action-reason"}, answers=answers, records=records)


def seen(request: ChatRequest) -> object:
    return {"description": f"The picture {request.images[0].shown.image.sha256[:6]}."}


LINKS = {"pictures": ("narration", "idefics3", True), "words": ("description", "llama", False)}


@pytest.mark.parametrize(("link", "family", "sees"), LINKS.values(), ids=LINKS)
def test_a_stock_script_learns_from_a_set(
    link: str, family: str, sees: bool, trl: Path, tiny: Path, run: Run, tmp_path: Path
) -> None:
    by_digest = {image.sha256: image for image in map(Image.from_path, PICTURES.glob("*.jpg"))}
    made = examples_of_runs([run], CallFilter(links=(link,)), pictures=lambda _: by_digest)
    write_training_set(tmp_path / "set", split_by_group(made.examples, validation=0.2), source=Source(origin={}))

    done = subprocess.run(
        [trl, "-I", HERE / "tune_with_trl.py", tmp_path / "set", tiny / family, tmp_path / "out"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")},
    )

    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["askance"] is False
    assert ("images" in told["columns"]) is sees
    assert len(told["losses"]) == 6
    assert told["validation"][-1] < told["validation"][0]
    assert [*(tmp_path / "out").rglob("adapter_model.safetensors")]
