"""What a model is shown of a picture: its key, its size, what is sent of it."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pillow

from askance.errors import BadImage, UsageError
from askance.images import CLEAN_POLICY, ORIGINAL_POLICY, WHOLE_IMAGE, Image, RegionView, Shown, view_policy
from askance.images.shown import key_of_shown
from tests.images import samples

SMALL = replace(CLEAN_POLICY, max_side=30)
CORNER = RegionView("crop", ((0, 0, 20, 10),))
MIDDLE = RegionView("crop", ((250, 200, 750, 800),), "thousandths")


def photo(size: tuple[int, int] = (300, 100), form: str = "PNG", **how: Any) -> Image:
    return Image.from_bytes(samples.encoded(samples.photo(size), form, **how), name="photo")


def opened(shown: Shown) -> Pillow.Image:
    return Pillow.open(BytesIO(shown.prepare().data))


def test_a_whole_picture_is_known_by_its_file_and_a_view_by_more() -> None:
    image = photo()
    whole, corner = Shown(image), Shown(image, view=CORNER)

    assert whole.canonical() == {"sha256": image.sha256, "policy": {"name": "clean", "version": 1}}
    assert corner.canonical() == {
        **whole.canonical(),
        "view": {"show": "crop", "boxes": [[0, 0, 20, 10]], "version": 1},
    }
    assert Shown(image, view=MIDDLE).canonical()["view"] == {
        "show": "crop",
        "boxes": [[250, 200, 750, 800]],
        "version": 1,
        "unit": "thousandths",
    }
    assert whole.key == Shown(image, ORIGINAL_POLICY).key == image.sha256
    views = [CORNER, MIDDLE, RegionView("crop", MIDDLE.boxes), RegionView("highlight", CORNER.boxes)]
    keys = {Shown(image, policy, view).key for view in views for policy in (CLEAN_POLICY, SMALL)}
    assert len(keys - {image.sha256}) == 8


def test_a_key_is_found_again_by_what_a_record_holds() -> None:
    shown = Shown(photo(), view=RegionView("crop", ((0.0, 0.5, 20.0, 10.0),)))
    assert key_of_shown({"type": "image", "detail": "low", **shown.canonical()}) == shown.key
    assert shown == Shown(photo(), view=RegionView("crop", ((0, 0.5, 20, 10),)))
    assert shown.key == Shown(photo(), view=RegionView("crop", ((0, 0.5, 20, 10),))).key


@pytest.mark.parametrize(
    ("policy", "view", "size"),
    [
        (CLEAN_POLICY, WHOLE_IMAGE, (300, 100)),
        (SMALL, WHOLE_IMAGE, (30, 10)),
        (replace(ORIGINAL_POLICY, max_side=30), WHOLE_IMAGE, (300, 100)),
        (CLEAN_POLICY, CORNER, (20, 10)),
        (CLEAN_POLICY, MIDDLE, (150, 60)),
        (SMALL, MIDDLE, (30, 12)),
        (replace(ORIGINAL_POLICY, max_side=30), MIDDLE, (150, 60)),
        (replace(CLEAN_POLICY, min_side=450), WHOLE_IMAGE, (450, 150)),
        (replace(CLEAN_POLICY, min_side=200), WHOLE_IMAGE, (300, 100)),
        (replace(ORIGINAL_POLICY, min_side=450), WHOLE_IMAGE, (300, 100)),
        (view_policy(ORIGINAL_POLICY), CORNER, (448, 224)),
        (view_policy(replace(CLEAN_POLICY, max_side=100)), CORNER, (100, 50)),
        (CLEAN_POLICY, RegionView("highlight", ((0, 0, 20, 10),)), (300, 100)),
        (CLEAN_POLICY, RegionView("crop", ((290, 90, 400, 400),)), (10, 10)),
    ],
)
def test_the_size_is_that_of_what_is_sent(policy: Any, view: RegionView, size: tuple[int, int]) -> None:
    shown = Shown(photo(), policy, view)
    sent = shown.prepare()
    assert shown.size == (sent.width, sent.height) == opened(shown).size == size


@pytest.mark.parametrize(
    "view", [WHOLE_IMAGE, MIDDLE, CORNER, RegionView("crop", ((280, 0, 300, 90),), "native pixels")]
)
def test_the_size_of_a_rotated_picture_is_that_of_the_upright_one(view: RegionView) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = 6
    shown = Shown(photo((300, 100), "JPEG", exif=exif), view=view)
    assert shown.size == opened(shown).size


@pytest.mark.parametrize(
    ("form", "media_type", "near"),
    [("PNG", "image/png", 0), ("BMP", "image/jpeg", 25), ("JPEG", "image/jpeg", 25), ("GIF", "image/png", 0)],
)
def test_a_crop_has_the_pixels_of_its_box(form: str, media_type: str, near: int) -> None:
    image = photo(form=form)
    shown = Shown(image, view=MIDDLE)
    expected = image.open().crop((75, 20, 225, 80))

    assert shown.prepare().media_type == media_type
    pairs = zip(expected.tobytes(), opened(shown).convert("RGB").tobytes(), strict=True)
    assert sum(abs(a - b) for a, b in pairs) / len(expected.tobytes()) <= near


def test_each_view_is_prepared_once_while_its_picture_is_in_use() -> None:
    image = photo()
    corner, middle = Shown(image, view=CORNER), Shown(image, view=MIDDLE)
    assert corner.prepare() is Shown(image, view=CORNER).prepare()
    assert len({id(corner.prepare()), id(middle.prepare()), id(Shown(image).prepare())}) == 3


def test_a_grey_picture_loses_the_profile_that_fits_grey_alone() -> None:
    grey = Image.from_bytes(samples.encoded(Pillow.new("L", (40, 40), 99), "PNG", icc_profile=b"for grey"))
    assert "icc_profile" not in opened(Shown(grey, view=CORNER)).info


def test_a_crop_that_does_not_fit_is_made_smaller() -> None:
    shown = Shown(photo(), replace(CLEAN_POLICY, max_bytes=2_000), MIDDLE)
    assert len(shown.prepare().data) <= 2_000


def test_a_box_outside_is_a_picture_that_cannot_be_used() -> None:
    shown = Shown(photo(), view=RegionView("crop", ((1000, 0, 1100, 500),), "thousandths"))
    for use in (shown.prepare, lambda: shown.size):
        with pytest.raises(BadImage) as caught:
            use()
        assert str(caught.value) == (
            "The box (1000, 0, 1100, 500) lies outside the picture 'photo', which has 300×100 pixels. "
            "Boxes are in thousandths of the picture's sides; leave `unit` out for pixels."
        )


def test_two_pictures_are_not_sent_as_one() -> None:
    shown = Shown(photo(), view=RegionView("both", CORNER.boxes))
    for use in (shown.prepare, lambda: shown.size):
        with pytest.raises(UsageError, match=r"^The view 'both' is two pictures, and one is sent at a time\. Show the"):
            use()


def test_its_text_names_picture_and_view() -> None:
    image = photo()
    assert str(Shown(image)) == f"sha256:{image.sha256}"
    assert str(Shown(image, view=MIDDLE)) == f"sha256:{image.sha256}, crop of (250, 200, 750, 800) in thousandths"
