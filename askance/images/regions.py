"""Regions of a picture that a model is shown: the whole, or boxes that are highlighted, cropped, hidden or left alone.

A view is part of a request's key, so a replay draws nothing. Boxes are in pixels of the upright picture; in thousandths
of its sides, as many models give them, so that a replay of such a box does not need the picture; or in pixels of the
picture as its file stores it, as data sets give them. What is shown is upright in any case. A crop is the smallest
rectangle around all boxes; all else is drawn in one of the styles of `region_styles.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.errors import BadImage, UsageError
from askance.images.pixels import as_stored, to_rgb, upright
from askance.images.region_styles import STYLES, PixelBox, RegionStyle, StyleName

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from askance.images.image import Image

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom in the unit of the view; right and bottom are the first that are outside."""

Show = Literal["whole", "highlight", "crop", "both", "hide", "blackout", "position"]
"""The picture as it is; with its boxes highlighted; cropped to them; both of the last two, as two pictures; without
what is in the boxes; without what is around them; or where the boxes are, without anything of the picture."""

Unit = Literal["pixels", "thousandths", "native pixels"]
"""Pixels of the upright picture; thousandths of its width and its height; or pixels of the picture as its file stores
it, before the orientation in its EXIF is applied."""

VERSION = 1
"""Rises when a view begins to draw other pixels."""

TRUNCATED_VERSION = 2
"""Of views whose boxes have fractions of pixels that are cut off; once they were rounded outwards."""


def iou(a: Sequence[float], b: Sequence[float]) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    shared = width * height
    whole = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - shared
    return shared / whole if whole > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RegionView:
    """A way to show a picture.

    Args:
        show: see `Show`.
        boxes: at least one, unless the picture is shown as it is.
        unit: of the boxes.
        style: how they are drawn, see `region_styles.py`; `whole` and `crop` have none.

    Raises:
        UsageError: an unknown `show`, `unit` or `style`, boxes with `whole`, no boxes with another, or a box without an
            area.
    """

    show: Show = "whole"
    boxes: tuple[Box, ...] = ()
    unit: Unit = "pixels"
    style: StyleName = "askance"

    def __post_init__(self) -> None:
        _check_choice(self.show, Show, "A picture cannot be shown as")
        _check_choice(self.unit, Unit, "The boxes of a view cannot be in")
        _check_choice(self.style, StyleName, "The boxes of a view cannot be drawn in the style")
        if (self.show == "whole") == bool(self.boxes):
            problem = "takes no boxes" if self.boxes else "needs boxes"
            raise UsageError(
                f"The view {self.show!r} {problem}.", hint=f"Boxes are (left, top, right, bottom) in {self.unit}."
            )
        object.__setattr__(self, "boxes", tuple(_check_box(box, self.unit) for box in self.boxes))
        # Where nothing is drawn, no style and no unit tell equal views apart.
        if self.show in {"whole", "crop"}:
            object.__setattr__(self, "style", "askance")
        if self.show == "whole":
            object.__setattr__(self, "unit", "pixels")

    def __str__(self) -> str:
        """Such as `crop of (10, 20, 30, 40) in pixels`."""
        boxes = " and ".join(f"({', '.join(f'{edge:g}' for edge in box)})" for box in self.boxes)
        style = "" if self.style == "askance" else f", drawn as in {self.style}"
        return f"{self.show} of {boxes} in {self.unit}{style}" if boxes else self.show

    def canonical(self) -> dict[str, Any]:
        """The view as JSON values; empty for the whole picture."""
        if self.show == "whole":
            return {}
        unit = {} if self.unit == "pixels" else {"unit": self.unit}
        style = {} if self.style == "askance" else {"style": self.style}
        cut = self._truncates and any(edge != int(edge) for box in self.boxes for edge in box)
        version = TRUNCATED_VERSION if cut else VERSION
        return {"show": self.show, "boxes": [list(box) for box in self.boxes], "version": version, **unit, **style}

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> RegionView:
        """The view whose canonical form this is.

        Raises:
            UsageError: it is that of no view, or of one that another version drew.
        """
        try:
            boxes = tuple(tuple(box) for box in form["boxes"])
            view = cls(form["show"], boxes, form.get("unit", "pixels"), form.get("style", "askance"))
            same = view.canonical() == dict(form)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise _no_view(form) from error
        if not same:
            raise _no_view(form)
        return view

    def render(self, image: Image) -> tuple[Picture, ...]:
        """The pictures of mode `RGB` that are shown: two for `both`, else one. Boxes are clipped to the picture.

        Raises:
            BadImage: the picture cannot be decoded, or a box lies outside it.
        """
        return self.draw(to_rgb(image.open()), image)

    def draw(self, picture: Picture, image: Image) -> tuple[Picture, ...]:
        """As `render`, where `picture` is `image`, decoded before: upright and of mode `RGB`.

        Raises:
            BadImage: a box lies outside the picture.
        """
        if self.show == "whole":
            return (picture,)
        orientation = self._orientation(image)
        drawn = self._drawn(as_stored(picture, orientation), image.name)
        return tuple(upright(each, orientation) for each in drawn)

    def _drawn(self, picture: Picture, name: str) -> tuple[Picture, ...]:
        style = STYLES[self.style]
        boxes = self._pixel_boxes(picture.size, name, style)
        match self.show:
            case "hide":
                return (style.hide(picture, boxes),)
            case "blackout":
                return (style.blackout(picture, boxes),)
            case "position":
                return (style.position(picture, boxes),)
            case "highlight":
                return (style.highlight(picture, boxes),)
            case _:
                crop = picture.crop(bounding_box(self._pixel_boxes(picture.size, name)))
                return (crop,) if self.show == "crop" else (style.highlight(picture, boxes), crop)

    def size_of(self, image: Image) -> tuple[int, int]:
        """Width and height, in pixels, of what is shown of the picture, as its header tells; of `both` of the first.

        Raises:
            BadImage: the picture cannot be used, or a crop lies outside it.
        """
        size = image.info.upright_size
        if self.show != "crop":
            return size
        sideways = self._orientation(image) > 4
        left, top, right, bottom = bounding_box(self._pixel_boxes((size[1], size[0]) if sideways else size, image.name))
        size = right - left, bottom - top
        return (size[1], size[0]) if sideways else size

    def _orientation(self, image: Image) -> int:
        """That of EXIF where the boxes are in pixels before it is applied; else 1, which is upright."""
        return image.info.orientation if self.unit == "native pixels" else 1

    def _pixel_boxes(self, size: tuple[int, int], name: str, style: RegionStyle | None = None) -> list[PixelBox]:
        """The boxes in whole pixels of a picture of this size, as a style draws them; by default what is cropped.

        They are clipped to the picture, and for a style to so many pixels beyond its border as an outline is wide.

        Raises:
            BadImage: a box lies outside the picture `name`.
        """
        width, height = size
        beyond = 0 if style is None else style.outline
        scaled = [self._in_pixels(box, size) for box in self.boxes]
        for box, (left, top, right, bottom) in zip(self.boxes, scaled, strict=True):
            if left >= width or top >= height or right <= 0 or bottom <= 0:
                raise BadImage(
                    f"The box {box!r} lies outside the picture {name!r}, which has {width}×{height} pixels.",
                    hint=_OTHER_UNIT[self.unit],
                )
        return [
            (max(-beyond, left), max(-beyond, top), min(width + beyond, right), min(height + beyond, bottom))
            for left, top, right, bottom in map(_truncated if style and self._truncates else _rounded_outwards, scaled)
        ]

    def _in_pixels(self, box: Box, size: tuple[int, int]) -> Box:
        if self.unit != "thousandths":
            return box
        left, top, right, bottom = (edge * side / 1000 for edge, side in zip(box, size * 2, strict=True))
        return left, top, right, bottom

    @property
    def _truncates(self) -> bool:
        """Whether fractions of pixels are cut off where boxes are drawn; those of thousandths are never."""
        return STYLES[self.style].truncated and self.unit != "thousandths"


