"""Pixels of views: boxes highlighted and cut out, and bars that make a picture square. The same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from askance.images.pixels import opaque

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Pixels: TypeAlias = tuple[int, int, int, int]
"""Left, top, right and bottom in whole pixels, inside the picture."""

COLOUR = (255, 0, 255)
"""Of a highlight: magenta, which photographs seldom have."""

TINT = 0.25
"""Part of the colour in what is highlighted."""

OUTLINE = 0.01
"""Width of the outline, in shorter sides of the picture; one pixel at least. It lies inside the box."""

BARS = (123, 117, 104)
"""What is beside a padded picture: the mean colour that CLIP's pictures are brought to zero by."""


def on_white(picture: Picture) -> Picture:
    """The picture as `RGB`, what is transparent on white."""
    return opaque(picture).convert("RGB")


def highlighted(picture: Picture, boxes: Sequence[Pixels]) -> Picture:
    """The picture with each box tinted and outlined; where boxes overlap, a pixel is tinted once."""
    from PIL import Image

    found = picture.copy()
    tinted = Image.blend(picture, Image.new("RGB", picture.size, COLOUR), TINT)
    for box in boxes:
        found.paste(tinted.crop(box), box)
    width = max(1, round(min(picture.size) * OUTLINE))
    for left, top, right, bottom in boxes:
        for line in (
            (left, top, right, min(bottom, top + width)),
            (left, max(top, bottom - width), right, bottom),
            (left, top, min(right, left + width), bottom),
            (max(left, right - width), top, right, bottom),
        ):
            found.paste(COLOUR, line)
    return found


def cropped(picture: Picture, box: Pixels) -> Picture:
    """What is in the box."""
    return picture.crop(box)


def around(boxes: Sequence[Pixels]) -> Pixels:
    """The smallest rectangle around all boxes; of none, one without pixels."""
    if not boxes:
        return (0, 0, 0, 0)
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def squared(picture: Picture) -> Picture:
    """The picture in the middle of a square, with bars beside it: whoever cuts out the middle sees all of it."""
    from PIL import Image

    side = max(picture.size)
    if picture.size == (side, side):
        return picture
    found = Image.new("RGB", (side, side), BARS)
    found.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return found
