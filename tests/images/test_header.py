"""Tests of what a header says, and of what is no picture."""

from __future__ import annotations

import re
import struct
import zlib

import pytest
from PIL.PngImagePlugin import PngInfo

from askance.errors import BadImage
from askance.images import Image, ImageInfo, Shown
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


def exif_behind_the_pixels() -> bytes:
    plain, block = samples.encoded(samples.photo(), "PNG"), b"eXIf" + samples.exif(6).removeprefix(b"Exif\0\0")
    return plain[:-12] + struct.pack(">I", len(block) - 4) + block + struct.pack(">I", zlib.crc32(block)) + plain[-12:]


def odd_exif() -> bytes:
    """A JPEG with an EXIF block of 100 entries that lie outside it, about which Pillow would warn on stderr."""
    entries = b"".join(struct.pack("<HHII", 1000 + number, 7, 60_000, 8) for number in range(100))
    block = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 100) + entries + bytes(4)
    plain = samples.encoded(samples.photo(), "JPEG")
    return plain[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + plain[2:]


def much_text() -> bytes:
    """A PNG with more text than Pillow unpacks."""
    text = PngInfo()
    text.add_text("Workflow", "nodes " * 500_000, zip=True)
    return samples.encoded(samples.photo(), "PNG", pnginfo=text)


UPRIGHT = ImageInfo("jpeg", 48, 32, "RGB")
METADATA = {
    "exif behind the pixels": (exif_behind_the_pixels(), ImageInfo("png", 48, 32, "RGB", orientation=6)),
    "odd exif": (odd_exif(), UPRIGHT),
    "turned by xmp alone": (samples.encoded(samples.photo(), "JPEG", xmp=b'<x tiff:Orientation="6"/>'), UPRIGHT),
    "much text": (much_text(), ImageInfo("png", 48, 32, "RGB")),
}


@pytest.mark.parametrize(("data", "info"), METADATA.values(), ids=METADATA)
def test_metadata_is_kept_from_pillow(data: bytes, info: ImageInfo) -> None:
    image = Image.from_bytes(data)
    assert image.info == info
    assert Shown(image).prepare().height == (48 if info.orientation == 6 else 32)
    assert image.open().height == Shown(image).prepare().height


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
BROKEN = "cannot be decoded: …. Save it anew, or leave it out."
"""In Pillow's words, which differ between its versions."""
UNKNOWN = "holds no picture that is known here. Known are PNG, JPEG, WebP, GIF, BMP and TIFF."

APPLE = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 4) + b"CgBI\0\0\0\0" + struct.pack(">I", zlib.crc32(b"CgBI\0\0\0\0"))
"""How a PNG begins that Xcode has pressed; Pillow opens it."""

BAD = {
    "png with another chunk first": (
        APPLE + samples.png()[8:],
        "has a broken PNG header. Save it anew, or leave it out.",
    ),
    "empty": (b"", "is empty. Fetch or export it again."),
    "text": (b"just some words", UNKNOWN),
    "svg": (b"<svg/>", UNKNOWN),
    "bomb": (bomb_png(60_000, 60_000), TOO_MANY.format(60_000, 60_000)),
    "bomb in a small screen": (bomb_gif(60_000, 60_000), "has more than 50 million pixels. Scale it down first."),
    "no pixels": (bomb_png(0, 5), BROKEN),
    "png of a magic alone": (b"\x89PNG\r\n\x1a\n", CUT_OFF),
    "png without its end": (samples.png()[:-12], CUT_OFF),
    "jpeg of a magic alone": (b"\xff\xd8\xff", BROKEN),
    "jpeg cut in its header": (samples.jpeg()[:100], CUT_OFF),
    "webp cut": (samples.webp()[:-10], CUT_OFF),
    "webp of a magic alone": (b"RIFF\x04\0\0\0WEBP", BROKEN),
    "gif cut": (samples.gif()[:200], CUT_OFF),
    "tiff cut": (samples.encoded(samples.photo(), "TIFF")[:9], BROKEN),
    "bmp cut": (b"BM\0\0", BROKEN),
    "jpeg of two components": (
        samples.encoded(samples.photo(mode="L"), "JPEG").replace(b"\0\x30\x01", b"\0\x30\x02", 1),
        BROKEN,
    ),
}


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_picture_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(BadImage) as caught:
        Shown(Image.from_bytes(data, name="ad.jpg")).prepare()
    pattern = re.escape(f"The picture 'ad.jpg' {reason}").replace("…", ".+")
    assert re.fullmatch(pattern, str(caught.value))


def test_the_limit_is_checked_before_anything_is_decoded() -> None:
    edge = Image.from_bytes(bomb_png(50_000, 1_000))
    assert (edge.info.width, edge.info.height) == (50_000, 1_000)
    with pytest.raises(BadImage, match="more than 50 million"):
        _ = Image.from_bytes(bomb_png(50_000, 1_001)).info


def test_a_later_frame_that_is_broken_is_no_matter_of_the_first() -> None:
    frames = [samples.photo(), samples.photo().rotate(90)]
    data = samples.encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=100)
    control = data.rindex(b"\x21\xf9\x04")
    broken = data[:control] + b"\x21\xf9\x02\0\0\0" + data[control + 8 :]
    assert Image.from_bytes(broken).info.frames == 2
