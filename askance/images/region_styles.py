"""How the boxes of a view are drawn, in one of two styles.

`askance` tints a box and outlines it in one colour; its right and bottom edges are the first that are outside.
`sherlock` draws what the CLIP models of the Sherlock corpus were trained on (Hessel et al. 2022): see-through purple
with a green outline. There the right and the bottom edge of a box belong to it, and later boxes overwrite earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.images.pixels import MEAN_COLOUR

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

PixelBox: TypeAlias = tuple[int, int, int, int]
"""Left, top, right and bottom in whole pixels; right and bottom are the first that are outside."""

Colour: TypeAlias = tuple[int, int, int]

StyleName = Literal["askance", "sherlock"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionStyle:
    """How boxes are drawn in one style."""

    highlight: Callable[[Picture, Sequence[PixelBox]], Picture]
    """Gives a picture with its boxes highlighted."""
    hidden: Colour
    """Of what is hidden."""
    marked: Colour
    """Of the boxes where nothing but their position is shown."""
    closed: bool
    """Whether the right and the bottom edge of a box belong to it."""
    truncated: bool = False
    """Whether fractions of pixels are cut off, as Pillow does; else a box is rounded outwards, as thousandths are."""
    outline: int = 0
    """How many pixels beyond the border of the picture an edge may lie for its outline to be seen."""

    def hide(self, picture: Picture, boxes: Sequence[PixelBox]) -> Picture:
        """The picture without what is in the boxes."""
        return self._filled(picture.copy(), self.hidden, boxes)

    def blackout(self, picture: Picture, boxes: Sequence[PixelBox]) -> Picture:
        """What is in the boxes, without the rest of the picture."""
        shown = self._blank(picture)
        for box in map(self._area, boxes):
            shown.paste(picture.crop(box), box)
        return shown

    def position(self, picture: Picture, boxes: Sequence[PixelBox]) -> Picture:
        """Where the boxes are, without anything of the picture."""
        return self._filled(self._blank(picture), self.marked, boxes)

    def _filled(self, picture: Picture, colour: Colour, boxes: Sequence[PixelBox]) -> Picture:
        for box in boxes:
            picture.paste(colour, self._area(box))
        return picture

    def _blank(self, picture: Picture) -> Picture:
        from PIL import Image

        return Image.new("RGB", picture.size, self.hidden)

    def _area(self, box: PixelBox) -> PixelBox:
        left, top, right, bottom = box
        return left, top, right + self.closed, bottom + self.closed


MAGENTA = (255, 0, 255)
"""Colour of a highlight in the style `askance`: rare in photographs."""

TINT = 0.25
"""Share of the colour in a highlighted region."""

OUTLINE = 0.01
"""Width of the outline as a share of the picture's shorter side, at least one pixel. It lies inside the box."""


def _tint(picture: Picture, boxes: Sequence[PixelBox]) -> Picture:
    """The picture with each box tinted and outlined; where boxes overlap, a pixel is tinted once."""
    from PIL import Image

    highlighted = picture.copy()
    tinted = Image.blend(picture, Image.new("RGB", picture.size, MAGENTA), TINT)
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
            highlighted.paste(MAGENTA, line)
    return highlighted


PURPLE, GREEN = (255, 5, 205), (5, 255, 55)
"""Colours of the style `sherlock`."""

OPACITY = 60
"""Of the purple in a highlighted region, out of 255."""

OUTLINE_PIXELS = 3
"""Width of the green outline, which lies inside the box."""

GREY = (123, 117, 117)
"""Of what the style `sherlock` hides."""


def _overlay(picture: Picture, boxes: Sequence[PixelBox]) -> Picture:
    """The picture under a layer on which each box is drawn over those before it."""
    from PIL import Image, ImageDraw

    # A layer over all of a large picture takes time. The outline of a thin box lies outside it, too.
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    left, top = max(0, min(lefts) - OUTLINE_PIXELS), max(0, min(tops) - OUTLINE_PIXELS)
    right = min(picture.width, max(rights) + OUTLINE_PIXELS + 1)
    bottom = min(picture.height, max(bottoms) + OUTLINE_PIXELS + 1)
    below = picture.crop((left, top, right, bottom)).convert("RGBA")
    layer = Image.new("RGBA", below.size)
    draw = ImageDraw.Draw(layer)
    for box in boxes:
        moved = box[0] - left, box[1] - top, box[2] - left, box[3] - top
        draw.rectangle(moved, fill=(*PURPLE, OPACITY), outline=(*GREEN, 255), width=OUTLINE_PIXELS)
    highlighted = picture.copy()
    highlighted.paste(Image.alpha_composite(below, layer).convert("RGB"), (left, top))
    return highlighted


STYLES: Mapping[StyleName, RegionStyle] = {
    "askance": RegionStyle(highlight=_tint, hidden=MEAN_COLOUR, marked=MAGENTA, closed=False),
    "sherlock": RegionStyle(
        highlight=_overlay, hidden=GREY, marked=PURPLE, closed=True, truncated=True, outline=OUTLINE_PIXELS
    ),
}
