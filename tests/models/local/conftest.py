"""Folders as models are saved, made by hand; and tiny models where torch and transformers are there."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest

MakeFolder: TypeAlias = Callable[..., Path]


def safetensors(numbers: bytes) -> bytes:
    """The bytes of a file that holds one tensor of bytes."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(numbers)], "data_offsets": [0, len(numbers)]}}).encode()
    return len(header).to_bytes(8, "little") + header + numbers


@pytest.fixture
def make_folder(tmp_path: Path) -> MakeFolder:
    """Makes a folder with a configuration and weights; further files by name."""

    def make(name: str = "model", *, weights: bytes = b"1234", kind: str = "llama", **files: bytes) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"model_type": kind, "dtype": "bfloat16"}), encoding="utf-8")
        (folder / "model.safetensors").write_bytes(safetensors(weights))
        for file, content in files.items():
            (folder / file.replace("__", ".")).write_bytes(content)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the folder of a tiny untrained model of a family; needs torch and transformers."""
    torch: Any = import_module("torch")
    making: Any = import_module("tests.slow.make_tiny")
    torch.set_num_threads(1)
    place = tmp_path_factory.mktemp("tiny")

    def get(family: str) -> Path:
        folder = place / family
        if not folder.exists():
            torch.manual_seed(7)
            making.FAMILIES[family](folder)
        return folder

    return get
