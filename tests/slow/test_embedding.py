"""`st:` with the real weights of a small sentence encoder, in a fresh environment with the extra `local`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from askance.atypicality import Statement
from askance.errors import ConfigError
from askance.evals import aevaluate
from askance.evals.pittads.aor import Aor
from askance.models import cosine, get_embedder
from askance.models.encoders.vectors import half
from askance.replay import open_records
from askance.statistics import linkage_clusters
from tests.evals.newyorker.raw_files import raw_contests
from tests.evals.pittads.files import key_of, record, release_b, row, write, write_csv
from tests.scripted import PICTURE, model_of, scripted
from tests.slow.environments import HERE, ROOT, checked
from tests.slow.hub import hub_of

pytestmark = pytest.mark.slow(group="local")

Embed: TypeAlias = Callable[..., dict[str, Any]]

TEXTS = [
    "The surface of beer mimics the texture of feather, while retaining its original structure.",
    "The surface of the bottle of beer mimics the texture of a feather, while retaining its original structure.",
    "chips is visibly located within fire, in an unconventional manner.",
    "beer",
]


CHICKEN = [
    "Tastes like chicken.",
    "It tastes just like chicken!",
    "Everything tastes like chicken.",
    "You were right, it does taste like chicken.",
    "They say it tastes like chicken.",
    "Mmm, this tastes like chicken.",
]
OTHERS = [
    "I'll have to call you back, the boss is here.",
    "We should have taken the subway.",
    "The rent is high, but the view is worth it.",
    "My lawyer told me to say nothing.",
    "Is this seat taken, doctor?",
    "Honey, the children are watching.",
]


@pytest.fixture
def tiny(local_python: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes a tiny untrained encoder that pools in the given way."""

    def make(pooling: str) -> Path:
        checked([str(local_python), str(HERE / "make_encoder.py"), str(tmp_path / pooling), pooling])
        return tmp_path / pooling

    return make


@pytest.fixture
def embed(local_python: Path, own_place: Path) -> Embed:
    """Embeds texts in a process of its own."""

    def run(
        spec: str, texts: list[str], *more: str, mode: str = "auto", python: Path = local_python, **variables: str
    ) -> Any:
        command = [str(python), str(HERE / "embed.py"), spec, mode, *more]
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        done = subprocess.run(
            command, input=lines, cwd=own_place, capture_output=True, text=True, timeout=300, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables},
        )  # fmt: skip
        return json.loads(done.stdout)

    return run


def test_real_vectors_are_those_of_the_definition_and_replay_without_torch(embed: Embed, minilm: Path) -> None:
    live = embed(f"st:{minilm}", TEXTS, str(minilm))
    replayed = embed(f"st:{minilm}", TEXTS, mode="replay", python=Path(sys.executable))

    assert [len(vector) for vector in live["vectors"]] == [384] * len(TEXTS)
    assert live["vectors"] == [pytest.approx(vector, abs=1e-5) for vector in live["reference"]]
    assert (live["early"], live["loaded"], replayed["loaded"]) == (False, True, False)
    assert (replayed["form"], replayed["vectors"]) == (live["form"], live["vectors"])


def test_statements_of_the_same_objects_are_more_alike_than_others(embed: Embed, minilm: Path) -> None:
    true, same, other, _ = embed(f"st:{minilm}", TEXTS)["vectors"]

    assert cosine(true, same) > 0.9 > 0.5 > cosine(true, other)


def test_captions_of_one_joke_fall_into_one_cluster(embed: Embed, minilm: Path) -> None:
    vectors = embed(f"st:{minilm}", [*CHICKEN, *OTHERS])["vectors"]
    clusters = linkage_clusters([half(vector) for vector in vectors], 7)

    assert len({*clusters[: len(CHICKEN)]}) == 1
    assert len({*clusters}) == 7


