"""Regions of a picture that a model is shown: the whole, or boxes that are highlighted, cropped, or both.

A view is part of a request's key, so a replay draws nothing. Boxes are in pixels of the upright picture, or in
thousandths of its sides, as many models give them; so a replay of such a box does not need the picture. The drawing is
fixed: a highlight is a tint and an outline of one colour, and a crop is the smallest rectangle around all boxes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.errors import BadImage, UsageError
from askance.images.pixels import to_rgb

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from askance.images.image import Image

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom in the unit of the view; right and bottom are the first that are outside."""

Show = Literal["whole", "highlight", "crop", "both"]
"""The picture as it is; with its boxes highlighted; cropped to them; or both of the last two, as two pictures."""

Unit = Literal["pixels", "thousandths"]
"""Pixels of the upright picture, or thousandths of its width and its height."""

VERSION = 1
"""Rises when a view begins to draw other pixels."""


@dataclass(frozen=True, slots=True)
class RegionView:
    """A way to show a picture.

    Args:
        show: see `Show`.
        boxes: at least one, unless the picture is shown as it is.
        unit: of the boxes.

    Raises:
        UsageError: an unknown `show` or `unit`, boxes with `whole`, no boxes with another, or a box without an area.
    """

    show: Show = "whole"
    boxes: tuple[Box, ...] = ()
    unit: Unit = "pixels"

    def __post_init__(self) -> None:
        if self.show not in get_args(Show):
            raise UsageError(
                f"A picture cannot be shown as {self.show!r}.", hint=f"Choose one of {', '.join(get_args(Show))}."
            )
        if self.unit not in get_args(Unit):
            raise UsageError(
                f"The boxes of a view cannot be in {self.unit!r}.", hint=f"Choose one of {', '.join(get_args(Unit))}."
            )
        if (self.show == "whole") == bool(self.boxes):
            problem = "takes no boxes" if self.boxes else "needs boxes"
            raise UsageError(
                f"The view {self.show!r} {problem}.", hint=f"Boxes are (left, top, right, bottom) in {self.unit}."
            )
        object.__setattr__(self, "boxes", tuple(_check_box(box, self.unit) for box in self.boxes))

    def __str__(self) -> str:
        """Such as `crop of (10, 20, 30, 40) in pixels`."""
        boxes = " and ".join(f"({', '.join(f'{edge:g}' for edge in box)})" for box in self.boxes)
        return f"{self.show} of {boxes} in {self.unit}" if boxes else self.show

    def canonical(self) -> dict[str, Any]:
        """The view as JSON values; empty for the whole picture."""
        if self.show == "whole":
            return {}
        unit = {} if self.unit == "pixels" else {"unit": self.unit}
        return {"show": self.show, "boxes": [list(box) for box in self.boxes], "version": VERSION, **unit}

    def render(self, image: Image) -> tuple[Picture, ...]:
        """The pictures of mode `RGB` that are shown: two for `both`, else one. Boxes are clipped to the picture.

        Raises:
            BadImage: the picture cannot be decoded, or a box lies outside it.
        """
        picture = to_rgb(image.open())
        boxes = self.pixel_boxes(picture.size, image.name)
        if self.show == "whole":
            return (picture,)
        crop = picture.crop(bounding_box(boxes))
        if self.show == "crop":
            return (crop,)
        highlighted = highlight(picture, boxes)
        return (highlighted,) if self.show == "highlight" else (highlighted, crop)

    def pixel_boxes(self, size: tuple[int, int], name: str) -> list[PixelBox]:
        """The boxes in whole pixels of a picture of this size, clipped to it.

        Raises:
            BadImage: a box lies outside the picture `name`.
        """
        return [self._pixel_box(box, size, name) for box in self.boxes]

    def _pixel_box(self, box: Box, size: tuple[int, int], name: str) -> PixelBox:
        edges = box if self.unit == "pixels" else [edge * side / 1000 for edge, side in zip(box, size * 2, strict=True)]
        left, top = max(0, math.floor(edges[0])), max(0, math.floor(edges[1]))
        right, bottom = min(size[0], math.ceil(edges[2])), min(size[1], math.ceil(edges[3]))
        if left >= right or top >= bottom:
            raise BadImage(
                f"The box {box!r} lies outside the picture {name!r}, which has {size[0]}×{size[1]} pixels.",
                hint=_OTHER_UNIT[self.unit],
            )
        return left, top, right, bottom


WHOLE_IMAGE = RegionView()
"""The picture as it is."""


def _check_box(box: Sequence[float], unit: Unit) -> Box:
    if len(box) != 4 or not all(math.isfinite(edge) for edge in box):
        raise UsageError(f"This is no box: {tuple(box)!r}.", hint=f"Give (left, top, right, bottom) in {unit}.")
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        raise UsageError(
            f"The box {tuple(box)!r} has no area: {right - left:g}×{bottom - top:g} {unit}.",
            hint="Give (left, top, right, bottom), not a corner and a size.",
        )
    return _plain(left), _plain(top), _plain(right), _plain(bottom)


def _plain(edge: float) -> float:
    """A whole number as an integer, as records write it."""
    return int(edge) if edge == int(edge) else float(edge)


_OTHER_UNIT: Mapping[Unit, str] = {
    "pixels": "Boxes are in pixels of the upright picture; give `unit='thousandths'` for thousandths of its sides.",
    "thousandths": "Boxes are in thousandths of the picture's sides; leave `unit` out for pixels.",
}


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

    highlighted = picture.copy()
    tinted = Image.blend(picture, Image.new("RGB", picture.size, COLOUR), TINT)
    for box in boxes:
        highlighted.paste(tinted.crop(box), box)
    width = max(1, round(min(picture.size) * OUTLINE))
    for left, top, right, bottom in boxes:
        for line in (
            (left, top, right, min(bottom, top + width)),
            (left, max(top, bottom - width), right, bottom),
            (left, top, min(right, left + width), bottom),
            (max(left, right - width), top, right, bottom),
        ):
            highlighted.paste(COLOUR, line)
    return highlighted


def bounding_box(boxes: Sequence[PixelBox]) -> PixelBox:
    """The smallest rectangle around all boxes; an empty one where there are none."""
    if not boxes:
        return (0, 0, 0, 0)
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
