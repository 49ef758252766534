"""Real photographs, taken out of scikit-image's wheel without running any of it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from .environments import make_once, packages_into

WHEEL = "scikit-image==0.26.0"
NAMES = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg")
"""An astronaut before a flag, a cat, a cup of coffee, a rocket on its pad."""


def photographs() -> Path:
    """A folder with the files `NAMES` and nothing else that is a picture."""
    return make_once("photographs", [WHEEL, *NAMES], _copy)


def _copy(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as unpacked:
        packages_into(Path(unpacked), [WHEEL])
        for name in NAMES:
            shutil.copyfile(Path(unpacked, "skimage", "data", name), folder / name)
