"""How pictures are made into squares."""

from __future__ import annotations

from typing import Any

import pytest
from PIL import Image as Pillow

from askance.images.pixels import MEAN_COLOUR
from askance.images.square_frames import Scaling, frame_form, framed

GREY = (100, 100, 100)


def grey(size: tuple[int, int]) -> Pillow.Image:
    """Grey, with a number at each place along the longer side."""
    picture = Pillow.new("RGB", size, GREY)
    for place in range(max(size)):
        picture.putpixel((place, 0) if size[0] > size[1] else (0, place), (place, 0, 0))
    return picture


@pytest.mark.parametrize(
    ("size", "frame", "corner"),
    [
        ((40, 20), "padded", MEAN_COLOUR),
        ((20, 40), "padded", MEAN_COLOUR),
        ((40, 20), "resize", (0, 0, 0)),
        ((20, 40), "resize", (0, 0, 0)),
        ((20, 20), "padded", GREY),
    ],
    ids=str,
)
def test_a_padded_square_has_bars_beside_what_is_not_square(size: tuple[int, int], frame: Any, corner: object) -> None:
    (drawn,) = framed(Pillow.new("RGB", size, GREY), frame)

    side = max(size)
    assert (drawn.size, drawn.getpixel((0, 0))) == ((side, side), corner)
    assert drawn.getpixel((side // 2, side // 2)) == GREY
    assert (size[0] * size[1], GREY) in (drawn.getcolors() or [])


@pytest.mark.parametrize(
    ("size", "frame", "begins"),
    [
        ((41, 20), "crop", [10]),
        ((20, 41), "crop", [10]),
        ((41, 30), "widescreen", [0, 11]),
        ((30, 41), "widescreen", [0, 11]),
        ((90, 20), "widescreen", [0, 70]),
        ((20, 20), "widescreen", [0, 0]),
        ((20, 20), "crop", [0]),
    ],
    ids=str,
)
def test_squares_are_cut_out_where_the_frame_says(size: tuple[int, int], frame: Any, begins: list[int]) -> None:
    drawn = framed(grey(size), frame)

    assert {each.size for each in drawn} == {(min(size), min(size))}
    assert [each.getpixel((0, 0)) for each in drawn] == [(begin, 0, 0) for begin in begins]


@pytest.mark.parametrize(
    ("size", "scaled", "box"),
    [((61, 40), (30, 20), (5, 0, 25, 20)), ((40, 65), (20, 32), (0, 6, 20, 26)), ((20, 20), (20, 20), (0, 0, 20, 20))],
    ids=str,
)
def test_a_crop_is_cut_out_of_what_is_scaled(
    size: tuple[int, int], scaled: tuple[int, int], box: tuple[int, int, int, int]
) -> None:
    picture = Pillow.effect_noise(size, 90).convert("RGB")

    (cut,) = framed(picture, "crop", scaling=Scaling(20, Pillow.Resampling.BICUBIC))

    assert cut.tobytes() == picture.resize(scaled, Pillow.Resampling.BICUBIC).crop(box).tobytes()


@pytest.mark.parametrize("size", [(61, 40), (40, 65), (30, 30), (50, 10)], ids=str)
def test_what_is_resized_with_bars_does_not_blend_with_them(size: tuple[int, int]) -> None:
    """The authors pad what they drew regions on, which has transparency, and drop it after they have scaled."""
    picture = Pillow.effect_noise(size, 90).convert("RGB")
    longest = max(size)
    square = Pillow.new("RGBA", (longest, longest))
    square.paste(picture.convert("RGBA"), ((longest - size[0]) // 2, (longest - size[1]) // 2))

    (drawn,) = framed(picture, "resize", scaling=Scaling(20, Pillow.Resampling.BICUBIC))

    assert drawn.mode == "RGB"
    assert drawn.tobytes() == square.resize((20, 20), Pillow.Resampling.BICUBIC).convert("RGB").tobytes()


def test_a_frame_that_gives_other_pixels_now_has_another_key() -> None:
    assert frame_form("crop") == {"frame": "crop", "frame_version": 2}
    assert frame_form("resize") == {"frame": "resize", "frame_version": 2}
    assert frame_form("widescreen") == {"frame": "widescreen"}


def test_a_whole_picture_is_as_it_is() -> None:
    picture = grey((40, 20))
    assert framed(picture, "whole") == (picture,)
