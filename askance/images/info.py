"""What the header of a picture says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Format = Literal["bmp", "gif", "jpeg", "png", "tiff", "webp"]

MEDIA_TYPES: dict[Format, str] = {
    "bmp": "image/bmp",
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "tiff": "image/tiff",
    "webp": "image/webp",
}

SUFFIXES: frozenset[str] = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
"""File name endings, in lower case, by which pictures are found in a folder; what they hold their content tells."""

MAX_PIXELS = 50_000_000
"""Most pixels that are decoded."""


class Unusable(ValueError):
    """A reason why some bytes are no usable picture; `Image` turns it into `BadImage` with the file's name."""

    def __init__(self, reason: str, hint: str = "Save it anew, or leave it out.") -> None:
        super().__init__(reason)
        self.reason = reason
        """A clause that completes `The picture 'cat.jpg' …`."""
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """What the header says; nothing is decoded for it."""

    format: Format
    width: int
    """Pixels, as stored: before the orientation is applied."""
    height: int
    mode: str
    """Colour mode by Pillow's names: `1`, `L`, `LA`, `P`, `RGB`, `RGBA`, `CMYK`."""
    bits: int = 8
    """Bits a channel."""
    frames: int = 1
    orientation: int = 1
    """As in EXIF: 1 is upright, 2 to 8 are mirrored or turned."""

    @property
    def media_type(self) -> str:
        """Such as `image/png`."""
        return MEDIA_TYPES[self.format]
