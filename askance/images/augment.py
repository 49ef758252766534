"""Random changes of pictures, by which training sees each of them in another form every time.

They are those of the papers' code, which has them from torchvision; here Pillow makes them, so that nothing else has to
be installed. A picture's form follows from the seed alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from PIL import Image as Pillow
from PIL import ImageEnhance, ImageOps

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Augmentation = Literal["flip", "jitter", "grey"]
"""Left and right changed; another brightness and hue; without colour."""

FLIPPED = 0.5
"""Share of pictures."""
GREYED = 0.1
"""Share of pictures, torchvision's default."""
BRIGHTNESS = 0.5
"""Most that the brightness changes by, as a part of it, in the code of both papers on CLIP."""
HUE = 0.3
"""Most that the hue turns by, as a part of the circle, in the same code."""


def augmented(picture: Picture, changes: Sequence[Augmentation], *, seed: str) -> Picture:
    """A picture of mode `RGB`, changed at random by a seed."""
    draw = random.Random(seed)
    for change in changes:
        match change:
            case "flip":
                picture = ImageOps.mirror(picture) if draw.random() < FLIPPED else picture
            case "jitter":
                picture = _jittered(picture, draw)
            case "grey":
                picture = ImageOps.grayscale(picture).convert("RGB") if draw.random() < GREYED else picture
    return picture


def _jittered(picture: Picture, draw: random.Random) -> Picture:
    brighter = ImageEnhance.Brightness(picture).enhance(draw.uniform(1 - BRIGHTNESS, 1 + BRIGHTNESS))
    turn = round(draw.uniform(-HUE, HUE) * 255)
    hue, saturation, value = brighter.convert("HSV").split()
    return Pillow.merge("HSV", (hue.point([(level + turn) % 256 for level in range(256)]), saturation, value)).convert(
        "RGB"
    )