def _truncated(box: Box) -> PixelBox:
    """A box whose fractions of pixels are cut off, towards zero."""
    left, top, right, bottom = map(int, box)
    return left, top, right, bottom


def _rounded_outwards(box: Box) -> PixelBox:
    """The smallest box of whole pixels around another one."""
    left, top, right, bottom = box
    return math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)


def _no_view(form: object) -> UsageError:
    return UsageError(f"This is no view of a picture: {str(form)[:80]}.", hint="Give what `RegionView.canonical` gave.")


def _check_choice(value: str, choices: Any, problem: str) -> None:
    if value not in get_args(choices):
        raise UsageError(f"{problem} {value!r}.", hint=f"Choose one of {', '.join(get_args(choices))}.")


def _check_box(box: Sequence[float], unit: Unit) -> Box:
    if len(box) != 4 or not all(math.isfinite(edge) for edge in box):
        raise UsageError(f"This is no box: {tuple(box)!r}.", hint=f"Give (left, top, right, bottom) in {unit}.")
    left, top, right, bottom = box
    if right <= left or bottom <= top:
        raise UsageError(
            f"The box {tuple(box)!r} has no area: {right - left:g}×{bottom - top:g} {unit}.",
            hint="Give (left, top, right, bottom), not a corner and a size.",
        )
    return plain(left), plain(top), plain(right), plain(bottom)


def plain(edge: float) -> float:
    """A number as an integer where it is one, as records write it."""
    return int(edge) if edge == int(edge) else float(edge)


_OTHER_UNIT: Mapping[Unit, str] = {
    "pixels": "Boxes are in pixels of the upright picture; give `unit='thousandths'` for thousandths of its sides.",
    "thousandths": "Boxes are in thousandths of the picture's sides; leave `unit` out for pixels.",
    "native pixels": "Boxes are in pixels of the picture as its file stores it; leave `unit` out for the upright one.",
}


def bounding_box(boxes: Sequence[PixelBox]) -> PixelBox:
    """The smallest rectangle around all boxes; an empty one where there are none."""
    if not boxes:
        return (0, 0, 0, 0)
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


WHOLE_IMAGE = RegionView()
"""The picture as it is."""
