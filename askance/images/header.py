"""What a file is and how large the picture in it: read by Pillow from its header, and never from its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from askance.images import gif, jpeg, pixels, png, tiff, webp
from askance.images.info import Format, ImageInfo, Unusable

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_STRIPPERS: dict[Format, Callable[[bytes], bytes]] = {
    "gif": gif.without_metadata,
    "jpeg": jpeg.without_metadata,
    "png": png.without_metadata,
    "webp": webp.without_metadata,
}

# Pillow's `getexif` decodes a PNG first, believes XMP too, and warns on stderr of each odd entry; so EXIF is read here.
_EXIF: dict[Format, Callable[[bytes], Iterator[bytes]]] = {
    "jpeg": jpeg.exif,
    "png": png.exif,
    "tiff": lambda data: iter([data]),
    "webp": webp.exif,
}

_WIDTH, _HEIGHT, _BITS = 0x100, 0x101, 0x102


def read_header(data: bytes) -> ImageInfo:
    """What the header of a picture says. Pillow reads it without the metadata, and decodes nothing.

    Raises:
        Unusable: no picture, an unknown format, a broken header, no pixels or too many.
    """
    form = _format(data)
    picture = pixels.opened(jpeg.head(data) if form == "jpeg" else without_metadata(data, form), form)
    turns = (tiff.orientation(block) for block in _EXIF.get(form, lambda _: iter(()))(data))
    # Pillow swaps the sides of a TIFF that it will turn.
    tags: Mapping[int, Any] = getattr(picture, "tag_v2", {})
    return ImageInfo(
        form,
        tags.get(_WIDTH, picture.width),
        tags.get(_HEIGHT, picture.height),
        _mode(picture, form),
        tags.get(_BITS, (1,))[0] if form == "tiff" else png.bits(data) if form == "png" else 8,
        _frames(picture, form, data),
        next((turn for turn in turns if turn != 1), 1),
    )


def without_metadata(data: bytes, form: Format) -> bytes:
    """The same coded pixels without the metadata; a BMP or TIFF file as it is.

    Raises:
        Unusable: it is cut off or broken.
    """
    return _STRIPPERS[form](data) if form in _STRIPPERS else data


def _format(data: bytes) -> Format:
    if data.startswith(png.MAGIC):
        return "png"
    if data.startswith(jpeg.MAGIC):
        return "jpeg"
    if data.startswith(gif.MAGICS):
        return "gif"
    if data.startswith(tiff.MAGICS):
        return "tiff"
    if data.startswith(b"BM"):
        return "bmp"
    if webp.is_webp(data):
        return "webp"
    if not data:
        raise Unusable("is empty", "Fetch or export it again.")
    known = "PNG, JPEG, WebP, GIF, BMP and TIFF"
    raise Unusable(f"holds no picture that is known here: it begins with {data[:12]!r}", f"Known are {known}.")


def _mode(picture: ImageFile, form: Format) -> str:
    """Pillow's mode: a palette of greys is a palette, and grey of many bits is grey."""
    if form in {"bmp", "gif"} and picture.mode in {"1", "L"}:
        return "P"
    return "L" if picture.mode[0] in "IF" else picture.mode


def _frames(picture: ImageFile, form: Format, data: bytes) -> int:
    if form == "png":
        return png.frames(data)
    # To count them, Pillow reads every page of a TIFF whole, and fails at a later frame of a GIF that is broken.
    if form == "tiff":
        return tiff.pages(data)
    if form == "gif":
        return sum(block.kind == "frame" for block in gif.blocks(data))
    return getattr(picture, "n_frames", 1)
