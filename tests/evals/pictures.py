"""A run of a chain over single pictures, for the tests: nothing is true of them, and nobody scores what is said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from askance.chains import Chain, action_reason
from askance.evals import Run
from askance.evals.reading_folder import read_pictures
from tests.evals.odd import write_pictures
from tests.scripted import model_of, scripted

OPTIONS = ("I should drink tea", "I should buy this coffee", "I should lay bricks")


def chain_of(**answers: Any) -> Chain:
    """The whole chain, answered by a script; `answers` change what it says."""
    model = model_of(scripted(**answers))
    return action_reason(vlm=model, llm=model)


def picture_run(folder: Path, pictures: Path, *, count: int = 3, **answers: Any) -> Run:
    """A run over so many pictures, kept in a folder."""
    write_pictures(pictures, count)
    named: Mapping[Path, tuple[str, ...]] = dict.fromkeys(sorted(pictures.glob("*.png")), OPTIONS)
    read_pictures(chain_of(**answers), named, out=folder)
    return Run.open(folder)
