"""Tests of what a header says, and of what is no picture."""

from __future__ import annotations

import struct
import zlib

import pytest

from askance.errors import BadImage
from askance.images import Image, ImageInfo
from tests.images import samples

INFOS = {
    "jpeg": (samples.jpeg(), ImageInfo("jpeg", 48, 32, "RGB")),
    "jpeg turned": (samples.jpeg(6), ImageInfo("jpeg", 48, 32, "RGB", orientation=6)),
    "jpeg grey": (samples.encoded(samples.photo(mode="L"), "JPEG"), ImageInfo("jpeg", 48, 32, "L")),
    "jpeg cmyk": (samples.encoded(samples.photo(mode="CMYK"), "JPEG"), ImageInfo("jpeg", 48, 32, "CMYK")),
    "png": (samples.png(), ImageInfo("png", 48, 32, "RGB")),
    "png turned": (samples.png(3), ImageInfo("png", 48, 32, "RGB", orientation=3)),
    "png 16 bits": (samples.encoded(samples.photo(mode="I;16"), "PNG"), ImageInfo("png", 48, 32, "L", 16)),
    "png palette": (samples.png(mode="P"), ImageInfo("png", 48, 32, "P")),
    "png two colours": (samples.png(mode="1"), ImageInfo("png", 48, 32, "1", 1)),
    "png animated": (samples.animated("PNG"), ImageInfo("png", 48, 32, "RGB", frames=3)),
    "webp": (samples.webp(8), ImageInfo("webp", 48, 32, "RGB", orientation=8)),
    "webp plain": (samples.encoded(samples.photo(), "WEBP"), ImageInfo("webp", 48, 32, "RGB")),
    "webp lossless": (
        samples.encoded(samples.photo(mode="RGBA"), "WEBP", lossless=True, exact=True),
        ImageInfo("webp", 48, 32, "RGB"),
    ),
    "webp animated": (samples.animated("WEBP"), ImageInfo("webp", 48, 32, "RGB", frames=3)),
    "gif": (samples.gif(), ImageInfo("gif", 48, 32, "P")),
    "gif animated": (samples.animated("GIF"), ImageInfo("gif", 48, 32, "P", frames=3)),
    "bmp": (samples.encoded(samples.photo(), "BMP"), ImageInfo("bmp", 48, 32, "RGB")),
    "bmp palette": (samples.encoded(samples.photo(mode="P"), "BMP"), ImageInfo("bmp", 48, 32, "P")),
    "tiff": (samples.encoded(samples.photo(), "TIFF"), ImageInfo("tiff", 48, 32, "RGB")),
    "tiff grey 16 bits": (samples.encoded(samples.photo(mode="I;16"), "TIFF"), ImageInfo("tiff", 48, 32, "L", 16)),
    "tiff pages": (samples.animated("TIFF"), ImageInfo("tiff", 48, 32, "RGB", frames=3)),
    "one pixel": (samples.encoded(samples.photo((1, 1)), "PNG"), ImageInfo("png", 1, 1, "RGB")),
}


@pytest.mark.parametrize(("data", "info"), INFOS.values(), ids=INFOS)
def test_the_header_says_what_the_picture_is(data: bytes, info: ImageInfo) -> None:
    assert Image.from_bytes(data).info == info


def bomb_png(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    return start + struct.pack(">I", 0) + b"IEND" + struct.pack(">I", zlib.crc32(b"IEND"))


def bomb_gif(width: int, height: int) -> bytes:
    data = bytearray(samples.gif())
    frame = data.index(b"\x2c\0\0\0\0")
    data[frame + 5 : frame + 9] = struct.pack("<HH", width, height)
    return bytes(data)


TOO_MANY = "has {}×{} pixels, more than 50 million. Scale it down first."
CUT_OFF = "is cut off. Fetch or export it again."
NO_START = "is cut off before its picture begins. Fetch or export it again."
UNKNOWN = "holds no picture that is known here: it begins with {!r}. Known are PNG, JPEG, WebP, GIF, BMP and TIFF."

BAD = {
    "empty": (b"", "is empty. Fetch or export it again."),
    "text": (b"just some words", UNKNOWN.format(b"just some wo")),
    "svg": (b"<svg/>", UNKNOWN.format(b"<svg/>")),
    "bomb": (bomb_png(60_000, 60_000), TOO_MANY.format(60_000, 60_000)),
    "bomb in a small screen": (bomb_gif(60_000, 60_000), TOO_MANY.format(60_000, 60_000)),
    "no pixels": (bomb_png(0, 5), "has no pixels (0×5). Save it anew, or leave it out."),
    "png of a magic alone": (b"\x89PNG\r\n\x1a\n", CUT_OFF),
    "png without its end": (samples.png()[:-12], CUT_OFF),
    "jpeg of a magic alone": (b"\xff\xd8\xff", NO_START),
    "jpeg cut in its header": (samples.jpeg()[:100], CUT_OFF),
    "webp cut": (samples.webp()[:-10], CUT_OFF),
    "webp of a magic alone": (b"RIFF\x04\0\0\0WEBP", NO_START),
    "gif cut": (samples.gif()[:200], CUT_OFF),
    "tiff cut": (samples.encoded(samples.photo(), "TIFF")[:9], CUT_OFF),
    "bmp cut": (b"BM\0\0", CUT_OFF),
    "jpeg of two components": (
        samples.encoded(samples.photo(mode="L"), "JPEG").replace(b"\0\x30\x01", b"\0\x30\x02", 1),
        "has 2 colour components, which no JPEG reader takes. Save it anew, or leave it out.",
    ),
}


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_picture_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(BadImage) as caught:
        Image.from_bytes(data, name="ad.jpg").prepare()
    assert str(caught.value) == f"The picture 'ad.jpg' {reason}"


def test_the_limit_is_checked_before_anything_is_decoded() -> None:
    edge = Image.from_bytes(bomb_png(50_000, 1_000))
    assert (edge.info.width, edge.info.height) == (50_000, 1_000)
    with pytest.raises(BadImage, match="more than 50 million"):
        _ = Image.from_bytes(bomb_png(50_000, 1_001)).info
