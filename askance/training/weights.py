"""Trained weights in a folder that `hf:` and `clip:` read: the weights, and beside them the base's own files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

_BESIDE = frozenset({".jinja", ".json", ".model", ".tiktoken", ".txt"})
"""Endings of files that say how texts and pictures are prepared."""
_OF_WEIGHTS = ("config.json", "train.json")
_INDEX = ".index.json"


def save_weights(model: Any, base: Path, folder: Path) -> None:
    """Writes a model of transformers into a new folder.

    Args:
        model: with its configuration.
        base: folder of the model that it was trained from, whose tokenizer and preparation it shares.
        folder: to write.
    """
    model.save_pretrained(folder)
    # Loading for answers has changed how answers are drawn, which is no part of the weights.
    (folder / "generation_config.json").unlink(missing_ok=True)
    for file in base.iterdir():
        named = file.name in _OF_WEIGHTS or file.name.endswith(_INDEX) or file.name.startswith((".", "adapter_"))
        if file.suffix in _BESIDE and not named and file.is_file():
            shutil.copyfile(file, folder / file.name)
