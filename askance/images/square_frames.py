"""Frames: how a picture that is no square is given to an encoder that sees squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from askance.images.pixels import MEAN_COLOUR, pad_to_square

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Frame = Literal["whole", "padded", "resize", "crop", "widescreen"]
"""As it is, which the encoder's own preparation cuts or squeezes; with bars of a mean colour beside it; scaled with
transparent bars, which are black then; its middle square, cut out when it is scaled; or the squares at its two ends,
which miss the middle of one that is longer than both."""

CLEAR = (0, 0, 0, 0)
"""Of the bars of `resize`, as Sherlock's authors have them: no edge of a picture is mixed with a colour in scaling."""

_VERSIONS: Final[dict[str, int]] = {"crop": 2, "resize": 2}
"""Of frames that once gave other pixels."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """How an encoder scales pictures."""

    side: int
    """Pixels of the shorter side."""
    resample: int
    """Filter of Pillow's `Image.resize`."""


def frame_form(frame: Frame) -> dict[str, Any]:
    """A frame in the canonical form of what is computed by it."""
    return {"frame": frame, **({"frame_version": _VERSIONS[frame]} if frame in _VERSIONS else {})}


def framed(picture: Picture, frame: Frame, *, scaling: Scaling | None = None) -> tuple[Picture, ...]:
    """The pictures that are encoded in place of a picture of mode `RGB`: two for `widescreen`, else one.

    Args:
        picture: of any size.
        frame: how it is made into squares.
        scaling: of the encoder, which `crop` and `resize` need; without one the picture keeps its size.
    """
    match frame:
        case "whole":
            return (picture,)
        case "padded":
            return (pad_to_square(picture, MEAN_COLOUR),)
        case "resize":
            square = pad_to_square(picture.convert("RGBA"), CLEAR)
            return ((square if scaling is None else _scaled(square, scaling)).convert("RGB"),)
        case "crop":
            return (_square(picture if scaling is None else _scaled(picture, scaling), 0.5),)
        case "widescreen":
            return (_square(picture, 0), _square(picture, 1))


def _scaled(picture: Picture, scaling: Scaling) -> Picture:
    """The picture with its shorter side as an encoder has it; the other is rounded down."""
    shorter = min(picture.size)
    width, height = (scaling.side * length // shorter for length in picture.size)
    return picture.resize((width, height), scaling.resample)


def _square(picture: Picture, place: float) -> Picture:
    """The largest square at a place from 0, the left or upper end, to 1, the other end; halves are rounded to even."""
    side = min(picture.size)
    left, top = (round((length - side) * place) for length in picture.size)
    return picture.crop((left, top, left + side, top + side))
