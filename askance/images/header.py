"""What a file is and how large the picture in it, read from its first bytes and never from its name."""

from __future__ import annotations

from collections.abc import Callable

from askance.images import gif, jpeg, png, tiff, webp
from askance.images.info import MAX_PIXELS, ImageInfo, Unusable, little

STRIPPERS: dict[str, Callable[[bytes], bytes]] = {
    "gif": gif.without_metadata,
    "jpeg": jpeg.without_metadata,
    "png": png.without_metadata,
    "webp": webp.without_metadata,
}
"""How each format loses its metadata and keeps its pixels."""


def read_header(data: bytes) -> ImageInfo:
    """What the header of a picture says.

    Raises:
        Unusable: no picture, an unknown format, a broken header, no pixels or too many.
    """
    info = _reader(data)(data)
    if not (info.width and info.height):
        raise Unusable(f"has no pixels ({info.width}×{info.height})")
    if info.width * info.height > MAX_PIXELS:
        raise Unusable(
            f"has {info.width}×{info.height} pixels, more than {MAX_PIXELS // 1_000_000} million",
            "Scale it down first.",
        )
    return info


def _reader(data: bytes) -> Callable[[bytes], ImageInfo]:
    if data.startswith(png.MAGIC):
        return png.header
    if data.startswith(jpeg.MAGIC):
        return jpeg.header
    if data.startswith(gif.MAGICS):
        return gif.header
    if data.startswith(tiff.MAGICS):
        return tiff.header
    if data.startswith(b"BM"):
        return _bmp
    if webp.is_webp(data):
        return webp.header
    if not data:
        raise Unusable("is empty", "Fetch or export it again.")
    known = "PNG, JPEG, WebP, GIF, BMP and TIFF"
    raise Unusable(f"holds no picture that is known here: it begins with {data[:12]!r}", f"Known are {known}.")


def _bmp(data: bytes) -> ImageInfo:
    """What the header of a BMP file says."""
    size = little(data, 14, 4)
    if size == 12:
        width, height, bits = (
            little(data, 18, 2),
            little(data, 20, 2),
            little(data, 24, 2),
        )
    else:
        width, bits = little(data, 18, 4), little(data, 28, 2)
        # Rows that run from the top down have a negative height.
        height = little(data, 22, 4)
        height = 2**32 - height if height >= 2**31 else height
    return ImageInfo("bmp", width, height, "P" if bits <= 8 else "RGB", 8)