def test_tasks_are_made_with_the_real_encoder_and_made_again_from_its_vectors(
    minilm: Path, local_python: Path, own_place: Path, tmp_path: Path
) -> None:
    raw_contests(tmp_path, official=range(1, 46), rated_ones=range(40, 46))
    build = ["-m", "askance", "newyorker", "build", "--embedder", f"st:{minilm}", "--json"]
    build += ["--captions", str(tmp_path / "captions"), "--annotations", str(tmp_path / "annotations.json")]
    found: list[dict[str, bytes]] = []
    for turn in "12":
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": turn}
        out = tmp_path / turn
        done = subprocess.run(
            [str(local_python), *build, "-o", str(out)],
            cwd=own_place, env=environment, capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        said = json.loads(done.stdout)
        found.append({path.name: path.read_bytes() for path in out.rglob("*.json")})

        assert said["embedder"]["pooling"] == "mean"
        assert said["submitted_captions"]["left out as like another in meaning"] == 6 * 6

    assert found[0] == found[1]
    assert len([*(tmp_path / "store" / "vectors").glob("*.rows")]) == 1


async def test_object_recognition_is_scored_with_the_real_encoder(embed: Embed, minilm: Path, tmp_path: Path) -> None:
    ad = key_of(11)
    true, filled = Statement("TR1", "beer", "feather"), Statement("TR1", "glass of beer", "feathers")
    release_b(tmp_path / "data", {ad: record(ad)})
    write_csv(tmp_path / "data" / "final_csv.csv", [row(ad, "1", true.primary, true.secondary)])
    write(tmp_path / "data" / "train_images" / ad, PICTURE.read_bytes())
    said, meant = embed(f"st:{minilm}", [filled.text, true.text], str(minilm))["reference"]
    script = scripted(fill_from_picture={"primary": filled.primary, "secondary": filled.secondary})

    with open_records("records") as store:
        task = Aor(data=tmp_path / "data", vlm=model_of(script, store), embedder=f"st:{minilm}")
        run = await aevaluate(task, out=tmp_path / "run")

    assert run.figure("similarity").value == pytest.approx(cosine(said, meant), abs=1e-5)
    assert run.figure("> 0.7").value == 1
    assert "torch" not in sys.modules


def test_long_texts_and_batches_change_nothing_that_counts(embed: Embed, tiny: Callable[[str], Path]) -> None:
    folder = tiny("mean_tokens")
    texts = ["a cup", "a cup of brick on the table", "brick " * 500, "", "half \ud800", *("the cup" * 3 for _ in "ab")]

    together = embed(f"st:{folder}", texts)["vectors"]
    *alone, cut = embed(f"st:{folder}?batch=1", [*texts[:3], "brick " * 6], mode="live")["vectors"]

    assert together[:3] == [pytest.approx(vector, abs=1e-6) for vector in alone]
    assert together[2] == pytest.approx(cut, abs=1e-6)
    assert together[-1] == together[-2]


def test_an_encoder_that_was_made_otherwise_is_not_run_as_asked(embed: Embed, tiny: Callable[[str], Path]) -> None:
    folder = tiny("cls_token")
    sentence = embed(f"st:{folder}", ["a cup"])

    assert sentence["form"]["pooling"] == "cls"
    with pytest.raises(ConfigError, match=r"pools by cls, and mean is asked for\."):
        get_embedder(f"st:{folder}?pooling=mean")


def test_a_name_on_the_hub_is_downloaded_once_without_pickles_and_code(
    embed: Embed, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tiny("mean_tokens")
    for name in ("pytorch_model.bin", "modeling.py", "1_Pooling/pytorch_model.bin"):
        (folder / name).write_bytes(b"what can run any code")
    home = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}

    with hub_of(folder) as hub:
        first = embed("st:org/name", ["a cup"], HF_ENDPOINT=hub.url, **home)
    again = embed("st:org/name", ["a cup"], mode="live", HF_ENDPOINT="http://127.0.0.1:9", **home)

    asked = sorted(name for name, _ in hub.asked)
    assert {"1_Pooling/config.json", "model.safetensors", "modules.json"} <= set(asked)
    assert asked == sorted(hub.name(file) for file in hub.files() if file.suffix not in {".bin", ".py"})
    assert first["form"]["model"] == {"provider": "st", "model": "org/name@main"}
    (folder / "1_Pooling" / "pytorch_model.bin").unlink()
    assert first["vectors"] == again["vectors"] == embed(f"st:{folder}", ["a cup"])["vectors"]


def test_a_name_that_nobody_has_ends_with_what_to_do(embed: Embed) -> None:
    found = embed("st:nobody/has-this", ["a cup"])

    assert found["error"] == "ConfigError"
    assert found["message"].endswith("Give a folder that holds it whole, as it was saved: `st:FOLDER`.")
    assert "Traceback" not in found["message"]
