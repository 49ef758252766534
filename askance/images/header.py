"""Format, size and orientation of a picture, which Pillow reads from the file's header; its name is not believed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

from askance.images import strip
from askance.images.info import MAX_PIXELS, Format, ImageInfo, UnusableImage

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
    """What the header of a picture says. Pillow sees it without the metadata, and decodes no pixels.

    Raises:
        UnusableImage: no picture, an unknown format, a broken header, no pixels or too many.
    """
    form = _format(data)
    picture = open_header(strip.jpeg_head(data) if form == "jpeg" else strip.strip_metadata(data, form), form)
    # Pillow swaps width and height of a TIFF that it will rotate.
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
"""Pillow's plugin for each format."""

_MILLIONS, _SCALE = MAX_PIXELS // 1_000_000, "Scale it down first."


@contextmanager
def pillow_errors() -> Generator[None]:
    """Turns every error that Pillow raises into `UnusableImage`."""
    from PIL.Image import DecompressionBombError

    try:
        yield
    except UnusableImage:
        raise
    except DecompressionBombError as error:
        raise UnusableImage(f"has more than {_MILLIONS} million pixels", _SCALE) from error
    # Pillow's readers raise whatever their parsing runs into: OSError, SyntaxError, struct.error, KeyError, …
    except Exception as error:
        raise UnusableImage(f"cannot be decoded: {str(error) or type(error).__name__}") from error


def open_header(data: bytes, form: Format) -> ImageFile:
    """The picture with its header read and no pixels decoded.

    Pillow's plugin is called directly: `Image.open` warns of large pictures on stderr before they can be refused, and
    calls a JPEG file that holds further pictures another format.

    Raises:
        UnusableImage: a broken header, or too many pixels.
    """
    with pillow_errors():
        plugin = import_module(f"PIL.{_PLUGINS[form]}ImagePlugin")
        picture: ImageFile = getattr(plugin, f"{_PLUGINS[form]}ImageFile")(BytesIO(data))
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise UnusableImage(f"has {width}×{height} pixels, more than {_MILLIONS} million", _SCALE)
    return picture


def _format(data: bytes) -> Format:
    for form, beginning in _BEGINNINGS.items():
        if data.startswith(beginning):
            return form
    if strip.is_webp(data):
        return "webp"
    if not data:
        raise UnusableImage("is empty", "Fetch or export it again.")
    known = "PNG, JPEG, WebP, GIF, BMP and TIFF"
    raise UnusableImage("holds no picture that is known here", f"Known are {known}.")


def _mode(picture: ImageFile, form: Format) -> str:
    """Pillow's mode, but `P` for a grey palette and `L` for grey of more than 8 bits."""
    if form in {"bmp", "gif"} and picture.mode in {"1", "L"}:
        return "P"
    return "L" if picture.mode[0] in "IF" else picture.mode


def _frames(picture: ImageFile, form: Format, data: bytes) -> int:
    if form == "png":
        return strip.png_frames(data)
    # To count frames, Pillow reads each page of a TIFF whole, and fails where a later frame of a GIF is broken.
    if form == "tiff":
        return strip.tiff_pages(data)
    if form == "gif":
        return sum(block.kind == "frame" for block in strip.gif_blocks(data))
    return getattr(picture, "n_frames", 1)
