"""Encoders in a fresh environment: `clip:` and `st:` against their packages, and Table 11 by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from askance.evals.negatives import generate, read_statements
from askance.evals.pittads import statements_in
from tests.evals.pittads.files import key_of, record, release_b, row, write, write_csv
from tests.evals.pittads.worlds import writer
from tests.scripted import PICTURES
from tests.slow.environments import HERE, ROOT, checked
from tests.slow.test_embedding import TEXTS

pytestmark = pytest.mark.slow(group="local")

Command: TypeAlias = Callable[..., str]


@pytest.fixture
def command(local_python: Path, own_place: Path) -> Command:
    """Runs `askance` in a folder of its own, with torch or without; gives what it printed."""

    def run(*words: str, torch: bool = True) -> str:
        python = str(local_python) if torch else sys.executable
        done = subprocess.run(
            [python, "-m", "askance", *words], cwd=own_place, capture_output=True, text=True, timeout=400, check=False,
            env=_quiet(), stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    return run


def _quiet() -> dict[str, str]:
    # On a busy machine two threads that wait for each other are slower than one.
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


BOTH = """\
import asyncio, json, sys
from sentence_transformers import SentenceTransformer
from askance.models import Engine, get_embedder
from askance.replay import MemoryStore
folder, texts = sys.argv[1], json.loads(sys.argv[2])
ours = asyncio.run(get_embedder(f"st:{folder}", engine=Engine(records=MemoryStore())).embed(texts))
theirs = SentenceTransformer(folder).encode(texts, normalize_embeddings=True).tolist()
print(json.dumps([ours, theirs]))
"""


def test_real_weights_give_the_vectors_of_sentence_transformers(local_python: Path, minilm: Path) -> None:
    texts = [*TEXTS, "A longer text than it reads. " * 60, "", "Ünïcode 🍺"]

    ours, theirs = json.loads(checked([str(local_python), "-c", BOTH, str(minilm), json.dumps(texts)]).splitlines()[-1])

    assert ours == [pytest.approx(vector, abs=1e-5) for vector in theirs]


# --- Table 11 ---

ADS = (key_of(11), key_of(12))
SAID = ("A solid start.", "Drink tea and sleep well tonight. " * 4)


@pytest.fixture(scope="module")
def tiny_models(local_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tiny models."""
    folder = tmp_path_factory.mktemp("models")
    checked([str(local_python), str(HERE / "make_duals.py"), str(folder), "clip", "siglip"])
    checked([str(local_python), str(HERE / "make_tiny.py"), str(folder), "llava"])
    return folder


@pytest.fixture
def place(tiny_models: Path, own_place: Path) -> Path:
    """A folder with two ads, what is written on them, and tiny models."""
    release_b(own_place / "data", {ad: record(ad) for ad in ADS})
    write_csv(own_place / "data" / "final_csv.csv", [row(ad, "1", "cup", "bricks") for ad in ADS])
    for ad, name in zip(ADS, ("brick-cup.jpg", "coin-horse.jpg"), strict=True):
        write(own_place / "data" / "train_images" / ad, (PICTURES / name).read_bytes())
    for what, texts in {"T": SAID, "V": ("cup, bricks", "coin, horse")}.items():
        rows = list(zip(ADS, texts, strict=True))
        write_csv(own_place / "said" / f"{what}_LLAVA_description_ARR.csv", rows, ("ID", "description"))
    (own_place / "models").symlink_to(tiny_models)
    eyes = '[models.eyes]\nspec = "hf:models/llava"\nmax_tokens = 4\ntemperature = 0\nlocal = { device = "cpu" }\n'
    (own_place / "askance.toml").write_text(eyes, encoding="utf-8")
    return own_place


RUN = ("eval", "run", "pittads/arr-clip", "--data", "data", "-T", "scorer=clip:models/clip")
TEXT = ("--context", "I+T", "-T", "embedder=clip:models/clip", "-T", "descriptions=said")
RUNS: dict[str, tuple[str, ...]] = {"image": (), "text": (*TEXT, "-T", "weight=1.0"), "fused": TEXT}


def ranks(folder: Path) -> list[dict[str, Any]]:
    """The answers of a run, without what is volatile."""
    lines = (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "meta"} for line in lines]


def links(plan: str) -> dict[str, tuple[int, int]]:
    """By link: what is on record, and what is to be made."""
    return {name: (link["hits"], link["known"] + link["below"]) for name, link in json.loads(plan)["links"].items()}


def test_table_11_with_a_real_scorer_is_planned_run_packed_and_replayed_without_torch(
    place: Path, command: Command
) -> None:
    planned = links(command(*RUN, *TEXT, "--plan", "--json"))
    assert planned == {"scores": (0, 30), "vectors": (0, 30 + len(SAID))}

    for name, more in RUNS.items():
        command(*RUN, *more, "--out", f"runs/{name}")
        command(*RUN, *more, "--out", f"again/{name}", "--replay", torch=False)
    scores = {name: [line["trace"]["scores"] for line in ranks(place / "runs" / name)] for name in RUNS}

    assert ranks(place / "runs" / "fused") == ranks(place / "again" / "fused")
    assert scores["fused"] == [
        pytest.approx([(one + other) / 2 for one, other in zip(image, text, strict=True)], abs=1e-6)
        for image, text in zip(scores["image"], scores["text"], strict=True)
    ]
    assert scores["image"] != scores["text"]
    assert links(command(*RUN, *TEXT, "--plan", "--json")) == {"scores": (30, 0), "vectors": (30 + len(SAID), 0)}
    command("pack", *(f"runs/{name}" for name in RUNS), "-o", "table.pack", torch=False)
    assert "run again: 2 same" in command("replay", "table.pack", "--rerun", torch=False)


def test_a_grid_shows_the_row(place: Path, command: Command) -> None:
    models = ("CLIP=clip:models/siglip?scale=cosine", "text encoder=clip:models/siglip", "LLaVA=eyes", "Vicuna=eyes")
    words = ("eval", "grid", "pittads", "--data", "data", "--table", "table-11", "--out", "grid")
    generate(read_statements(statements_in(place / "data")), writer(), out=place / "data" / "hard")

    command(*words, *(word for model in models for word in ("--model", model)))

    (table,) = [path for path in (place / "grid").rglob("*.md") if "table-11" in path.name]
    (found,) = [line for line in table.read_text(encoding="utf-8").splitlines() if line.startswith("| I |")]
    assert "[" in found
