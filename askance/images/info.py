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
"""File name endings, in lower case, by which pictures are found in a folder. The content decides their format."""

MAX_PIXELS = 50_000_000
"""Most pixels that are decoded."""


class UnusableImage(ValueError):
    """Why bytes cannot be used as a picture; `Image` turns it into a `BadImage` that names the file."""

    def __init__(self, reason: str, hint: str = "Save it anew, or leave it out.") -> None:
        super().__init__(reason)
        self.reason = reason
        """A clause that completes `The picture 'cat.jpg' …`."""
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """What the header of a picture says, read without decoding pixels."""

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
    """As in EXIF: 1 is upright, 2 to 8 are mirrored or rotated."""

    @property
    def upright_size(self) -> tuple[int, int]:
        """Width and height after the orientation is applied."""
        return (self.height, self.width) if self.orientation > 4 else (self.width, self.height)

    @property
    def media_type(self) -> str:
        """Such as `image/png`."""
        return MEDIA_TYPES[self.format]
