"""`hf:` in a fresh environment with the extra `local`: tiny models of every family, real weights, the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tests.slow.commands import OPTIONS, JsonObject, Place
from tests.slow.environments import HERE, ROOT

pytestmark = pytest.mark.slow(group="local")

SETTINGS = """\
[models.blind]
spec = "hf:{folder}"
temperature = 0
max_tokens = 60
timeout = 900
extra = {{ repetition_penalty = 1.3 }}
local = {{ dtype = "float32", device = "cpu" }}
"""
RUN = ("run", "action-reason", "photos/coffee.png", "--vlm", "blind", "--options", "options.json", "--json")


@pytest.fixture
def place(models: Path, photos: Path, tmp_path: Path) -> Place:
    """A user's folder beside the weights."""
    return Place.make(tmp_path / "place", photos, SETTINGS.format(folder=models / "blind-vlm"))


@pytest.fixture
def ask(local_python: Path, own_place: Path) -> Callable[..., list[JsonObject]]:
    """Asks a model of a folder in a process of its own; gives what came of each request."""

    def run(folder: Path, requests: list[JsonObject], **local: object) -> list[JsonObject]:
        command = [str(local_python), str(HERE / "ask_hf.py"), str(folder), json.dumps(local)]
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run(
            command, input=lines, cwd=own_place, capture_output=True, text=True, timeout=900, check=True, env=_quiet()
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def _quiet() -> dict[str, str]:
    # On a busy machine two threads that wait for each other are slower than one.
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.mark.xdist_group("packages")
def test_tiny_models_of_every_family_and_encoders(local_python: Path) -> None:
    suites = [
        str(path)
        for package in ("local", "encoders")
        for path in sorted((ROOT / "tests" / "models" / package).glob("test_*.py"))
        if "importorskip" in path.read_text(encoding="utf-8")
    ]
    command = [str(local_python), "-m", "pytest", "-q", "--run-slow", "-n", "2", "--dist", "loadgroup", *suites]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False, env=_quiet())

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout


def test_the_command_runs_a_folder_and_replays_without_torch(local_python: Path, place: Place) -> None:
    live = place.run_by(local_python, RUN, {"OMP_NUM_THREADS": "1"})
    replayed = place.run(*RUN, "--replay")
    traced = place.run_by(local_python, [*RUN, "--replay"], {"PYTHONPROFILEIMPORTTIME": "1"})

    (line,) = live.lines
    assert Path(line["image"]).name in OPTIONS
    assert {link["rung"] for link in live.links if link["calls"]} == {"json_schema"}
    assert line["links"]["objects"]["outcome"] in {"answered", "truncated"}
    assert live.meta("calls") == len(live.calls) >= 4
    assert replayed.lasting == traced.lasting == live.lasting
    assert (replayed.meta("calls"), replayed.meta("replayed")) == (0, len(live.calls))
    loaded = {row.rpartition("|")[2].strip() for row in traced.err.splitlines() if row.startswith("import time:")}
    assert "askance.models" in loaded
    assert {"torch", "transformers", "llguidance"} & loaded == set()


def test_without_torch_the_extra_is_named(place: Place) -> None:
    ran = place.run(*RUN)

    assert ran.code == 2
    assert "needs torch and transformers" in " ".join(ran.err.split())
    assert "pip install 'askance[local]'" in ran.err
    assert sys.executable not in ran.err


SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "objects": {"type": "array", "items": {"type": "string", "maxLength": 20}, "minItems": 1, "maxItems": 3},
        "kind": {"type": "string", "enum": ["TR1", "TR2", "OIO", "OR"]},
    },
    "required": ["objects", "kind"],
    "additionalProperties": False,
}


def test_real_weights_are_held_to_a_schema(ask: Callable[..., list[JsonObject]], models: Path) -> None:
    requests: list[JsonObject] = [
        {"text": f"Name the parts of thing number {number}.", "seed": number, "temperature": 1.0, "schema": SCHEMA}
        for number in range(32)
    ]

    answers = ask(models / "smollm2-135m", requests, dtype="float32", device="cpu", batch=16)

    assert [answer["finish"] for answer in answers] == ["stop"] * len(requests)
    for answer in answers:
        jsonschema.validate(json.loads(answer["text"]), SCHEMA)


def test_real_weights_say_what_they_know(ask: Callable[..., list[JsonObject]], models: Path) -> None:
    question = "What is the capital of France? Answer in one word."

    (answer,) = ask(models / "smollm2-135m", [{"text": question, "temperature": 0}], dtype="float32", device="cpu")

    assert "Paris" in answer["text"]


@pytest.mark.parametrize("bits", [8, 4])
def test_real_weights_that_are_pressed_say_it_too(
    ask: Callable[..., list[JsonObject]], models: Path, bits: int
) -> None:
    question = "What is the capital of France? Answer in one word."
    how = {"dtype": "float32", "device": "cpu", "bits": bits}

    answers = ask(models / "smollm2-135m", [{"text": question, "temperature": 0}] * 2, **how)

    assert ["Paris" in answer["text"] for answer in answers] == [True, True]
