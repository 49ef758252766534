"""`vllm:` with vLLM itself: its tests, the tokens of `hf:`, answers held to schemas, the command, and its replay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.slow import servers
from tests.slow.commands import OPTIONS, JsonObject, Place
from tests.slow.environments import HERE, ROOT
from tests.slow.test_hf import SCHEMA

pytestmark = pytest.mark.slow(group="vllm")

ENGINE = "{ enforce_eager = true, block_size = 32 }"
SETTINGS = """\
[models.own]                            # a server of its own
spec = "vllm:{folder}"
temperature = 0
max_tokens = 120
timeout = 900
extra = {{ repetition_penalty = 1.3 }}
vllm = {{ python = "{python}", context = 4096, cache = 0.5, start_within = 600, engine = {engine} }}

[models.there]                          # the same weights at an address
spec = "vllm:{folder}@{url}"
temperature = 0
max_tokens = 120
timeout = 900
extra = {{ repetition_penalty = 1.3 }}
"""
RUN = ("run", "action-reason", "photos", "--options", "options.json", "--json", "--vlm")
QUESTIONS = [
    "What is the capital of France?", "Name three colours.", "What do bees make?", "Why is the sky blue?",
    "Write one sentence about a cup of coffee.", "What is two and two?", "Who wrote Hamlet?", "Name a planet.",
    "What is the opposite of hot?", "Complete: the early bird", "What is a rocket?", "Describe a cat in one sentence.",
    "What is an advertisement?", "Give me a word that rhymes with moon.", "Is the sun a star?",
    "What does an astronaut wear?", "Which animal says meow?", "What is bread made of?", "Say hello in French.",
    "What is unusual about a brick cup?",
]  # fmt: skip


def quiet(**more: str) -> dict[str, str]:
    # On a busy machine two threads that wait for each other are slower than one.
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def ask(script: str, python: Path, model: str, how: JsonObject, requests: list[JsonObject]) -> list[JsonObject]:
    """What came of each request, asked in a process of its own."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    command = [str(python), str(HERE / script), model, json.dumps(how)]
    done = subprocess.run(
        command, input=lines, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False, env=quiet()
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.xdist_group("engine")  # vLLM keeps to one thread here, so the tokens are compared on the other core
def test_the_engine_does_what_every_backend_does(vllm_python: Path, models: Path) -> None:
    command = [str(vllm_python), "-m", "pytest", "-q", "--run-slow", "tests/models/vllm/test_engine.py"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False,
        env=quiet(ASKANCE_TEST_MODELS=str(models)),
    )  # fmt: skip

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout


def test_real_weights_give_the_tokens_of_hf_and_hold_to_schemas(
    vllm_python: Path, local_python: Path, models: Path
) -> None:
    folder = models / "smollm2-135m"
    plain: list[JsonObject] = [{"text": text, "temperature": 0} for text in QUESTIONS]
    held: list[JsonObject] = [
        {"text": f"Name the parts of thing number {number}.", "seed": number, "temperature": 1.0, "schema": SCHEMA}
        for number in range(32)
    ]
    weighed: list[JsonObject] = [{"text": text, "given": given} for text in QUESTIONS[:3] for given in GIVEN]
    how = {"python": str(vllm_python), "dtype": "float32", "context": 1024, "cache": 0.5, "start_within": 600}

    asked = [*plain, *held, *weighed]
    by_vllm = ask("ask_vllm.py", Path(sys.executable), f"vllm:{folder}", {**how, "engine": EAGER}, asked)
    by_hf = ask("ask_hf.py", local_python, str(folder), {"dtype": "float32", "device": "cpu"}, [*plain, *weighed])

    said = [answer["text"] for answer in by_vllm]
    assert said[: len(plain)] == [answer["text"] for answer in by_hf[: len(plain)]]
    for text in said[len(plain) : -len(weighed)]:
        jsonschema.validate(json.loads(text), SCHEMA)
    for here, there in zip(by_hf[len(plain) :], by_vllm[-len(weighed) :], strict=True):
        # How vLLM writes a part of a character is its own affair; the tokens are as many.
        own, other = ([token["logprob"] for token in each["logprobs"]] for each in (here, there))
        assert own == pytest.approx(other, abs=1e-3)


GIVEN = ("The capital of France is Paris.", "“Soup” is a pun:\n\nthe fish – naïve – cooks.", "Unlikely zebra.")


EAGER = {"enforce_eager": True}


@pytest.mark.xdist_group("engine")
def test_the_chain_runs_on_a_server_of_its_own_and_has_the_same_keys_at_an_address(
    vllm_python: Path, models: Path, photos: Path, tmp_path: Path
) -> None:
    port = servers.free_port()
    url = f"http://127.0.0.1:{port}"
    settings = SETTINGS.format(folder=models / "blind-vlm", python=vllm_python, url=url, engine=ENGINE)
    place = Place.make(tmp_path / "place", photos, settings)

    live = place.run_by(Path(sys.executable), [*RUN, "own"], {"OMP_NUM_THREADS": "1"}, seconds=1200)
    keys = place.keys()
    replayed = place.run(*RUN, "there", "--replay")
    log = tmp_path / "log.txt"
    with servers.vllm_server(vllm_python, models / "blind-vlm", log=log, port=port):
        refreshed = [*RUN, "there", "--mode", "refresh"]
        again = place.run_by(Path(sys.executable), refreshed, {"OMP_NUM_THREADS": "1"}, seconds=1200)

    assert [Path(line["image"]).name for line in live.lines] == sorted(OPTIONS)
    assert live.meta("calls") == len(set(live.calls)) == len(keys)
    assert {link["rung"] for link in live.links if link["calls"]} == {"json_schema"}
    assert "prompt tokens reused" in live.err
    assert "pictures found prepared" in live.err
    assert replayed.lasting == live.lasting
    assert replayed.meta("calls") == 0
    # What is asked again quotes an answer, which may have come out otherwise.
    assert {link["calls"][0] for link in again.links if link["calls"]} >= {
        line["links"][link]["calls"][0] for line in live.lines for link in ("objects", "scene_text", "narration")
    }
    assert again.meta("calls") == len(again.calls)


def test_without_vllm_the_extra_is_named(models: Path, photos: Path, tmp_path: Path) -> None:
    place = Place.make(tmp_path / "place", photos, f'[models.own]\nspec = "vllm:{models / "blind-vlm"}"\n')
    ran = place.run(*RUN, "own")

    assert ran.code == 2
    assert "needs vLLM" in " ".join(ran.err.split())
    assert "askance[vllm]" in ran.err
