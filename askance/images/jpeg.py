"""JPEG files: their segments, and the file without its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from askance.images.info import Unusable, big, cut

MAGIC = b"\xff\xd8\xff"

MOST_SCANS = 100
"""Scans of a progressive JPEG: encoders write about ten, and no picture gains from more than some dozens."""
MOST_SCANNED = 1_000_000_000
"""Pixels times scans: 20 scans of the largest picture that is taken."""

_EOI, _SOS, _COM = 0xD9, 0xDA, 0xFE
_APP = range(0xE0, 0xF0)
_STANDALONE = frozenset({0x01, *range(0xD0, 0xDA)})
_MARKER = re.compile(rb"\xff[\x01-\xfe]")
_MARKER_AFTER_SCAN = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")


@dataclass(frozen=True, slots=True)
class Segment:
    """One marker, its payload, and for a scan the coded pixels that follow."""

    marker: int
    payload: bytes
    raw: bytes
    """Marker, length, payload and coded pixels, as they stand in the file."""


def segments(data: bytes) -> Iterator[Segment]:
    """The segments up to the end of the image, or of the file where that is missing.

    What stands between segments and behind the end is left out, as decoders do.

    Raises:
        Unusable: a segment is cut off or broken.
    """
    at = 2
    while found := _MARKER.search(data, at):
        start, at, marker = found.start(), found.end(), data[found.end() - 1]
        if marker in _STANDALONE:
            yield Segment(marker, b"", data[start:at])
            if marker == _EOI:
                return
            continue
        length = big(data, at, 2)
        if length < 2:
            raise Unusable("has a broken JPEG segment")
        payload = cut(data, at + 2, length - 2)
        at += length
        if marker == _SOS:
            following = _MARKER_AFTER_SCAN.search(data, at)
            at = following.start() if following else len(data)
        yield Segment(marker, payload, data[start:at])


def exif(data: bytes) -> Iterator[bytes]:
    """The EXIF blocks in front of the coded pixels."""
    for segment in _head(data):
        if segment.marker == 0xE1 and segment.payload.startswith(b"Exif\0\0"):
            yield segment.payload[6:]


def check_scans(data: bytes, pixels: int) -> None:
    """Refuses a picture in more scans than any encoder makes: each goes over the whole picture.

    Raises:
        Unusable: it is in too many for its size, or broken.
    """
    most = max(1, min(MOST_SCANS, MOST_SCANNED // max(1, pixels)))
    scans = sum(segment.marker == _SOS for segment in segments(data))
    if scans > most:
        raise Unusable(f"is a JPEG of {scans:,} scans, and at most {most} of that size are decoded", "Save it anew.")


def without_metadata(data: bytes) -> bytes:
    """The same coded pixels with only what decoding them needs.

    JFIF (without its thumbnail), the colour profile and the Adobe colour transform stay; EXIF, XMP, IPTC, comments,
    further pictures behind the first, and every other application segment go.
    """
    return b"\xff\xd8" + b"".join(_kept(segment) for segment in segments(data))


def head(data: bytes) -> bytes:
    """What `without_metadata` gives, up to the first coded pixels.

    Raises:
        Unusable: the file is cut off or broken before.
    """
    return b"\xff\xd8" + b"".join(_kept(segment)[: 4 + len(segment.payload)] for segment in _head(data))


def _head(data: bytes) -> Iterator[Segment]:
    """The segments up to the first scan."""
    for segment in segments(data):
        yield segment
        if segment.marker == _SOS:
            return


def _kept(segment: Segment) -> bytes:
    if segment.marker == 0xE0 and segment.payload.startswith(b"JFIF\0") and len(segment.payload) >= 14:
        return b"\xff\xe0\x00\x10" + segment.payload[:12] + b"\0\0"
    if segment.marker == 0xE2 and segment.payload.startswith(b"ICC_PROFILE\0"):
        return segment.raw
    if segment.marker == 0xEE and segment.payload.startswith(b"Adobe"):
        return segment.raw
    return b"" if segment.marker in _APP or segment.marker == _COM else segment.raw
