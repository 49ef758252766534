"""Tests of taking metadata out without touching pixels."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image as Pillow

from askance.errors import BadImage
from askance.images import CLEAN_POLICY, ORIGINAL_POLICY, Image, Shown
from tests.clock import cpu_seconds
from tests.images import samples

PROFILE = bytes(128) + b"a colour profile"

DIRTY = {
    "jpeg": samples.jpeg(),
    "jpeg progressive": samples.jpeg(progressive=True, restart_marker_rows=1),
    "jpeg grey": samples.encoded(samples.photo(mode="L"), "JPEG", exif=samples.exif(), comment=samples.SECRET),
    "jpeg with profile": samples.jpeg(icc_profile=PROFILE),
    "jpeg with a second picture behind": samples.jpeg() + samples.jpeg(),
    "png": samples.png(),
    "png with transparency": samples.png(mode="RGBA"),
    "png with palette": samples.png(mode="P", transparency=3),
    "png with profile": samples.png(icc_profile=PROFILE),
    "png grey": samples.png(mode="L"),
    "png animated": samples.animated("PNG"),
    "png with a tail": samples.png() + samples.SECRET,
    "webp": samples.webp(),
    "webp lossless": samples.webp(lossless=True),
    "webp with profile": samples.webp(icc_profile=PROFILE),
    "webp with a tail": samples.webp() + samples.SECRET,
    "gif": samples.gif(),
    "gif with a tail": samples.gif() + samples.SECRET,
}


@pytest.mark.parametrize("data", DIRTY.values(), ids=DIRTY)
def test_metadata_goes_and_pixels_stay(data: bytes) -> None:
    sent = Shown(Image.from_bytes(data)).prepare()
    assert samples.pixels(sent.data) == samples.pixels(data)
    assert samples.SECRET not in sent.data
    assert sent.media_type == Image.from_bytes(data).info.media_type
    for name in ("exif", "xmp", "comment", "XML:com.adobe.xmp", "Author", "Comment"):
        assert name not in Pillow.open(_stream(sent.data)).info


@pytest.mark.parametrize("kind", ["jpeg with profile", "png with profile", "webp with profile"])
def test_the_colour_profile_stays(kind: str) -> None:
    sent = Shown(Image.from_bytes(DIRTY[kind])).prepare()
    assert Pillow.open(_stream(sent.data)).info["icc_profile"] == PROFILE


@pytest.mark.parametrize("data", DIRTY.values(), ids=DIRTY)
def test_a_clean_file_is_sent_as_it_is(data: bytes) -> None:
    once = Shown(Image.from_bytes(data)).prepare()
    assert Shown(Image.from_bytes(once.data)).prepare() == once


@pytest.mark.parametrize("data", DIRTY.values(), ids=DIRTY)
def test_original_sends_the_file_as_it_is(data: bytes) -> None:
    assert Shown(Image.from_bytes(data), ORIGINAL_POLICY).prepare().data == data


def test_the_adobe_transform_of_a_jpeg_stays() -> None:
    plain = samples.encoded(samples.photo(), "JPEG", keep_rgb=True)
    assert b"Adobe" in plain
    assert samples.pixels(Shown(Image.from_bytes(plain)).prepare().data) == samples.pixels(plain)


def test_the_thumbnail_in_a_jfif_header_goes() -> None:
    plain = samples.encoded(samples.photo(), "JPEG")
    jfif = b"\xff\xe0" + struct.pack(">H", 16 + 12) + plain[6:18] + b"\x02\x02" + samples.SECRET
    sent = Shown(Image.from_bytes(plain[:2] + jfif + plain[20:])).prepare()
    assert sent.data == plain


def test_metadata_between_the_scans_of_a_jpeg_goes() -> None:
    plain = samples.encoded(samples.photo(), "JPEG", progressive=True)
    scan = plain.index(b"\xff\xda", plain.index(b"\xff\xda") + 2)
    comment = b"\xff\xfe" + struct.pack(">H", 2 + len(samples.SECRET)) + samples.SECRET
    assert Shown(Image.from_bytes(plain[:scan] + comment + plain[scan:])).prepare().data == plain


def test_private_chunks_of_a_png_go() -> None:
    plain = samples.encoded(samples.photo(), "PNG")
    body = b"tIME" + samples.SECRET[:7]
    chunk = struct.pack(">I", 7) + body + struct.pack(">I", zlib.crc32(body))
    assert Shown(Image.from_bytes(plain[:33] + chunk + plain[33:])).prepare().data == plain


def test_flags_of_a_webp_no_longer_announce_metadata() -> None:
    data = samples.webp()
    sent = Shown(Image.from_bytes(data)).prepare().data
    assert (data[20] & 0x0C, sent[20] & 0x0C) == (0x0C, 0)
    assert int.from_bytes(sent[4:8], "little") == len(sent) - 8


@given(st.sampled_from(sorted(DIRTY)), st.data())
def test_broken_bytes_raise_nothing_but_bad_image(kind: str, data: st.DataObject) -> None:
    broken = bytearray(DIRTY[kind])
    places = st.one_of(st.integers(0, min(300, len(broken) - 1)), st.integers(0, len(broken) - 1))
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        broken[place] = value
    end = data.draw(st.one_of(st.just(len(broken)), st.integers(0, len(broken))))
    _try_all(bytes(broken[:end]))


HEADS = [
    b"",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF89a",
    b"II*\0\x08\0\0\0",
    b"MM\0*\0\0\0\x08",
    b"BM",
    b"RIFF\x20\0\0\0WEBPVP8X",
]


@given(st.sampled_from(HEADS), st.binary(max_size=200))
@example(b"\xff\xd8\xff", b"")
@example(b"RIFF\x04\0\0\0WEBP", b"")
def test_random_bytes_raise_nothing_but_bad_image(head: bytes, tail: bytes) -> None:
    _try_all(head + tail)


def _try_all(data: bytes) -> None:
    image = Image.from_bytes(data, name="some.png")
    for use in (
        lambda: image.info,
        lambda: Shown(image, CLEAN_POLICY).prepare(),
        lambda: Shown(image, ORIGINAL_POLICY).prepare(),
        image.open,
    ):
        try:
            use()
        except BadImage as error:
            if not error.message.startswith("The picture 'some.png' "):
                raise


def _stream(data: bytes) -> BytesIO:
    return BytesIO(data)


# --- files of very many parts ---


def with_parts(form: str, count: int) -> bytes:
    """A sound picture with `count` empty parts that say nothing."""
    match form:
        case "gif":
            return samples.gif()[:-1] + b"\x21\xfe\0" * count + b";"
        case "gif, one block":
            return samples.gif()[:-1] + b"\x21\xfe" + b"\x01a" * count + b"\0;"
        case "webp":
            body = samples.webp()[8:] + b"JUNK\0\0\0\0" * count
            return b"RIFF" + struct.pack("<I", len(body)) + body
        case "png":
            chunk = b"\0\0\0\0juNk" + struct.pack(">I", zlib.crc32(b"juNk"))
            return samples.png()[:-12] + chunk * count + samples.png()[-12:]
        case _:
            return samples.jpeg()[:2] + b"\xff\xfe\0\x02" * count + samples.jpeg()[2:]


MANY_PARTS = ("gif", "gif, one block", "webp", "png", "jpeg")


@pytest.mark.parametrize("form", MANY_PARTS)
def test_a_file_of_many_parts_is_taken(form: str) -> None:
    data = with_parts(form, 9000)

    assert samples.pixels(Shown(Image.from_bytes(data)).prepare().data) == samples.pixels(with_parts(form, 0))


@pytest.mark.parametrize("form", MANY_PARTS)
def test_a_file_of_more_parts_than_any_encoder_writes_costs_no_more(form: str) -> None:
    def refuse(data: bytes) -> None:
        with pytest.raises(BadImage, match=r"is made of more than 1\d,\d\d\d parts\. Save it anew\."):
            _ = Image.from_bytes(data).info

    small, large = with_parts(form, 20_000), with_parts(form, 160_000)
    refuse(small)  # what is loaded once

    assert cpu_seconds(lambda: refuse(large)) < 3 * cpu_seconds(lambda: refuse(small)) + 0.01
