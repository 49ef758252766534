"""Regions of a picture that an encoder is shown: the whole, or boxes that are highlighted, cropped, or both.

A view is part of a request's key, so a replay draws nothing. Boxes are in pixels of the upright picture. The drawing is
fixed: a highlight is a tint and an outline of one colour, and a crop is the smallest rectangle around all boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.errors import UsageError
from askance.images.pixels import to_rgb

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from askance.images.image import Image

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels of the upright picture; right and bottom are the first that are outside."""

Show = Literal["whole", "highlight", "crop", "both"]
"""The picture as it is; with its boxes highlighted; cropped to them; or both of the last two, as two pictures."""

VERSION = 1
"""Rises when a view begins to draw other pixels."""


@dataclass(frozen=True, slots=True)
class RegionView:
    """A way to show a picture.

    Args:
        show: see `Show`.
        boxes: at least one, unless the picture is shown as it is.

    Raises:
        UsageError: an unknown `show`, boxes with `whole`, no boxes with another, or a box without an area.
    """

    show: Show = "whole"
    boxes: tuple[Box, ...] = ()

    def __post_init__(self) -> None:
        if self.show not in get_args(Show):
            raise UsageError(
                f"A picture cannot be shown as {self.show!r}.", hint=f"Choose one of {', '.join(get_args(Show))}."
            )
        if (self.show == "whole") == bool(self.boxes):
            problem = "takes no boxes" if self.boxes else "needs boxes"
            raise UsageError(
                f"The view {self.show!r} {problem}.", hint="Boxes are (left, top, right, bottom) in pixels."
            )
        object.__setattr__(self, "boxes", tuple(_check_box(box) for box in self.boxes))

    def canonical(self) -> dict[str, Any]:
        """The view as JSON values; empty for the whole picture."""
        if self.show == "whole":
            return {}
        return {"show": self.show, "boxes": [list(box) for box in self.boxes], "version": VERSION}

    def render(self, image: Image) -> tuple[Picture, ...]:
        """The pictures of mode `RGB` that are shown: two for `both`, else one. Boxes are clipped to the picture.

        Raises:
            BadImage: the picture cannot be decoded.
            UsageError: a box lies outside it.
        """
        picture = to_rgb(image.open())
        boxes = [_to_pixels(box, picture.size, image.name) for box in self.boxes]
        if self.show == "whole":
            return (picture,)
        crop = picture.crop(bounding_box(boxes))
        if self.show == "crop":
            return (crop,)
        highlighted = highlight(picture, boxes)
        return (highlighted,) if self.show == "highlight" else (highlighted, crop)


WHOLE_IMAGE = RegionView()
"""The picture as it is."""


def _check_box(box: Sequence[float]) -> Box:
    if len(box) != 4 or not all(math.isfinite(edge) for edge in box):
        raise UsageError(f"This is no box: {tuple(box)!r}.", hint="Give (left, top, right, bottom) in pixels.")
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        raise UsageError(
            f"The box {tuple(box)!r} has no area: {right - left:g}×{bottom - top:g} pixels.",
            hint="Give (left, top, right, bottom), not a corner and a size.",
        )
    return left, top, right, bottom


def _to_pixels(box: Box, size: tuple[int, int], name: str) -> PixelBox:
    """The box in whole pixels, clipped to the picture."""
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
"""Colour of a highlight: magenta, which is rare in photographs."""

TINT = 0.25
"""Share of the colour in a highlighted region."""

OUTLINE = 0.01
"""Width of the outline as a share of the picture's shorter side, at least one pixel. It lies inside the box."""


def highlight(picture: Picture, boxes: Sequence[PixelBox]) -> Picture:
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


def bounding_box(boxes: Sequence[PixelBox]) -> PixelBox:
    """The smallest rectangle around all boxes; an empty one where there are none."""
    if not boxes:
        return (0, 0, 0, 0)
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
