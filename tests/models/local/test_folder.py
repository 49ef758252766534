from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.errors import ConfigError
from askance.models.local.folder import ModelFolder, find_folder
from askance.models.settings import Local
from tests.models.local.conftest import MakeFolder, safetensors

LOCAL = Local()


def test_a_folder_is_read(make_folder: MakeFolder) -> None:
    path = make_folder(kind="llava")

    found = find_folder(str(path), LOCAL)

    assert found == ModelFolder(
        path=path, config={"model_type": "llava", "dtype": "bfloat16"}, weights=(path / "model.safetensors",)
    )
    assert (found.kind, found.dtype) == ("llava", "bfloat16")


CONFIGS: dict[str, tuple[dict[str, object], str]] = {
    "older name": ({"torch_dtype": "float16"}, "float16"),
    "of the text model": ({"text_config": {"dtype": "bfloat16"}}, "bfloat16"),
    "not said": ({}, "float32"),
    "no type": ({"dtype": "int3"}, "float32"),
}


@pytest.mark.parametrize(("config", "dtype"), CONFIGS.values(), ids=CONFIGS)
def test_the_type_of_the_numbers(config: dict[str, object], dtype: str) -> None:
    assert ModelFolder(path=Path(), config=config, weights=()).dtype == dtype


def test_a_name_that_was_downloaded(make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = "hub/models--some--model"
    path = make_folder(f"{place}/snapshots/{'ab' * 20}")
    (tmp_path / place / "refs").mkdir()
    (tmp_path / place / "refs" / "main").write_text("ab" * 20, encoding="utf-8")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))

    assert find_folder("some/model", LOCAL).path == path
    assert find_folder("some/model", Local(revision="ab" * 20)).path == path
    with pytest.raises(ConfigError, match=r"^There is no model 'hf:some/model' on this machine"):
        find_folder("some/model", Local(revision="v2"))


def test_what_is_not_here_is_not_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))

    with pytest.raises(ConfigError) as caught:
        find_folder("some/model", LOCAL)

    assert str(caught.value) == (
        "There is no model 'hf:some/model' on this machine: no such folder, and nothing of that name was downloaded. "
        "Nothing is downloaded unasked. Give a folder, `hf:FOLDER`, or fetch it first: `hf download some/model`."
    )


def _without_config(path: Path) -> None:
    (path / "config.json").unlink()


def _broken_config(path: Path) -> None:
    (path / "config.json").write_text("[]", encoding="utf-8")


def _without_weights(path: Path) -> None:
    (path / "model.safetensors").unlink()


def _pickled(path: Path) -> None:
    (path / "model.safetensors").rename(path / "pytorch_model.bin")


def _cut_off(path: Path) -> None:
    (path / "model.safetensors").write_bytes(safetensors(bytes(2000))[:1000])


def _no_tensors(path: Path) -> None:
    (path / "model.safetensors").write_bytes(b"version https://git-lfs.example/spec")


def _without_a_shard(path: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (path / "model.safetensors").rename(path / "model-1.safetensors")


BROKEN = {
    "no configuration": (_without_config, "has no 'config.json'. Copy or download the folder again, whole."),
    "no object": (_broken_config, "is no JSON object. Copy or"),
    "no weights": (_without_weights, "holds no weights in safetensors files. Copy or"),
    "pickle": (_pickled, "pickle files, which can run any code while they are read. Take one with safetensors files"),
    "cut off": (_cut_off, "is not whole: 'model.safetensors' holds 1,000 of 2,074 bytes. Copy or"),
    "no tensors": (_no_tensors, "is not whole: 'model.safetensors' is no safetensors file. Copy or"),
    "a shard": (_without_a_shard, "1 of its 2 files of weights are missing, the first is 'model-2.safetensors'."),
}


@pytest.mark.parametrize(("spoil", "said"), BROKEN.values(), ids=BROKEN)
def test_what_is_not_whole(make_folder: MakeFolder, spoil: object, said: str) -> None:
    path = make_folder()
    assert callable(spoil)
    spoil(path)

    with pytest.raises(ConfigError) as caught:
        find_folder(str(path), LOCAL)

    assert said in str(caught.value)


def test_pickled_weights_are_read_where_they_are_allowed(make_folder: MakeFolder) -> None:
    path = make_folder()
    _pickled(path)

    assert find_folder(str(path), Local(pickled=True)).weights == (path / "pytorch_model.bin",)
