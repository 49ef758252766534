"""Metadata stripped from PNG, JPEG, GIF and WebP files without touching the coded pixels, and what EXIF says.

Each format has its own section: its parts, then the file without its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Literal, TypeVar

from askance.images.info import Format, UnusableImage


def strip_metadata(data: bytes, form: Format) -> bytes:
    """The same coded pixels without the metadata; a BMP or TIFF file as it is.

    Raises:
        UnusableImage: it is cut off or broken.
    """
    match form:
        case "gif":
            return _strip_gif(data)
        case "jpeg":
            return _strip_jpeg(data)
        case "png":
            return _strip_png(data)
        case "webp":
            return _strip_webp(data)
        case _:
            return data


def exif_orientation(data: bytes, form: Format) -> int:
    """The orientation in a picture's EXIF blocks, 1 to 8; 1 where there is none, or a broken one.

    Pillow's `getexif` is not used: it decodes a PNG first, takes XMP for EXIF, and warns on stderr of odd entries.
    """
    match form:
        case "jpeg":
            blocks = _jpeg_exif(data)
        case "png":
            blocks = _png_exif(data)
        case "webp":
            blocks = _webp_exif(data)
        case "tiff":
            blocks = iter([data])
        case _:
            return 1
    return next((turn for turn in map(_read_orientation, blocks) if turn != 1), 1)


# ---- parts -----------------------------------------------------------------------------------------------------------

MANY_PARTS = 10_000
"""Parts (chunks, segments, blocks) that any file may have."""
BYTES_OF_PART, BYTES_OF_SUB_BLOCK = 1000, 64
"""For so many bytes of a file one part more, or one sub-block of a GIF: encoders write larger ones."""

Part = TypeVar("Part")


class _TooManyParts(UnusableImage):
    """A file that costs far more time than its size lets one expect."""

    def __init__(self, most: int) -> None:
        super().__init__(f"is made of more than {most:,} parts", "Save it anew.")


def _bounded(parts: Callable[[bytes], Iterator[Part]]) -> Callable[[bytes], Iterator[Part]]:
    """`parts`, which raises `UnusableImage` where there are more than any encoder writes."""

    @wraps(parts)
    def bounded(data: bytes) -> Iterator[Part]:
        most = MANY_PARTS + len(data) // BYTES_OF_PART
        for number, part in enumerate(parts(data)):
            if number == most:
                raise _TooManyParts(most)
            yield part

    return bounded


# ---- PNG -------------------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n"

_KEPT_PNG = frozenset(
    {b"bKGD", b"cHRM", b"cICP", b"cLLI", b"gAMA", b"iCCP", b"mDCV", b"pHYs", b"sBIT", b"sRGB", b"tRNS"}
)
"""Auxiliary chunks that change how the pixels look; these are kept."""


@dataclass(frozen=True, slots=True)
class PngChunk:
    """One chunk; `raw` is the whole of it with length, kind and checksum."""

    kind: bytes
    payload: bytes
    raw: bytes

    @property
    def needed(self) -> bool:
        """Whether it is critical for decoding: its kind begins with a capital letter."""
        return self.kind[:1].isupper()


@_bounded
def png_chunks(data: bytes) -> Iterator[PngChunk]:
    """The chunks up to the end of the picture; what follows it is left out.

    Raises:
        UnusableImage: the file ends before its end chunk.
    """
    at = len(PNG)
    while True:
        length = _big_endian(data, at, 4)
        raw = _slice(data, at, 12 + length)
        chunk = PngChunk(raw[4:8], raw[8:-4], raw)
        yield chunk
        if chunk.kind == b"IEND":
            return
        at += len(raw)


def png_bits(data: bytes) -> int:
    """Bits a channel.

    Raises:
        UnusableImage: the file does not begin with its header.
    """
    first = next(png_chunks(data))
    if first.kind != b"IHDR":
        raise UnusableImage("has a broken PNG header")
    return _big_endian(first.payload, 8, 1)


def png_frames(data: bytes) -> int:
    """Pictures of an animation; 1 of a still picture."""
    return next((max(1, _big_endian(chunk.payload, 0, 4)) for chunk in png_chunks(data) if chunk.kind == b"acTL"), 1)


def _png_exif(data: bytes) -> Iterator[bytes]:
    """The EXIF blocks; they stand before or after the pixels."""
    return (chunk.payload.removeprefix(b"Exif\0\0") for chunk in png_chunks(data) if chunk.kind == b"eXIf")


def _strip_png(data: bytes) -> bytes:
    """The same coded pixels with only what decoding and showing them needs.

    Text, times, EXIF, private chunks, animation (the still picture stays) and what follows the end go.
    """
    chunks = b"".join(chunk.raw for chunk in png_chunks(data) if chunk.needed or chunk.kind in _KEPT_PNG)
    return PNG + chunks


def is_uncompressed_png(data: bytes) -> bool:
    """Whether the pixels stand uncompressed in the file, as `uncompressed_png` leaves them."""
    pixels = next((chunk.payload for chunk in png_chunks(data) if chunk.kind == b"IDAT"), b"")
    return len(pixels) > 2 and pixels[2] & 0b110 == 0


# ---- JPEG ------------------------------------------------------------------------------------------------------------

JPEG = b"\xff\xd8\xff"

MAX_SCANS = 100
"""Most scans of a progressive JPEG: encoders write about ten."""
MAX_SCANNED_PIXELS = 1_000_000_000
"""Most pixels times scans of a JPEG: 20 scans of the largest picture that is decoded."""

_EOI, _SOS, _COM = 0xD9, 0xDA, 0xFE
_APP = range(0xE0, 0xF0)
_STANDALONE = frozenset({0x01, *range(0xD0, 0xDA)})
_MARKER = re.compile(rb"\xff[\x01-\xfe]")
_MARKER_AFTER_SCAN = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")


@dataclass(frozen=True, slots=True)
class JpegSegment:
    """One marker, its payload, and for a scan the coded pixels that follow."""

    marker: int
    payload: bytes
    raw: bytes
    """Marker, length, payload and coded pixels, as they stand in the file."""


@_bounded
def jpeg_segments(data: bytes) -> Iterator[JpegSegment]:
    """The segments up to the end of the image, or of the file where that is missing.

    What stands between segments and behind the end is left out, as decoders do.

    Raises:
        UnusableImage: a segment is cut off or broken.
    """
    at = 2
    while match := _MARKER.search(data, at):
        start, at, marker = match.start(), match.end(), data[match.end() - 1]
        if marker in _STANDALONE:
            yield JpegSegment(marker, b"", data[start:at])
            if marker == _EOI:
                return
            continue
        length = _big_endian(data, at, 2)
        if length < 2:
            raise UnusableImage("has a broken JPEG segment")
        payload = _slice(data, at + 2, length - 2)
        at += length
        if marker == _SOS:
            following = _MARKER_AFTER_SCAN.search(data, at)
            at = following.start() if following else len(data)
        yield JpegSegment(marker, payload, data[start:at])


def _jpeg_exif(data: bytes) -> Iterator[bytes]:
    """The EXIF blocks in front of the coded pixels."""
    for segment in _before_scan(data):
        if segment.marker == 0xE1 and segment.payload.startswith(b"Exif\0\0"):
            yield segment.payload[6:]


def check_scans(data: bytes, pixels: int) -> None:
    """Refuses a JPEG with more scans than any encoder writes: each scan costs as much time as the whole picture.

    Raises:
        UnusableImage: it has too many for its size, or is broken.
    """
    most = max(1, min(MAX_SCANS, MAX_SCANNED_PIXELS // max(1, pixels)))
    scans = sum(segment.marker == _SOS for segment in jpeg_segments(data))
    if scans > most:
        raise UnusableImage(
            f"is a JPEG of {scans:,} scans, and at most {most} of that size are decoded", "Save it anew."
        )


def _strip_jpeg(data: bytes) -> bytes:
    """The same coded pixels with only what decoding them needs.

    JFIF (without its thumbnail), the colour profile and the Adobe colour transform stay; EXIF, XMP, IPTC, comments,
    further pictures behind the first, and every other application segment go.
    """
    return b"\xff\xd8" + b"".join(_strip_segment(segment) for segment in jpeg_segments(data))


def jpeg_head(data: bytes) -> bytes:
    """What `_strip_jpeg` gives, up to the first coded pixels.

    Raises:
        UnusableImage: the file is cut off or broken before.
    """
    return b"\xff\xd8" + b"".join(_strip_segment(segment)[: 4 + len(segment.payload)] for segment in _before_scan(data))


def _before_scan(data: bytes) -> Iterator[JpegSegment]:
    """The segments up to the first scan."""
    for segment in jpeg_segments(data):
        yield segment
        if segment.marker == _SOS:
            return


def _strip_segment(segment: JpegSegment) -> bytes:
    if segment.marker == 0xE0 and segment.payload.startswith(b"JFIF\0") and len(segment.payload) >= 14:
        return b"\xff\xe0\x00\x10" + segment.payload[:12] + b"\0\0"
    if segment.marker == 0xE2 and segment.payload.startswith(b"ICC_PROFILE\0"):
        return segment.raw
    if segment.marker == 0xEE and segment.payload.startswith(b"Adobe"):
        return segment.raw
    return b"" if segment.marker in _APP or segment.marker == _COM else segment.raw


# ---- GIF -------------------------------------------------------------------------------------------------------------

GIF = (b"GIF87a", b"GIF89a")

_EXTENSION, _IMAGE, _END = 0x21, 0x2C, 0x3B
_COMMENT, _APPLICATION = 0xFE, 0xFF


@dataclass(frozen=True, slots=True)
class GifBlock:
    """One frame or extension, as it stands in the file."""

    kind: Literal["frame", "metadata", "control"]
    raw: bytes
    sub_blocks: int


@_bounded
def gif_blocks(data: bytes) -> Iterator[GifBlock]:
    """The blocks behind the global colour table; a file that is cut off behind its first frame ends there.

    Raises:
        UnusableImage: the file is cut off or broken before its first frame is whole.
    """
    at, frames, left = len(_gif_header(data)), 0, MANY_PARTS + len(data) // BYTES_OF_SUB_BLOCK
    try:
        while _little_endian(data, at, 1) != _END:
            block = _gif_block(data, at, left)
            yield block
            frames += block.kind == "frame"
            at, left = at + len(block.raw), left - block.sub_blocks
    except _TooManyParts:
        raise
    except UnusableImage:
        if not frames:
            raise
    if not frames:
        raise UnusableImage("holds no frame")


def _strip_gif(data: bytes) -> bytes:
    """The same coded pixels without comments, application blocks (XMP, profiles, loops) and what follows the end."""
    blocks = b"".join(block.raw for block in gif_blocks(data) if block.kind != "metadata")
    return _gif_header(data) + blocks + bytes([_END])


def _gif_header(data: bytes) -> bytes:
    """Signature, screen descriptor and global colour table."""
    return _slice(data, 0, 13 + _colour_table_size(_little_endian(data, 10, 1)))


def _colour_table_size(flags: int) -> int:
    """Size in bytes of the colour table, by the flags in front of it."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _gif_block(data: bytes, at: int, most: int) -> GifBlock:
    kind = _little_endian(data, at, 1)
    if kind == _IMAGE:
        end, count = _after_sub_blocks(data, at + 11 + _colour_table_size(_little_endian(data, at + 9, 1)), most)
        return GifBlock("frame", data[at:end], count)
    if kind != _EXTENSION:
        raise UnusableImage("has a broken GIF block")
    label = _little_endian(data, at + 1, 1)
    end, count = _after_sub_blocks(data, at + 2, most)
    return GifBlock("metadata" if label in {_COMMENT, _APPLICATION} else "control", data[at:end], count)


