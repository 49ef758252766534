"""Tiny models and training sets, each made once."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from askance.training import TrainingSet
from tests.training.colour_shapes import KindOfSet, make_set

Learner: TypeAlias = Callable[[str], Path]
DrawnSet: TypeAlias = Callable[[KindOfSet], TrainingSet]


@pytest.fixture(scope="session")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Learner:
    """Gives the folder of a tiny untrained model of a family; needs torch and transformers."""
    torch: Any = import_module("torch")
    making: Any = import_module("tests.training.learners")
    torch.set_num_threads(1)
    place = tmp_path_factory.mktemp("learners")

    def get(family: str) -> Path:
        folder = place / family
        if not folder.exists():
            torch.manual_seed(7)
            making.LEARNERS[family](folder)
        return folder

    return get


@pytest.fixture(scope="session")
def drawn_set(tmp_path_factory: pytest.TempPathFactory) -> DrawnSet:
    """Gives a training set of a kind: 24 examples, and 8 of validation."""
    place = tmp_path_factory.mktemp("sets")

    def get(kind: KindOfSet) -> TrainingSet:
        folder = place / kind
        return TrainingSet.open(folder) if folder.exists() else make_set(folder, kind)

    return get
