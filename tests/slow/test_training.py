"""Recipes on tiny models where the extra `train` is; and the command: train, ask, replay without torch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.slow.commands import Place
from tests.slow.conftest import made_by
from tests.slow.environments import ROOT, TRAINING, environment
from tests.training.colour_shapes import make_set

pytestmark = pytest.mark.slow(group="training")


@pytest.fixture(scope="module")
def training_python() -> Path:
    """A Python with askance and its extra `train`."""
    return environment("training", TRAINING)


@pytest.fixture(scope="module")
def tiny(training_python: Path) -> Path:
    """A tiny model that sees."""
    return made_by(training_python, "make_tiny.py", "idefics3") / "idefics3"


def test_recipes_on_tiny_models(training_python: Path) -> None:
    suites = [
        str(path)
        for path in sorted((ROOT / "tests" / "training").glob("test_*.py"))
        if "importorskip" in path.read_text(encoding="utf-8")
    ]
    command = [str(training_python), "-m", "pytest", "-q", "--run-slow", "-n", "2", *suites]
    # Each model has one thread, as two that wait for each other are slower than one.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False, env=environment)

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_the_command_trains_and_the_adapter_answers(
    training_python: Path, tiny: Path, photos: Path, tmp_path: Path
) -> None:
    place = Place.make(tmp_path / "place", photos, "")
    make_set(place.folder / "set", "chat")
    quick = {"OMP_NUM_THREADS": "1"}
    train = ("train", "lora", "set", "--base", f"hf:{tiny}", "-o", "adapter", "--epochs", "1", "--device", "cpu")
    asked = ("run", "verbalize", "photos/coffee.png", "--vlm", f"hf:{tiny}?adapter=adapter&max_tokens=20", "--json")

    trained = place.run_by(training_python, [*train, "--merge", "merged", "--json"], quick)
    live = place.run_by(training_python, asked, quick)
    replayed = place.run(*asked, "--replay")

    assert trained.code == 0, trained.err
    assert json.loads(trained.out)[0]["selected"]["step"] == 3
    assert (place.folder / "merged" / "model.safetensors").is_file()
    assert live.calls, live.err
    assert replayed.lasting == live.lasting
    model = json.loads(trained.out)[0]["result"]
    assert place.models() == {model}
