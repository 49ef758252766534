from __future__ import annotations

import math
from typing import Any

import pytest
from PIL import Image as Pillow

from askance.errors import BadImage, UsageError
from askance.images import WHOLE_IMAGE, Image, RegionView
from askance.images.pixels import PADDING_COLOUR, pad_to_square
from askance.images.regions import COLOUR

GREY = (100, 100, 100)
TINTED = (138, 75, 138)
"""Three quarters of the grey and a quarter of magenta, cut off to whole numbers."""


def picture(size: tuple[int, int] = (40, 20)) -> Image:
    return Image.from_pil(Pillow.new("RGB", size, GREY), name="grey")


def pixels(view: RegionView, image: Image | None = None) -> list[Any]:
    return list(view.render(image or picture()))


def test_the_whole_picture_is_as_it_is() -> None:
    (drawn,) = pixels(WHOLE_IMAGE)

    assert (drawn.mode, drawn.size, drawn.getcolors()) == ("RGB", (40, 20), [(800, GREY)])
    assert WHOLE_IMAGE.canonical() == {}


def test_a_highlight_is_a_tint_within_an_outline() -> None:
    (drawn,) = pixels(RegionView("highlight", ((10, 5, 20, 15),)))

    assert sorted(drawn.getcolors()) == sorted([(700, GREY), (36, COLOUR), (64, TINTED)])
    at = {place: drawn.getpixel(place) for place in [(9, 5), (10, 5), (19, 14), (20, 14), (11, 6), (15, 10)]}
    assert at == {
        (9, 5): GREY, (10, 5): COLOUR, (19, 14): COLOUR, (20, 14): GREY, (11, 6): TINTED, (15, 10): TINTED,
    }  # fmt: skip


def test_where_boxes_overlap_a_pixel_is_tinted_once() -> None:
    (drawn,) = pixels(RegionView("highlight", ((0, 0, 20, 20), (10, 0, 30, 20))))

    assert {colour for _, colour in drawn.getcolors()} == {GREY, COLOUR, TINTED}
    assert drawn.getpixel((15, 10)) == TINTED


def test_a_crop_is_the_smallest_rectangle_around_all_boxes() -> None:
    marked = Pillow.new("RGB", (40, 20), GREY)
    marked.putpixel((10, 5), (1, 2, 3))
    marked.putpixel((29, 11), (4, 5, 6))

    (drawn,) = pixels(RegionView("crop", ((10, 5, 12, 7), (20.5, 6, 29.2, 11.5))), Image.from_pil(marked))

    assert (drawn.size, drawn.getpixel((0, 0)), drawn.getpixel((19, 6))) == ((20, 7), (1, 2, 3), (4, 5, 6))


def test_both_are_two_pictures() -> None:
    boxes = ((10, 5, 20, 15),)

    drawn = pixels(RegionView("both", boxes))

    assert [each.tobytes() for each in drawn] == [
        pixels(RegionView(show, boxes))[0].tobytes() for show in ("highlight", "crop")
    ]


def test_what_hangs_over_the_border_is_cut_off() -> None:
    (drawn,) = pixels(RegionView("crop", ((-5, 10, 10, 99),)))

    assert drawn.size == (10, 10)


def test_what_is_transparent_is_on_white() -> None:
    clear = Image.from_pil(Pillow.new("RGBA", (4, 4), (0, 0, 0, 0)))

    assert pixels(WHOLE_IMAGE, clear)[0].getcolors() == [(16, (255, 255, 255))]


@pytest.mark.parametrize(
    ("size", "corner"), [((40, 20), PADDING_COLOUR), ((20, 40), PADDING_COLOUR), ((20, 20), GREY)], ids=str
)
def test_a_square_has_bars_beside_what_is_not_square(size: tuple[int, int], corner: object) -> None:
    drawn = pad_to_square(Pillow.new("RGB", size, GREY))

    side = max(size)
    assert (drawn.size, drawn.getpixel((0, 0))) == ((side, side), corner)
    assert drawn.getpixel((side // 2, side // 2)) == GREY
    assert (size[0] * size[1], GREY) in (drawn.getcolors() or [])


WRONG: dict[str, tuple[Any, Any, str]] = {
    "no area": ("crop", ((3, 4, 3, 4),), "The box (3, 4, 3, 4) has no area: 0×0 pixels."),
    "the wrong way round": ("crop", ((9, 9, 3, 3),), "The box (9, 9, 3, 3) has no area: -6×-6 pixels."),
    "no numbers": ("crop", ((0, 0, math.nan, 4),), "This is no box: (0, 0, nan, 4)."),
    "three numbers": ("crop", ((0, 0, 4),), "This is no box: (0, 0, 4)."),
    "no boxes": ("highlight", (), "The view 'highlight' needs boxes."),
    "boxes for nothing": ("whole", ((0, 0, 4, 4),), "The view 'whole' takes no boxes."),
    "no such way": ("blurred", (), "A picture cannot be shown as 'blurred'."),
}


@pytest.mark.parametrize(("show", "boxes", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_view_is_said_to_be_none(show: Any, boxes: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        RegionView(show, boxes)
    assert str(caught.value).startswith(message)


def test_a_box_outside_is_an_error_with_the_size_of_the_picture() -> None:
    with pytest.raises(UsageError, match=r"lies outside the picture 'grey', which has 40×20 pixels\."):
        RegionView("crop", ((40, 0, 50, 10),)).render(picture())


def test_a_picture_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(BadImage):
        WHOLE_IMAGE.render(Image.from_bytes(b"nothing", name="none"))
