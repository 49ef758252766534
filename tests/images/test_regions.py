from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from PIL import Image as Pillow
from PIL import ImageDraw

from askance.errors import BadImage, UsageError
from askance.images import WHOLE_IMAGE, Image, RegionView
from askance.images.pixels import MEAN_COLOUR, as_stored
from askance.images.region_styles import MAGENTA
from askance.images.regions import iou
from tests.images import samples

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

    assert sorted(drawn.getcolors()) == sorted([(700, GREY), (36, MAGENTA), (64, TINTED)])
    at = {place: drawn.getpixel(place) for place in [(9, 5), (10, 5), (19, 14), (20, 14), (11, 6), (15, 10)]}
    assert at == {
        (9, 5): GREY, (10, 5): MAGENTA, (19, 14): MAGENTA, (20, 14): GREY, (11, 6): TINTED, (15, 10): TINTED,
    }  # fmt: skip


def test_where_boxes_overlap_a_pixel_is_tinted_once() -> None:
    (drawn,) = pixels(RegionView("highlight", ((0, 0, 20, 20), (10, 0, 30, 20))))

    assert {colour for _, colour in drawn.getcolors()} == {GREY, MAGENTA, TINTED}
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


SPOTS = Pillow.new("RGB", (40, 20), GREY)
"""Grey, with a spot of another colour within the box of the tests below, at its edges, and outside."""
for spot in ((10, 5), (19, 14), (20, 15), (21, 16), (0, 0)):
    SPOTS.putpixel(spot, (*spot, 9))

BOX = (10, 5, 20, 15)
SHERLOCK_TINT, GREEN, PURPLE, SHERLOCK_GREY = (136, 78, 125), (5, 255, 55), (255, 5, 205), (123, 117, 117)
"""The first is grey under purple of an opacity of 60 in 255."""


@pytest.mark.parametrize(
    ("style", "last", "hidden", "marked"),
    [("askance", (19, 14), MEAN_COLOUR, MAGENTA), ("sherlock", (20, 15), SHERLOCK_GREY, PURPLE)],
)
def test_a_region_is_hidden_left_alone_or_marked_up_to_the_edge_of_its_style(
    style: Any, last: tuple[int, int], hidden: object, marked: object
) -> None:
    image = Image.from_pil(SPOTS)
    hide, blackout, position = (
        pixels(RegionView(show, (BOX,), style=style), image)[0] for show in ("hide", "blackout", "position")
    )
    (left, top), (right, bottom) = (10, 5), last
    inside = {(x, y) for x in range(left, right + 1) for y in range(top, bottom + 1)}

    for x in range(40):
        for y in range(20):
            picture, within = SPOTS.getpixel((x, y)), (x, y) in inside
            assert hide.getpixel((x, y)) == (hidden if within else picture)
            assert blackout.getpixel((x, y)) == (picture if within else hidden)
            assert position.getpixel((x, y)) == (marked if within else hidden)


def test_the_style_of_sherlock_outlines_see_through_purple_with_three_pixels_of_green() -> None:
    (drawn,) = pixels(RegionView("highlight", (BOX,), style="sherlock"))

    # The box has eleven pixels a side, with the edges at 20 and 15.
    assert sorted(drawn.getcolors()) == sorted([(800 - 121, GREY), (121 - 25, GREEN), (25, SHERLOCK_TINT)])
    assert [drawn.getpixel(place) for place in ((9, 5), (10, 5), (12, 7), (13, 8), (17, 12), (18, 13), (20, 15))] == [
        GREY, GREEN, GREEN, SHERLOCK_TINT, SHERLOCK_TINT, GREEN, GREEN,
    ]  # fmt: skip
    assert drawn.getpixel((21, 15)) == drawn.getpixel((20, 16)) == GREY


@pytest.mark.parametrize("boxes", [[(10, 5, 20, 6)], [(10, 5, 11, 15)], [(0, 0, 1, 1), (38, 17, 40, 20)]], ids=str)
def test_in_the_style_of_sherlock_the_outline_of_a_thin_box_lies_outside_it_too(boxes: Any) -> None:
    (drawn,) = pixels(RegionView("highlight", tuple(boxes), style="sherlock"), Image.from_pil(SPOTS))

    layer = Pillow.new("RGBA", SPOTS.size)
    for box in boxes:
        ImageDraw.Draw(layer).rectangle(box, fill=(*PURPLE, 60), outline=GREEN, width=3)
    assert drawn.tobytes() == Pillow.alpha_composite(SPOTS.convert("RGBA"), layer).convert("RGB").tobytes()


