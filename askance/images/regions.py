"""What of a picture is shown to an encoder: all of it, or boxes in it, highlighted, cut out, or both.

A view enters the key of what is asked, so a replay draws nothing. Boxes are in pixels of the upright picture. How it is
drawn is fixed: a highlight is a tint and an outline of one colour, a cut-out the smallest rectangle around all boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.errors import UsageError
from askance.images.pixels import on_white

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from askance.images.image import Image

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels of the upright picture; right and bottom are the first that are outside."""

Show = Literal["whole", "highlight", "crop", "both"]
"""The picture as it is; with its boxes highlighted; what is in them; or a picture of each of the last two."""

VERSION = 1
"""Rises when a view begins to draw other pixels."""


@dataclass(frozen=True, slots=True)
class RegionView:
    """A way to show a picture.

    Args:
        show: see `Show`.
        boxes: at least one, unless the picture is shown as it is.

    Raises:
        UsageError: no such way, boxes where none are shown or none where they are, or a box without an area.
    """

    show: Show = "whole"
    boxes: tuple[Box, ...] = ()

    def __post_init__(self) -> None:
        if self.show not in get_args(Show):
            raise UsageError(
                f"A picture cannot be shown as {self.show!r}.", hint=f"Choose one of {', '.join(get_args(Show))}."
            )
        if (self.show == "whole") == bool(self.boxes):
            said = "shows no boxes, and some are given" if self.boxes else "shows boxes, and none is given"
            raise UsageError(f"The view {self.show!r} {said}.", hint="Boxes are (left, top, right, bottom) in pixels.")
        object.__setattr__(self, "boxes", tuple(_checked(box) for box in self.boxes))

    def canonical(self) -> dict[str, Any]:
        """The view as JSON values; empty for the picture as it is."""
        if self.show == "whole":
            return {}
        return {"show": self.show, "boxes": [list(box) for box in self.boxes], "version": VERSION}

    def render(self, image: Image) -> tuple[Picture, ...]:
        """The pictures of mode `RGB` that are shown: two for `both`, else one. Boxes are cut off at its borders.

        Raises:
            BadImage: the picture cannot be decoded.
            UsageError: a box lies outside it.
        """
        picture = on_white(image.open())
        boxes = [_within(box, picture.size, image.name) for box in self.boxes]
        if self.show == "whole":
            return (picture,)
        cut = cropped(picture, around(boxes))
        if self.show == "crop":
            return (cut,)
        highlit = highlighted(picture, boxes)
        return (highlit,) if self.show == "highlight" else (highlit, cut)


WHOLE_IMAGE = RegionView()
"""The picture as it is."""


def _checked(box: Sequence[float]) -> Box:
    if len(box) != 4 or not all(math.isfinite(edge) for edge in box):
        raise UsageError(f"This is no box: {tuple(box)!r}.", hint="Give (left, top, right, bottom) in pixels.")
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        raise UsageError(
            f"The box {tuple(box)!r} has no area: {right - left:g}×{bottom - top:g} pixels.",
            hint="Give (left, top, right, bottom), not a corner and a size.",
        )
    return left, top, right, bottom


def _within(box: Box, size: tuple[int, int], name: str) -> tuple[int, int, int, int]:
    """The whole pixels that a box touches, as far as they are in the picture."""
    left, top = max(0, math.floor(box[0])), max(0, math.floor(box[1]))
    right, bottom = min(size[0], math.ceil(box[2])), min(size[1], math.ceil(box[3]))
    if left >= right or top >= bottom:
        raise UsageError(
            f"The box {box!r} lies outside the picture {name!r}, which has {size[0]}×{size[1]} pixels.",
            hint="Boxes are in pixels of the upright picture, not in parts of its sides.",
        )
    return left, top, right, bottom


PixelBox: TypeAlias = tuple[int, int, int, int]
"""Left, top, right and bottom in whole pixels, inside the picture."""

COLOUR = (255, 0, 255)
"""Of a highlight: magenta, which photographs seldom have."""

TINT = 0.25
"""Part of the colour in what is highlighted."""

OUTLINE = 0.01
"""Width of the outline, in shorter sides of the picture; one pixel at least. It lies inside the box."""


def highlighted(picture: Picture, boxes: Sequence[PixelBox]) -> Picture:
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


def cropped(picture: Picture, box: PixelBox) -> Picture:
    """What is in the box."""
    return picture.crop(box)


def around(boxes: Sequence[PixelBox]) -> PixelBox:
    """The smallest rectangle around all boxes; of none, one without pixels."""
    if not boxes:
        return (0, 0, 0, 0)
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
