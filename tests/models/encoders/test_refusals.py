"""What a `clip:` spec cannot mean is said before anything is loaded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from askance.chat import JsonObject, key_of
from askance.errors import ConfigError, MissingExtra
from askance.images import Image, Shown
from askance.models import Engine, get_embedder, get_scorer
from askance.models.encoders.shared_encoder import shared_encoder
from askance.models.encoders.vectors import MemoryVectors
from askance.models.settings import Local
from askance.replay import MemoryStore
from tests.models.local.conftest import safetensors
from tests.scripted import PICTURE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like a dual encoder's."""
    config: dict[str, object] = {"model_type": "clip", "text_config": {}, "vision_config": {}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(safetensors(b"1234"))
    return tmp_path


def engine() -> Engine:
    return Engine(records=MemoryStore())


SETTINGS: dict[str, tuple[str, str]] = {
    "unknown": (
        "scal=logits",
        "has no setting 'scal'. Nearest: 'scale'. There are: batch, device, draw, dtype, frame, long,",
    ),
    "no such scale": ("scale=softmax", "cannot be 'softmax'. It takes: choose one of cosine, logits, sigmoid."),
    "no such frame": (
        "frame=square",
        "cannot be 'square'. It takes: choose one of whole, padded, resize, crop, widescreen.",
    ),
    "no such style": ("draw=red", "cannot be 'red'. It takes: choose one of askance, sherlock."),
    "no number": ("batch=0", "cannot be '0'. It takes: a number from 1 up."),
    "no truth": ("pickled=yes", "cannot be 'yes'. It takes: choose one of true, false."),
    "another kind's": ("scale=sigmoid", "is of the kind 'clip', which gives no probability for a pair. Take"),
}


@pytest.mark.parametrize(("settings", "message"), SETTINGS.values(), ids=SETTINGS)
def test_settings_that_there_are_not(folder: Path, settings: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        get_scorer(f"clip:{folder}?{settings}", engine=engine())
    assert message in str(caught.value)


def test_settings_at_their_defaults_are_in_no_key(folder: Path) -> None:
    image, spec = Image.from_digest("a" * 64), f"clip:{folder}"
    scorer, embedder = get_scorer(spec, engine=engine()), get_embedder(spec, engine=engine())
    model = scorer.id.canonical()

    assert scorer.form() == {
        "model": model,
        "scale": "cosine",
        "long": "mean",
        "frame": "whole",
        "policy": {"name": "original", "version": 1},
    }
    assert embedder.form() == {"model": model, "long": "mean", "normalized": True}
    # What a vector is kept under.
    job = shared_encoder(str(folder), Local(batch=32)).picture_job(Shown(image), MemoryVectors(), frame="whole")
    kept: JsonObject = {"model": model, "tower": "picture", "image": {"sha256": "a" * 64, "view": {}, "frame": "whole"}}
    assert job.key == key_of("embed", kept)


def test_settings_that_decide_a_score_are_in_its_key(folder: Path) -> None:
    settings = "frame=widescreen&draw=sherlock&prefix=inference: "
    form = get_scorer(f"clip:{folder}?{settings}", engine=engine()).form()
    assert {name: form[name] for name in ("frame", "draw", "prefix")} == {
        "frame": "widescreen",
        "draw": "sherlock",
        "prefix": "inference:",
    }
    embedder = get_embedder(f"clip:{folder}?frame=widescreen&prefix=a+b", engine=engine()).form()
    assert (embedder["frame"], embedder["prefix"]) == ("widescreen", "a+b")
    with pytest.raises(ConfigError, match="has no setting 'draw'"):
        get_embedder(f"clip:{folder}?draw=sherlock", engine=engine())


def test_an_embedder_has_no_best_part(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"gives one vector a text, and `long=max` would need several\."):
        get_embedder(f"clip:{folder}?long=max", engine=engine())


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"The folder of the model 'clip:.*' has no 'config\.json'\. Copy or download the folder again, whole\."),
        ({"config.json": '{"model_type": "clip"}'}, r"holds no weights in safetensors files\."),
        ({"config.json": "{}", "pytorch_model.bin": ""}, r"has its weights in pickle files.*`pickled = true`"),
    ],
    ids=["empty", "no weights", "pickled"],
)
def test_folders_that_are_not_whole(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")

    with pytest.raises(ConfigError, match=message):
        get_scorer(f"clip:{tmp_path}", engine=engine())


def test_a_name_that_was_not_downloaded_says_how_to_bring_it() -> None:
    with pytest.raises(ConfigError) as caught:
        get_scorer("clip:nobody/has-this", engine=engine())
    assert str(caught.value).startswith("There is no model 'clip:nobody/has-this' on this machine")
    assert str(caught.value).endswith("`clip:FOLDER`, or fetch it first: `hf download nobody/has-this`.")


async def test_a_package_that_is_not_there_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(MissingExtra) as caught:
        await get_scorer(f"clip:{folder}", engine=engine()).score(Image.load(PICTURE), ["a cup"])
    assert str(caught.value).endswith(
        "needs torch and transformers, and torch is not installed. pip install 'askance[local]'. On Linux that brings "
        "CUDA; without it, for a machine with no such GPU: uv pip install 'askance[local]' --torch-backend=cpu"
    )


def test_who_it_is_depends_on_weights_and_on_what_prepares_pictures(folder: Path) -> None:
    first = get_scorer(f"clip:{folder}", engine=engine()).id
    (folder / "preprocessor_config.json").write_text('{"do_resize": false}', encoding="utf-8")
    second = get_scorer(f"clip:{folder}", engine=engine()).id
    (folder / "model.safetensors").write_bytes(safetensors(b"5678"))
    third = get_scorer(f"clip:{folder}", engine=engine()).id

    assert len({str(first), str(second), str(third)}) == 3
    assert str(first).startswith("clip:clip:")