def test_in_the_style_of_sherlock_a_later_box_overwrites_an_earlier_one() -> None:
    (drawn,) = pixels(RegionView("highlight", ((0, 0, 19, 19), (8, 0, 30, 19)), style="sherlock"))

    # Of the first box the right edge, at 17 to 19, is gone, and no pixel is tinted twice.
    assert [drawn.getpixel((x, 10)) for x in (5, 9, 12, 18, 27)] == [
        SHERLOCK_TINT, GREEN, SHERLOCK_TINT, SHERLOCK_TINT, SHERLOCK_TINT,
    ]  # fmt: skip
    assert {colour for _, colour in drawn.getcolors()} == {GREY, GREEN, SHERLOCK_TINT}


@pytest.mark.parametrize(("right", "green"), [(39, 3), (40, 2), (41, 1), (42, 0), (43, 0), (10**12, 0)])
def test_in_the_style_of_sherlock_an_edge_beyond_the_border_shows_what_is_left_of_its_outline(
    right: int, green: int
) -> None:
    (drawn,) = pixels(RegionView("highlight", ((20, -(10**12), right, 30),), style="sherlock"))

    assert [drawn.getpixel((x, 10)) for x in range(30, 40)] == [SHERLOCK_TINT] * (10 - green) + [GREEN] * green


def test_both_are_drawn_in_their_style_and_cropped_alike() -> None:
    ours, theirs = (pixels(RegionView("both", (BOX,), style=style)) for style in ("askance", "sherlock"))

    assert ours[0].tobytes() != theirs[0].tobytes()
    assert ours[1].tobytes() == theirs[1].tobytes()


def test_the_canonical_form_has_a_style_and_a_unit_only_where_they_matter() -> None:
    plain = {"show": "highlight", "boxes": [[10, 5, 20, 15]], "version": 1}

    assert RegionView("highlight", (BOX,)).canonical() == plain
    assert RegionView("highlight", (BOX,), style="sherlock").canonical() == {**plain, "style": "sherlock"}
    assert RegionView("highlight", (BOX,), "native pixels").canonical() == {**plain, "unit": "native pixels"}
    assert RegionView("crop", (BOX,), style="sherlock") == RegionView("crop", (BOX,))
    assert RegionView("whole", (), "native pixels", "sherlock") == WHOLE_IMAGE
    assert (
        str(RegionView("hide", (BOX,), style="sherlock")) == "hide of (10, 5, 20, 15) in pixels, drawn as in sherlock"
    )


OFFICIAL: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "highlight": ("#00000000", {"fill": "#ff05cd3c", "outline": "#05ff37ff", "width": 3}),
    "position": ("#7B7575ff", {"fill": "#ff05cdff"}),
    "hide": ("#00000000", {"fill": "#7B7575ff"}),
    "blackout": ("#7B7575ff", {"fill": "#00000000"}),
}
"""By view the colour of the layer that the authors draw rectangles on, and how they draw them."""


@pytest.mark.parametrize("show", [*OFFICIAL])
def test_in_the_style_of_sherlock_fractions_of_a_pixel_are_cut_off_as_by_pillow(show: Any) -> None:
    random, plain = Random(7), Pillow.effect_noise((40, 20), 90).convert("RGB")
    colour, drawn = OFFICIAL[show]
    for _ in range(50):
        left, top = random.uniform(-3, 30), random.uniform(-3, 15)
        boxes = [
            (left, top, left + 3 + random.uniform(0.2, 25), top + 3 + random.uniform(0.2, 20)),
            (5.5, 4.25, 5.75 + random.random(), 9.99),
        ]
        layer = Pillow.new("RGBA", plain.size, colour)
        for box in boxes:
            ImageDraw.Draw(layer, "RGBA").rectangle((box[:2], box[2:]), **drawn)
        expected = Pillow.alpha_composite(plain.convert("RGBA"), layer).convert("RGB")

        (ours,) = pixels(RegionView(show, tuple(boxes), "native pixels", "sherlock"), Image.from_pil(plain))

        assert ours.tobytes() == expected.tobytes(), boxes


