"""Small pictures of every kind, made when asked for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from PIL import Image as Pillow
from PIL.PngImagePlugin import PngInfo

SECRET = b"SECRET-PLACE"
"""Stands in every piece of metadata, and must not be in what is sent."""

XMP = b"<x:xmpmeta>" + SECRET + b"</x:xmpmeta>"


def photo(size: tuple[int, int] = (48, 32), mode: str = "RGB", seed: int = 0) -> Pillow.Image:
    """A few random colours that run into each other: soft enough for JPEG, and never the same turned or mirrored."""
    noise = random.Random(seed).randbytes(4 * 3 * 3)
    picture = Pillow.frombytes("RGB", (4, 3), noise).resize(size, Pillow.Resampling.BICUBIC)
    return picture.convert(mode)


def encoded(picture: Pillow.Image, kind: str, **options: Any) -> bytes:
    stream = BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def exif(orientation: int = 1) -> bytes:
    """An EXIF block with an orientation, a maker and a place."""
    block = Pillow.Exif()
    block[0x0112] = orientation
    block[0x010F] = SECRET.decode()
    block.get_ifd(0x8825)[1] = "N"
    return block.tobytes()


def jpeg(orientation: int = 1, **options: Any) -> bytes:
    """A JPEG with EXIF, XMP and a comment."""
    return encoded(photo(), "JPEG", exif=exif(orientation), xmp=XMP, comment=SECRET, quality=85, **options)


def png(orientation: int = 1, *, mode: str = "RGB", **options: Any) -> bytes:
    """A PNG with EXIF and three kinds of text."""
    info = PngInfo()
    info.add_text("Author", SECRET.decode())
    info.add_text("Comment", SECRET.decode(), zip=True)
    info.add_itxt("XML:com.adobe.xmp", XMP.decode())
    return encoded(photo(mode=mode), "PNG", pnginfo=info, exif=exif(orientation), **options)


def webp(orientation: int = 1, **options: Any) -> bytes:
    """A WebP with EXIF and XMP."""
    return encoded(photo(), "WEBP", exif=exif(orientation), xmp=XMP, **options)


def gif() -> bytes:
    """A still GIF with a comment."""
    return encoded(photo(mode="P"), "GIF", comment=SECRET)


def animated(kind: str, *, frames: int = 3) -> bytes:
    first, *rest = (photo(seed=seed) for seed in range(frames))
    return encoded(first, kind, save_all=True, append_images=rest, duration=40)


def pixels(data: bytes) -> tuple[tuple[int, int], bytes]:
    """Size and RGBA pixels of the first frame, by Pillow alone."""
    with Pillow.open(BytesIO(data)) as picture:
        return picture.size, picture.convert("RGBA").tobytes()


def distance(one: Pillow.Image, other: Pillow.Image) -> float:
    """Mean difference of two pictures of equal size, 0 to 255."""
    pairs: Sequence[tuple[int, int]] = list(zip(one.tobytes(), other.tobytes(), strict=True))
    return sum(abs(a - b) for a, b in pairs) / len(pairs)
