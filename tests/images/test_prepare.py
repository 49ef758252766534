"""Tests of what is sent."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from hashlib import sha256
from io import BytesIO

import pytest
from PIL import Image as Pillow
from PIL import ImageOps

from askance.errors import BadImage
from askance.images import CLEAN_POLICY, ORIGINAL_POLICY, Image, ImagePolicy, Shown
from askance.images.info import UnusableImage
from askance.images.prepare import PREPARED_IMAGES, PreparedImage, PreparedImageCache, prepare
from tests.images import samples


def sent_picture(data: bytes, policy: ImagePolicy = CLEAN_POLICY) -> tuple[str, Pillow.Image]:
    sent = Shown(Image.from_bytes(data), policy).prepare()
    picture = Pillow.open(BytesIO(sent.data))
    assert picture.size == (sent.width, sent.height)
    assert sha256(sent.data).hexdigest() == sent.sha256
    picture.load()
    return sent.media_type, picture


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("make", [samples.jpeg, samples.png, samples.webp], ids=["jpeg", "png", "webp"])
def test_turned_pictures_are_sent_upright(make: Callable[[int], bytes], orientation: int) -> None:
    data = make(orientation)
    wanted = ImageOps.exif_transpose(Pillow.open(BytesIO(data))).convert("RGB")
    kind, picture = sent_picture(data)
    assert (kind, picture.size) == ("image/jpeg", wanted.size)
    assert samples.distance(picture, wanted) < 4
    assert samples.SECRET not in Shown(Image.from_bytes(data)).prepare().data


@pytest.mark.parametrize("orientation", range(1, 9))
def test_tiff_is_turned_upright_once(orientation: int) -> None:
    block = Pillow.Exif()
    block[0x0112] = orientation
    data = samples.encoded(samples.photo(), "TIFF", exif=block)
    assert Image.from_bytes(data).info.orientation == orientation
    stored = Pillow.frombytes("RGB", (48, 32), samples.photo().tobytes())
    stored.getexif()[0x0112] = orientation
    _, picture = sent_picture(data)
    assert samples.distance(picture, ImageOps.exif_transpose(stored)) < 4


REENCODED = {
    "bmp": (samples.encoded(samples.photo(), "BMP"), "image/jpeg", "RGB"),
    "tiff": (samples.encoded(samples.photo(), "TIFF"), "image/jpeg", "RGB"),
    "tiff pages": (samples.animated("TIFF"), "image/jpeg", "RGB"),
    "tiff with transparency": (samples.encoded(samples.photo(mode="RGBA"), "TIFF"), "image/png", "RGBA"),
    "tiff grey 16 bits": (samples.encoded(samples.photo(mode="I;16"), "TIFF"), "image/jpeg", "L"),
    "tiff floats": (samples.encoded(samples.photo(mode="F"), "TIFF"), "image/jpeg", "L"),
    "tiff two colours": (samples.encoded(samples.photo(mode="1"), "TIFF"), "image/png", "L"),
    "bmp palette": (samples.encoded(samples.photo(mode="P"), "BMP"), "image/png", "RGB"),
    "gif animated": (samples.animated("GIF"), "image/png", "RGB"),
    "webp animated": (samples.animated("WEBP"), "image/jpeg", "RGB"),
    "jpeg cmyk": (samples.encoded(samples.photo(mode="CMYK"), "JPEG"), "image/jpeg", "RGB"),
    "png 16 bits": (samples.encoded(samples.photo(mode="I;16"), "PNG"), "image/jpeg", "L"),
}


@pytest.mark.parametrize(("data", "kind", "mode"), REENCODED.values(), ids=REENCODED)
def test_what_endpoints_do_not_take_is_encoded_anew(data: bytes, kind: str, mode: str) -> None:
    found, picture = sent_picture(data)
    assert (found, picture.mode, picture.size, getattr(picture, "n_frames", 1)) == (kind, mode, (48, 32), 1)
    first = Pillow.open(BytesIO(data))
    if first.mode in {"RGB", "RGBA", "CMYK", "P"}:
        assert samples.distance(picture.convert("RGB"), first.convert("RGB")) < 4


def test_grey_of_16_bits_keeps_its_tones() -> None:
    ramp = Pillow.frombytes("I;16", (256, 1), b"".join((257 * value).to_bytes(2, "little") for value in range(256)))
    opened = Image.from_bytes(samples.encoded(ramp, "PNG")).open()
    assert list(opened.convert("L").tobytes()) == pytest.approx(list(range(256)), abs=1)


def test_equal_pictures_are_encoded_equally() -> None:
    assert prepare(samples.jpeg(6), CLEAN_POLICY) == prepare(samples.jpeg(6), CLEAN_POLICY)


def test_a_picture_with_a_long_side_is_scaled_down() -> None:
    kind, picture = sent_picture(samples.jpeg(), replace(CLEAN_POLICY, max_side=24))
    assert (kind, picture.size) == ("image/jpeg", (24, 16))
    kind, picture = sent_picture(samples.png(mode="RGBA"), replace(CLEAN_POLICY, max_side=24))
    assert (kind, picture.size) == ("image/png", (24, 16))


def test_a_picture_of_many_bytes_is_made_to_fit() -> None:
    noise = Pillow.effect_noise((200, 100), 90).convert("RGBA")
    data = samples.encoded(noise, "PNG")
    assert len(data) > 20_000
    kind, picture = sent_picture(data, replace(CLEAN_POLICY, max_bytes=6_000))
    assert kind == "image/jpeg"
    assert 20 <= picture.width < 200
    assert len(Shown(Image.from_bytes(data), replace(CLEAN_POLICY, max_bytes=6_000)).prepare().data) <= 6_000


def test_a_picture_that_cannot_fit_is_bad() -> None:
    with pytest.raises(BadImage) as caught:
        Shown(Image.from_bytes(samples.jpeg(), name="ad.jpg"), replace(CLEAN_POLICY, max_bytes=100)).prepare()
    assert str(caught.value) == (
        "The picture 'ad.jpg' does not fit into 100 bytes. Raise `max_bytes` of the image policy."
    )


def test_only_the_named_formats_are_sent_as_they_are() -> None:
    narrow = replace(CLEAN_POLICY, formats=("jpeg", "png"))
    assert sent_picture(samples.webp(), narrow)[0] == "image/jpeg"
    assert sent_picture(samples.gif(), narrow)[0] == "image/png"
    assert samples.pixels(Shown(Image.from_bytes(samples.gif()), narrow).prepare().data) == samples.pixels(
        samples.gif()
    )


def test_transparency_is_white_where_it_is_given_up() -> None:
    clear = Pillow.new("RGBA", (8, 8), (10, 20, 30, 0))
    small = Image.from_bytes(samples.encoded(clear, "PNG")).thumbnail(4)
    assert Pillow.open(BytesIO(small)).getpixel((0, 0)) == (255, 255, 255)


def test_the_profile_survives_encoding_where_it_fits() -> None:
    profile = bytes(128) + b"a colour profile"
    _, turned = sent_picture(samples.jpeg(6, icc_profile=profile))
    _, cmyk = sent_picture(samples.encoded(samples.photo(mode="CMYK"), "JPEG", icc_profile=profile))
    assert (turned.info.get("icc_profile"), cmyk.info.get("icc_profile")) == (profile, None)


TRUNCATED = {
    "jpeg": samples.jpeg()[:-150],
    "png": samples.png().replace(b"IDAT", b"IDAX"),
    "bmp": samples.encoded(samples.photo(), "BMP")[:-99],
    "gif": samples.animated("GIF")[:1500],
    "tiff": samples.encoded(samples.photo(), "TIFF")[:1000],
}


@pytest.mark.parametrize("data", TRUNCATED.values(), ids=TRUNCATED)
def test_a_cut_off_picture_is_bad_before_it_is_sent(data: bytes) -> None:
    with pytest.raises(BadImage, match=r"^The picture 'ad' (is cut off|cannot be decoded: ).*\. .*\.$"):
        Shown(Image.from_bytes(data, name="ad")).prepare()


def test_prepared_images_give_base64_once() -> None:
    sent = Shown(Image.from_bytes(samples.png())).prepare()
    assert sent.data_uri == f"data:image/png;base64,{b64encode(sent.data).decode()}"
    assert sent.base64 is sent.base64
    assert "data" not in repr(sent)


def test_threads_and_copies_share_one_preparation() -> None:
    data, before = samples.jpeg(5), PREPARED_IMAGES.made
    images = [Image.from_bytes(data, name=f"{index}.jpg") for index in range(16)]
    with ThreadPoolExecutor(16) as pool:
        sent = [
            each.result()
            for each in [pool.submit(Shown(image, replace(CLEAN_POLICY, max_side=41)).prepare) for image in images]
        ]
    assert PREPARED_IMAGES.made - before == 1
    assert {id(each) for each in sent} == {id(sent[0])}


def test_policies_are_prepared_apart() -> None:
    data, before = samples.encoded(samples.photo(seed=77), "PNG"), PREPARED_IMAGES.made
    for policy in (CLEAN_POLICY, ORIGINAL_POLICY, CLEAN_POLICY, ImagePolicy("clean"), ORIGINAL_POLICY):
        Shown(Image.from_bytes(data), policy).prepare()
    assert PREPARED_IMAGES.made - before == 2


def test_a_bad_picture_is_tried_once_and_named_each_time() -> None:
    data, before = b"no picture, of its own kind", PREPARED_IMAGES.made
    for name in ("one.jpg", "two.jpg"):
        with pytest.raises(BadImage, match=f"'{name}'"):
            Shown(Image.from_bytes(data, name=name)).prepare()
    assert PREPARED_IMAGES.made - before == 1


def prepared(size: int) -> PreparedImage:
    return PreparedImage(bytes(size), "image/png", 1, 1, "0" * 64)


def test_the_memo_forgets_what_was_used_longest_ago() -> None:
    cache = PreparedImageCache(7_000)
    for key in ("a", "b", "a", "c", "a", "d", "a"):
        cache.get((key, CLEAN_POLICY), lambda: prepared(1_000))
    assert (cache.made, len(cache)) == (4, 3)
    cache.get(("b", CLEAN_POLICY), lambda: prepared(1_000))
    assert (cache.made, len(cache)) == (5, 3)


def test_ten_thousand_pictures_do_not_stay() -> None:
    cache = PreparedImageCache(70_000, max_count=100)
    for key in range(10_000):
        cache.get((str(key), CLEAN_POLICY), partial(prepared, 1_000 if key % 2 else 0))
    assert len(cache) <= 60
    cache.get(("huge", CLEAN_POLICY), lambda: prepared(100_000))
    assert len(cache) == 0


class Holder:
    """Somebody who may ask again."""


def test_what_is_held_stays_and_what_is_not_makes_room() -> None:
    cache, held = PreparedImageCache(10_000 * 7 // 3, max_idle_bytes=2_000 * 7 // 3), Holder()
    cache.get(("held", CLEAN_POLICY), lambda: prepared(5_000), holder=held)
    for key in range(100):
        cache.get((str(key), CLEAN_POLICY), lambda: prepared(1_000), holder=Holder())
    assert len(cache) == 1 + 2 + 1  # what is held, what was let go of last, and the one whose holder has just gone

    cache.get(("held", CLEAN_POLICY), lambda: prepared(5_000))
    cache.get(("99", CLEAN_POLICY), lambda: prepared(1_000))
    assert cache.made == 101


def test_a_picture_of_two_holders_stays_with_the_second() -> None:
    cache, first, second = PreparedImageCache(70_000, max_idle_bytes=0), Holder(), Holder()
    for holder in (first, second, first):
        cache.get(("a", CLEAN_POLICY), lambda: prepared(1_000), holder=holder)
    del first, holder
    cache.get(("b", CLEAN_POLICY), lambda: prepared(1_000), holder=Holder())
    cache.get(("a", CLEAN_POLICY), lambda: prepared(1_000), holder=second)
    assert (cache.made, len(cache)) == (2, 1)

    del second
    cache.get(("a", CLEAN_POLICY), lambda: prepared(1_000))
    assert cache.made == 3


def test_pictures_that_are_read_one_after_the_other_do_not_pile_up() -> None:
    before = len(PREPARED_IMAGES)
    for number in range(40):
        Shown(
            Image.from_bytes(samples.encoded(samples.photo(seed=number, size=(600, 600)), "BMP")), ORIGINAL_POLICY
        ).prepare()
    assert len(PREPARED_IMAGES) - before < 10


def test_another_picture_does_not_wait() -> None:
    cache, started, release = PreparedImageCache(10_000), threading.Event(), threading.Event()

    def slow() -> PreparedImage:
        started.set()
        assert release.wait(10)
        return prepared(1)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cache.get, ("slow", CLEAN_POLICY), slow)
        assert started.wait(10)
        assert cache.get(("quick", CLEAN_POLICY), lambda: prepared(2)) == prepared(2)
        release.set()
        assert waiting.result() == prepared(1)


def test_what_goes_wrong_otherwise_is_not_remembered() -> None:
    cache = PreparedImageCache(10_000)

    def fail() -> PreparedImage:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.get(("a", CLEAN_POLICY), fail)
    assert cache.get(("a", CLEAN_POLICY), lambda: prepared(1)) == prepared(1)


def test_remembered_reasons_are_raised_afresh() -> None:
    cache = PreparedImageCache(10_000)

    def fail() -> PreparedImage:
        raise UnusableImage("is odd", "Do this.")

    caught: list[UnusableImage] = []
    for _ in range(2):
        with pytest.raises(UnusableImage, match="is odd") as error:
            cache.get(("a", CLEAN_POLICY), fail)
        caught.append(error.value)
    assert caught[0] is not caught[1]
    assert cache.made == 1
