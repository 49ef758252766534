"""What a file is and how large the picture in it: read by Pillow from its header, and never from its name."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

from askance.images import strip
from askance.images.info import MAX_PIXELS, Format, ImageInfo, Unusable

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_WIDTH, _HEIGHT, _BITS = 0x100, 0x101, 0x102
"""Tags of TIFF."""

_BEGINNINGS: Mapping[Format, bytes | tuple[bytes, ...]] = {
    "png": strip.PNG,
    "jpeg": strip.JPEG,
    "gif": strip.GIF,
    "tiff": strip.TIFF,
    "bmp": b"BM",
}


def read_header(data: bytes) -> ImageInfo:
    """What the header of a picture says. Pillow reads it without the metadata, and decodes nothing.

    Raises:
        Unusable: no picture, an unknown format, a broken header, no pixels or too many.
    """
    form = _format(data)
    picture = opened(strip.jpeg_head(data) if form == "jpeg" else strip.strip_metadata(data, form), form)
    # Pillow swaps the sides of a TIFF that it will turn.
    tags: Mapping[int, Any] = getattr(picture, "tag_v2", {})
    return ImageInfo(
        form,
        tags.get(_WIDTH, picture.width),
        tags.get(_HEIGHT, picture.height),
        _mode(picture, form),
        tags.get(_BITS, (1,))[0] if form == "tiff" else strip.png_bits(data) if form == "png" else 8,
        _frames(picture, form, data),
        strip.exif_orientation(data, form),
    )


_PLUGINS: dict[Format, str] = {
    "bmp": "Bmp", "gif": "Gif", "jpeg": "Jpeg", "png": "Png", "tiff": "Tiff", "webp": "WebP",
}  # fmt: skip
"""How Pillow calls the reader of each format."""

_MILLIONS, _SCALE = MAX_PIXELS // 1_000_000, "Scale it down first."


@contextmanager
def guarded() -> Generator[None]:
    """Turns whatever Pillow raises into `Unusable`."""
    from PIL.Image import DecompressionBombError

    try:
        yield
    except Unusable:
        raise
    except DecompressionBombError as error:
        raise Unusable(f"has more than {_MILLIONS} million pixels", _SCALE) from error
    # Pillow's readers raise whatever their parsing runs into: OSError, SyntaxError, struct.error, KeyError, …
    except Exception as error:
        raise Unusable(f"cannot be decoded: {str(error) or type(error).__name__}") from error


def opened(data: bytes, form: Format) -> ImageFile:
    """The picture with its header read and nothing decoded.

    Pillow's reader is taken directly: `Image.open` warns of large pictures on stderr before anyone can refuse them,
    and makes another format of a JPEG file with further pictures in it.

    Raises:
        Unusable: a broken header, or too many pixels.
    """
    with guarded():
        plugin = import_module(f"PIL.{_PLUGINS[form]}ImagePlugin")
        picture: ImageFile = getattr(plugin, f"{_PLUGINS[form]}ImageFile")(BytesIO(data))
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise Unusable(f"has {width}×{height} pixels, more than {_MILLIONS} million", _SCALE)
    return picture


def _format(data: bytes) -> Format:
    for form, beginning in _BEGINNINGS.items():
        if data.startswith(beginning):
            return form
    if strip.is_webp(data):
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
        return strip.png_frames(data)
    # To count them, Pillow reads every page of a TIFF whole, and fails at a later frame of a GIF that is broken.
    if form == "tiff":
        return strip.tiff_pages(data)
    if form == "gif":
        return sum(block.kind == "frame" for block in strip.gif_blocks(data))
    return getattr(picture, "n_frames", 1)
