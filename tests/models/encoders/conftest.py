"""Tiny dual encoders and sentence encoders where torch and transformers are there."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.slow.make_encoder import make

Folders: TypeAlias = Callable[..., Path]


@pytest.fixture(scope="session")
def duals(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Gives the folder of a tiny untrained dual encoder of a family."""
    torch: Any = import_module("torch")
    making: Any = import_module("tests.slow.make_duals")
    torch.set_num_threads(1)
    place = tmp_path_factory.mktemp("duals")

    def get(family: str) -> Path:
        folder = place / family
        if not folder.exists():
            torch.manual_seed(7)
            making.DUALS[family](folder)
        return folder

    return get


@pytest.fixture
def sentences(tmp_path: Path) -> Folders:
    """Makes a tiny untrained sentence encoder that pools in the given way."""

    def get(name: str, **how: Any) -> Path:
        make(tmp_path / name, **how)
        return tmp_path / name

    return get
