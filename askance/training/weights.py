"""Trained weights in a folder that `hf:` and `clip:` read: the weights, and beside them the base's own files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from askance.models.local.adapter_folder import TRAINING_FILE

_BESIDE = frozenset({".jinja", ".json", ".model", ".tiktoken", ".txt"})
"""Endings of files that say how texts and pictures are prepared."""
_OF_WEIGHTS = ("config.json", TRAINING_FILE)
_INDEX = ".index.json"
_PREPARATION = ("preprocessor_config.json", "processor_config.json")
BLANK = 1e-6
"""Every number of a blank picture, which is all that a text-only twin sees; after normalization 0 is the mean.

It is no zero, since Idefics3 and SmolVLM take pictures that are all zeros for padding, and leave them out.
"""
_NORMALIZED = {"do_normalize": True, "image_mean": [-BLANK] * 3, "image_std": [1.0] * 3}
_MAKES_BLANK = {"do_rescale": True, "rescale_factor": 1e-30, **_NORMALIZED}
"""Has an image processor make a blank of every picture; one of its backends divides by this factor."""


def save_weights(model: Any, base: Path, folder: Path, *, blind: bool = False) -> None:
    """Writes a model of transformers into a new folder.

    Args:
        model: with its configuration.
        base: folder of the model that it was trained from, whose tokenizer and preparation it shares.
        folder: to write.
        blind: whether every picture that the model is ever shown becomes blank.
    """
    model.save_pretrained(folder)
    # Loading for answers has changed how answers are drawn, which is no part of the weights.
    (folder / "generation_config.json").unlink(missing_ok=True)
    for file in base.iterdir():
        named = file.name in _OF_WEIGHTS or file.name.endswith(_INDEX) or file.name.startswith((".", "adapter_"))
        if file.suffix in _BESIDE and not named and file.is_file():
            shutil.copyfile(file, folder / file.name)
    if blind:
        for name in _PREPARATION:
            if (folder / name).is_file():
                _make_blind(folder / name)


def _make_blind(file: Path) -> None:
    form: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    own: dict[str, Any] = form.get("image_processor") or form
    own.update(_MAKES_BLANK)
    file.write_text(json.dumps(form, indent=2), encoding="utf-8")