def _after_sub_blocks(data: bytes, at: int, most: int) -> tuple[int, int]:
    """The position after the chain of sub-blocks that begins at `at`, and how many there are."""
    count = 0
    while size := _little_endian(data, at, 1):
        at, count = at + 1 + len(_slice(data, at + 1, size)), count + 1
        if count > most:
            raise _TooManyParts(MANY_PARTS + len(data) // BYTES_OF_SUB_BLOCK)
    return at + 1, count


# ---- WebP ------------------------------------------------------------------------------------------------------------

_KEPT_WEBP = frozenset({b"ALPH", b"ANIM", b"ANMF", b"ICCP", b"VP8 ", b"VP8L", b"VP8X"})
_EXIF_AND_XMP = 0x0C


@dataclass(frozen=True, slots=True)
class WebpChunk:
    """One chunk of the RIFF container, without its padding."""

    kind: bytes
    payload: bytes

    @property
    def raw(self) -> bytes:
        """Kind, length, payload and padding."""
        return self.kind + len(self.payload).to_bytes(4, "little") + self.payload + b"\0" * (len(self.payload) % 2)


def is_webp(data: bytes) -> bool:
    """Whether the file begins as a WebP does."""
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


@_bounded
def webp_chunks(data: bytes) -> Iterator[WebpChunk]:
    """The chunks of the container; what follows it is left out.

    Raises:
        UnusableImage: the file ends before the container does.
    """
    end = 8 + _little_endian(data, 4, 4)
    # Some writers leave out the padding of the last chunk, or count it wrongly.
    if end > len(data) + 1:
        raise UnusableImage("is cut off", "Fetch or export it again.")
    at = 12
    while at + 8 <= min(end, len(data)):
        length = _little_endian(data, at + 4, 4)
        yield WebpChunk(data[at : at + 4], _slice(data, at + 8, length))
        at += 8 + length + length % 2


def _webp_exif(data: bytes) -> Iterator[bytes]:
    """The EXIF blocks."""
    return (chunk.payload.removeprefix(b"Exif\0\0") for chunk in webp_chunks(data) if chunk.kind == b"EXIF")


def _strip_webp(data: bytes) -> bytes:
    """The same coded pixels without EXIF, XMP, unknown chunks and what follows the container."""
    chunks = b"".join(_without_metadata_flags(chunk).raw for chunk in webp_chunks(data) if chunk.kind in _KEPT_WEBP)
    return b"RIFF" + (4 + len(chunks)).to_bytes(4, "little") + b"WEBP" + chunks


def _without_metadata_flags(chunk: WebpChunk) -> WebpChunk:
    """The chunk with its flags for EXIF and XMP cleared, where it has flags."""
    if chunk.kind != b"VP8X":
        return chunk
    flags = _little_endian(chunk.payload, 0, 1) & ~_EXIF_AND_XMP
    return WebpChunk(chunk.kind, bytes([flags]) + chunk.payload[1:])


# ---- TIFF and EXIF ---------------------------------------------------------------------------------------------------

TIFF = (b"II*\0", b"MM\0*")

_ORIENTATION = 0x112
_SHORT, _LONG = 3, 4
_MAX_PAGES = 1000


def _read_orientation(exif: bytes) -> int:
    """The orientation, 1 to 8, in an EXIF block; 1 where it has none or is broken."""
    try:
        orientation = _directory(exif).get(_ORIENTATION, 1)
    except UnusableImage:
        return 1
    return orientation if 1 <= orientation <= 8 else 1


def tiff_pages(data: bytes) -> int:
    """Pages of a TIFF file: the length of the chain of directories, as far as it can be followed, and 1000 at most.

    Raises:
        UnusableImage: the first directory is cut off.
    """
    number, seen = _byte_order(data), set[int]()
    start = number(data, 4, 4)
    while start and start not in seen and len(seen) < _MAX_PAGES:
        seen.add(start)
        try:
            start = number(data, start + 2 + 12 * number(data, start, 2), 4)
        except UnusableImage:
            break
    return len(seen)


def _directory(data: bytes) -> dict[int, int]:
    """Tags and first values of the first directory, of those tags that hold whole numbers.

    Raises:
        UnusableImage: the directory is cut off.
    """
    number = _byte_order(data)
    start = number(data, 4, 4)
    count = number(data, start, 2)
    _slice(data, start + 2, 12 * count)
    entries = (_entry(data, start + 2 + 12 * index, number) for index in range(count))
    return {tag: value for tag, value in entries if value is not None}


def _byte_order(data: bytes) -> Callable[[bytes, int, int], int]:
    """The function that reads numbers in the byte order of this file."""
    if data[:4] not in TIFF:
        raise UnusableImage("has a broken TIFF header")
    return _little_endian if data[:2] == b"II" else _big_endian


def _entry(data: bytes, at: int, number: Callable[[bytes, int, int], int]) -> tuple[int, int | None]:
    """Tag and first value of the entry at `at`; None where the value is no whole number or lies outside."""
    tag, kind, count = number(data, at, 2), number(data, at + 2, 2), number(data, at + 4, 4)
    size = {_SHORT: 2, _LONG: 4}.get(kind)
    if size is None or not count:
        return tag, None
    place = at + 8 if size * count <= 4 else number(data, at + 8, 4)
    return tag, number(data, place, size) if place + size <= len(data) else None


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _slice(data: bytes, start: int, length: int) -> bytes:
    """`length` bytes of `data` from `start`.

    Raises:
        UnusableImage: `data` ends before.
    """
    if start < 0 or start + length > len(data):
        raise UnusableImage("is cut off", "Fetch or export it again.")
    return data[start : start + length]


def _big_endian(data: bytes, start: int, length: int) -> int:
    """The unsigned number in the `length` bytes from `start`, highest byte first.

    Raises:
        UnusableImage: `data` ends before.
    """
    return int.from_bytes(_slice(data, start, length), "big")


def _little_endian(data: bytes, start: int, length: int) -> int:
    """The unsigned number in the `length` bytes from `start`, lowest byte first.

    Raises:
        UnusableImage: `data` ends before.
    """
    return int.from_bytes(_slice(data, start, length), "little")
