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
from askance.images import drawing

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
class View:
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
        picture = drawing.on_white(image.open())
        boxes = [_within(box, picture.size, image.name) for box in self.boxes]
        if self.show == "whole":
            return (picture,)
        cut = drawing.cropped(picture, drawing.around(boxes))
        if self.show == "crop":
            return (cut,)
        highlit = drawing.highlighted(picture, boxes)
        return (highlit,) if self.show == "highlight" else (highlit, cut)


WHOLE = View()
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
