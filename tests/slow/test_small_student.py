"""A real small model is taught by recorded runs, from the run to the server that serves what came of it.

The teacher's answers are people's: `annotators.py` serves what they wrote of real cartoons, so they are worth learning,
and say nothing of any large model. The student is SmolLM2-135M-Instruct with its real weights. It is asked freely, with
no grammar to hold it to the schema. `ASKANCE_TEST_NEWYORKER` names a folder with the real annotations.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from askance.evals import Run
from askance.nodes.answer import schema_of
from askance.statistics import wilson
from askance.training import TrainingSet
from tests.slow.commands import Place, Ran
from tests.slow.environments import HERE, ROOT, TRAINING, checked, environment
from tests.slow.read_cartoon import ANNOTATIONS, FIELDS, written
from tests.slow.servers import answers, free_port, vllm_server

REAL = Path(os.environ.get("ASKANCE_TEST_NEWYORKER", ""))

pytestmark = [
    pytest.mark.slow(group="training"),
    pytest.mark.soak,
    pytest.mark.skipif(
        not (REAL / ANNOTATIONS).is_file(), reason="ASKANCE_TEST_NEWYORKER names no folder with real files"
    ),
]

SETTINGS = """\
[models.people]
spec = "openai:people@http://127.0.0.1:{port}/v1"
protocol = "json_schema"

[models.before]
spec = "hf:{weights}"
temperature = 0
max_tokens = 80
protocol = "prompted"
local = {{ dtype = "float32" }}

[models.after]
spec = "hf:{weights}"
temperature = 0
max_tokens = 80
protocol = "prompted"
local = {{ dtype = "float32", adapter = "adapter" }}

[models.served]
spec = "openai:merged@http://127.0.0.1:{served}/v1"
temperature = 0
max_tokens = 80
protocol = "prompted"
"""
TAUGHT, VALIDATED, HELD_OUT = 200, 10, 40
PARTS = (
    *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
)
LAYERS = ",".join(f"layers.{number}.{part}" for number in range(20, 30) for part in PARTS)
"""The last ten of thirty: no gradient goes through the others, which takes a third of the time away."""
LASTS = 3600.0
"""Seconds that a command may take; the training took 28 minutes on a busy core."""


@pytest.fixture
def people() -> Iterator[int]:
    """The port at which people's annotations are the answers."""
    port = free_port()
    command = [sys.executable, "-m", "tests.slow.annotators", str(REAL), str(port)]
    with subprocess.Popen(command, cwd=ROOT) as server:
        while server.poll() is None and not answers(f"http://127.0.0.1:{port}/v1/models"):
            time.sleep(0.1)
        assert server.poll() is None, "the annotators ended as they began"
        yield port
        server.kill()


def test_a_real_small_model_learns_from_recorded_runs(
    people: int, models: Path, vllm_python: Path, tmp_path: Path
) -> None:
    python, weights, served = environment("training", TRAINING), models / "smollm2-135m", free_port()
    home = tmp_path / "home"
    home.mkdir()
    (home / "askance.toml").write_text(SETTINGS.format(port=people, weights=weights, served=served), encoding="utf-8")
    named = [*written(REAL)][: TAUGHT + VALIDATED + HELD_OUT]
    (home / "test.txt").write_text("\n".join(named[-HELD_OUT:]), encoding="utf-8")
    (home / "all.txt").write_text("\n".join(named), encoding="utf-8")
    place = Place(folder=home)

    def askance(*words: str) -> Ran:
        ran = place.run_by(python, words, {"OMP_NUM_THREADS": "1", "OPENAI_API_KEY": "none"}, seconds=LASTS)
        assert ran.code in {0, 1}, ran.err  # 1: some replies could not be read
        return ran

    def evaluated(model: str, ids: str) -> Run:
        task = str(HERE / "read_cartoon.py")
        askance("eval", "run", task, "--data", str(REAL), "--llm", model, "--ids", ids, "--out", model)
        return Run.open(home / model)

    def loss(*adapter: str) -> float:
        script = [str(python), str(HERE / "weigh_records.py"), "set", str(weights), *adapter]
        return float(checked(script, seconds=LASTS, folder=home).splitlines()[-1])

    evaluated("people", "all.txt")
    made = ("--hold-out", "test.txt", "--validation", str(VALIDATED / (TAUGHT + VALIDATED)), "--accept-terms")
    askance("train", "data", "records", "--run", "people", "-o", "set", *made)
    data = TrainingSet.open(home / "set")
    before = evaluated("before", "test.txt")
    lesson = ("--base", f"hf:{weights}", "--epochs", "1", "--batch", "4", "--rate", "5e-4", "-R", "warmup=5")
    lesson += ("-R", "every=25", "-R", f"targets={LAYERS}")
    askance("train", "lora", "set", *lesson, "-o", "adapter", "--device", "cpu", "--merge", "merged")
    after = evaluated("after", "test.txt")
    with vllm_server(vllm_python, home / "merged", log=home / "vllm.txt", port=served, context=1024, tools=False):
        by_vllm = evaluated("served", "test.txt")
    report = json.loads(askance("train", "report", "people", "before", "after", "--set", "set", "--json").out)

    assert (data.count("train"), data.count("validation"), data.count("test")) == (TAUGHT, VALIDATED, HELD_OUT)
    assert loss("adapter") < loss() - 0.2
    valid_before, valid_after = (sum(map(is_valid, replies(run))) for run in (before, after))
    assert wilson(valid_after, HELD_OUT).low > wilson(valid_before, HELD_OUT).high
    equal = sum(one == other for one, other in zip(replies(after), replies(by_vllm), strict=True))
    assert equal >= 0.8 * HELD_OUT
    assert [each["role"] for each in report["runs"]] == ["teacher", "student before", "student after"]


def replies(run: Run) -> list[str]:
    """The first reply to each sample, in the order of the samples; nothing was mended in it."""
    keys = [str(next(iter(answer.prediction.links.values()))["calls"][0]) for answer in run.answers]
    records = [run.records.get(key) for key in keys]
    return ["" if record is None else str(record.response.get("text", "")) for record in records]


def is_valid(reply: str) -> bool:
    """Whether a reply is one JSON value, as a whole, that fits the schema."""
    try:
        jsonschema.validate(json.loads(reply), schema_of(FIELDS))
    except (ValueError, jsonschema.ValidationError):
        return False
    return True
