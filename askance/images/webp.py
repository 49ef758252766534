"""WebP files: their chunks, and the file without its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from askance.images.info import Unusable, cut, little

_KEPT = frozenset({b"ALPH", b"ANIM", b"ANMF", b"ICCP", b"VP8 ", b"VP8L", b"VP8X"})
_EXIF_AND_XMP = 0x0C


@dataclass(frozen=True, slots=True)
class Chunk:
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


def chunks(data: bytes) -> Iterator[Chunk]:
    """The chunks of the container; what follows it is left out.

    Raises:
        Unusable: the file ends before the container does.
    """
    end = 8 + little(data, 4, 4)
    # Some writers leave out the padding of the last chunk, or count it wrongly.
    if end > len(data) + 1:
        raise Unusable("is cut off", "Fetch or export it again.")
    at = 12
    while at + 8 <= min(end, len(data)):
        length = little(data, at + 4, 4)
        yield Chunk(data[at : at + 4], cut(data, at + 8, length))
        at += 8 + length + length % 2


def exif(data: bytes) -> Iterator[bytes]:
    """The EXIF blocks."""
    return (chunk.payload.removeprefix(b"Exif\0\0") for chunk in chunks(data) if chunk.kind == b"EXIF")


def without_metadata(data: bytes) -> bytes:
    """The same coded pixels without EXIF, XMP, unknown chunks and what follows the container."""
    kept = b"".join(_marked(chunk).raw for chunk in chunks(data) if chunk.kind in _KEPT)
    return b"RIFF" + (4 + len(kept)).to_bytes(4, "little") + b"WEBP" + kept


def _marked(chunk: Chunk) -> Chunk:
    """The chunk with the flags for EXIF and XMP taken back, where it has flags."""
    if chunk.kind != b"VP8X":
        return chunk
    flags = little(chunk.payload, 0, 1) & ~_EXIF_AND_XMP
    return Chunk(chunk.kind, bytes([flags]) + chunk.payload[1:])
