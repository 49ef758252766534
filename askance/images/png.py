"""PNG files: their chunks, and the file without its metadata."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from askance.images.info import Unusable, big, cut

MAGIC = b"\x89PNG\r\n\x1a\n"

_KEPT = frozenset({b"bKGD", b"cHRM", b"cICP", b"cLLI", b"gAMA", b"iCCP", b"mDCV", b"pHYs", b"sBIT", b"sRGB", b"tRNS"})
"""Auxiliary chunks that say how the pixels look."""
_COLOURS = {"L": 0, "RGB": 2, "RGBA": 6}


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk; `raw` is the whole of it with length, kind and checksum."""

    kind: bytes
    payload: bytes
    raw: bytes

    @property
    def needed(self) -> bool:
        """Whether decoding depends on it: kinds in which the first letter is a capital."""
        return self.kind[:1].isupper()


def chunks(data: bytes) -> Iterator[Chunk]:
    """The chunks up to the end of the picture; what follows it is left out.

    Raises:
        Unusable: the file ends before its end chunk.
    """
    at = len(MAGIC)
    while True:
        length = big(data, at, 4)
        raw = cut(data, at, 12 + length)
        chunk = Chunk(raw[4:8], raw[8:-4], raw)
        yield chunk
        if chunk.kind == b"IEND":
            return
        at += len(raw)


def bits(data: bytes) -> int:
    """Bits a channel.

    Raises:
        Unusable: the file does not begin with its header.
    """
    first = next(chunks(data))
    if first.kind != b"IHDR":
        raise Unusable("has a broken PNG header")
    return big(first.payload, 8, 1)


def frames(data: bytes) -> int:
    """Pictures of an animation; 1 of a still picture."""
    return next((max(1, big(chunk.payload, 0, 4)) for chunk in chunks(data) if chunk.kind == b"acTL"), 1)


def exif(data: bytes) -> Iterator[bytes]:
    """The EXIF blocks; they stand before or after the pixels."""
    return (chunk.payload.removeprefix(b"Exif\0\0") for chunk in chunks(data) if chunk.kind == b"eXIf")


def without_metadata(data: bytes) -> bytes:
    """The same coded pixels with only what decoding and showing them needs.

    Text, times, EXIF, private chunks, animation (the still picture stays) and what follows the end go.
    """
    kept = b"".join(chunk.raw for chunk in chunks(data) if chunk.needed or chunk.kind in _KEPT)
    return MAGIC + kept


def is_uncompressed(data: bytes) -> bool:
    """Whether the pixels stand uncompressed in the file, as `write` leaves them."""
    pixels = next((chunk.payload for chunk in chunks(data) if chunk.kind == b"IDAT"), b"")
    return len(pixels) > 2 and pixels[2] & 0b110 == 0


def write(size: tuple[int, int], mode: str, pixels: bytes, *, profile: bytes | None = None) -> bytes:
    """A PNG file of uncompressed 8-bit pixels.

    Its bytes depend on the arguments alone and on no version of a compressor, so that its digest can name them.

    Args:
        size: Width and height in pixels.
        mode: `L`, `RGB` or `RGBA`.
        pixels: `width × height × channels` bytes, row by row.
        profile: A colour profile.
    """
    width, height = size
    stride = width * len(mode)
    rows = b"".join(b"\0" + pixels[at : at + stride] for at in range(0, stride * height, stride))
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, _COLOURS[mode], 0, 0, 0])
    colours = _chunk(b"iCCP", b"icc\0\0" + _stored(profile)) if profile else b""
    return MAGIC + _chunk(b"IHDR", head) + colours + _chunk(b"IDAT", _stored(rows)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, payload: bytes) -> bytes:
    body = kind + payload
    return len(payload).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def _stored(data: bytes, block: int = 0xFFFF) -> bytes:
    """`data` as a zlib stream of uncompressed blocks."""
    parts = [b"\x78\x01"]
    for at in range(0, len(data), block):
        piece = data[at : at + block]
        size = len(piece).to_bytes(2, "little")
        parts += [bytes([at + block >= len(data)]), size, bytes(byte ^ 0xFF for byte in size), piece]
    return b"".join([*parts, zlib.adler32(data).to_bytes(4, "big")])