def test_a_view_has_another_version_where_fractions_are_cut_off() -> None:
    fraction = (10, 5, 20.5, 15)

    cut = RegionView("highlight", (fraction,), style="sherlock").canonical()

    assert cut == {"show": "highlight", "boxes": [[10, 5, 20.5, 15]], "version": 2, "style": "sherlock"}
    assert RegionView.from_form(cut).boxes == (fraction,)
    assert RegionView("highlight", (fraction,)).canonical()["version"] == 1
    assert RegionView("crop", (fraction,), style="sherlock").canonical()["version"] == 1
    assert RegionView("highlight", (fraction,), "thousandths", "sherlock").canonical()["version"] == 1
    with pytest.raises(UsageError, match="This is no view of a picture"):
        RegionView.from_form({**cut, "version": 1})


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("show", ["highlight", "crop", "hide", "blackout", "position"])
@pytest.mark.parametrize("style", ["askance", "sherlock"])
def test_the_orientation_in_exif_turns_no_box_in_native_pixels(orientation: int, show: Any, style: Any) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    stored = Image.from_bytes(samples.encoded(SPOTS, "PNG", exif=exif))
    flat = Image.from_pil(SPOTS)

    (drawn,) = pixels(RegionView(show, (BOX,), "native pixels", style), stored)

    # Turned back, it is what is drawn where no orientation is told of.
    expected = pixels(RegionView(show, (BOX,), style=style), flat)[0]
    assert as_stored(drawn, orientation).tobytes() == expected.tobytes()
    assert RegionView(show, (BOX,), "native pixels", style).size_of(stored) == drawn.size


def test_what_hangs_over_the_border_is_cut_off() -> None:
    (drawn,) = pixels(RegionView("crop", ((-5, 10, 10, 99),)))

    assert drawn.size == (10, 10)


def test_what_is_transparent_is_on_white() -> None:
    clear = Image.from_pil(Pillow.new("RGBA", (4, 4), (0, 0, 0, 0)))

    assert pixels(WHOLE_IMAGE, clear)[0].getcolors() == [(16, (255, 255, 255))]


WRONG: dict[str, tuple[Any, Any, str]] = {
    "no area": ("crop", ((3, 4, 3, 4),), "The box (3, 4, 3, 4) has no area: 0×0 pixels."),
    "the wrong way round": ("crop", ((9, 9, 3, 3),), "The box (9, 9, 3, 3) has no area: -6×-6 pixels."),
    "no numbers": ("crop", ((0, 0, math.nan, 4),), "This is no box: (0, 0, nan, 4)."),
    "three numbers": ("crop", ((0, 0, 4),), "This is no box: (0, 0, 4)."),
    "no boxes": ("highlight", (), "The view 'highlight' needs boxes."),
    "boxes for nothing": ("whole", ((0, 0, 4, 4),), "The view 'whole' takes no boxes."),
    "no such way": (
        "blurred",
        (),
        "A picture cannot be shown as 'blurred'. Choose one of whole, highlight, crop, both,",
    ),
}


@pytest.mark.parametrize(("show", "boxes", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_view_is_said_to_be_none(show: Any, boxes: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        RegionView(show, boxes)
    assert str(caught.value).startswith(message)


def test_an_unknown_unit_or_style_is_refused() -> None:
    anything: Any = "inches"
    with pytest.raises(UsageError, match=r"^The boxes of a view cannot be in 'inches'\. Choose one of pixels, thou"):
        RegionView("crop", (BOX,), anything)
    with pytest.raises(
        UsageError, match=r"^The boxes of a view cannot be drawn in the style 'inches'\. Choose one of a"
    ):
        RegionView("crop", (BOX,), style=anything)


@pytest.mark.parametrize("box", [(40, 0, 50, 10), (0, 20, 10, 30), (-9, 0, 0, 10), (0, -9, 10, 0)])
@pytest.mark.parametrize("style", ["askance", "sherlock"])
def test_a_box_that_touches_the_border_from_outside_is_refused_in_every_style(box: Any, style: Any) -> None:
    with pytest.raises(BadImage, match="lies outside the picture 'grey'"):
        RegionView("highlight", (box,), style=style).render(picture())


def test_a_box_outside_is_an_error_with_the_size_of_the_picture() -> None:
    with pytest.raises(UsageError, match=r"lies outside the picture 'grey', which has 40×20 pixels\."):
        RegionView("crop", ((40, 0, 50, 10),)).render(picture())


def test_a_picture_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(BadImage):
        WHOLE_IMAGE.render(Image.from_bytes(b"nothing", name="none"))


def test_overlap_is_that_of_areas() -> None:
    assert iou((0, 0, 10, 10), (0, 0, 10, 10)) == 1.0
    assert iou((0, 0, 10, 10), (10, 0, 20, 10)) == 0.0
    assert iou((0, 0, 10, 10), (5, 5, 15, 15)) == pytest.approx(25 / 175)
    assert iou((3, 3, 3, 3), (3, 3, 3, 3)) == 0.0
