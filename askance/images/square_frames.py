"""Frames: how a picture that is no square is given to an encoder that sees squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from askance.images.pixels import MEAN_COLOUR, pad_to_square

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Frame = Literal["whole", "padded", "resize", "crop", "widescreen"]
"""As it is, which the encoder's own preparation cuts or squeezes; with bars of a mean colour beside it; with black
bars; its middle square; or the squares at its two ends, which miss the middle of one that is longer than both."""

BLACK = (0, 0, 0)


def framed(picture: Picture, frame: Frame) -> tuple[Picture, ...]:
    """The pictures that are encoded in place of a picture of mode `RGB`: two for `widescreen`, else one."""
    match frame:
        case "whole":
            return (picture,)
        case "padded":
            return (pad_to_square(picture, MEAN_COLOUR),)
        case "resize":
            return (pad_to_square(picture, BLACK),)
        case "crop":
            return (_square(picture, 0.5),)
        case "widescreen":
            return (_square(picture, 0), _square(picture, 1))


def _square(picture: Picture, place: float) -> Picture:
    """The largest square at a place from 0, the left or upper end, to 1, the other end."""
    side = min(picture.size)
    left, top = (int((length - side) * place) for length in picture.size)
    return picture.crop((left, top, left + side, top + side))
