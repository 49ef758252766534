"""Decoding, scaling and encoding by Pillow, which is loaded at the first picture."""

from __future__ import annotations

import zlib
from io import BytesIO
from typing import TYPE_CHECKING, Literal

from askance.images.header import open_header, pillow_errors
from askance.images.info import Format, ImageInfo, UnusableImage
from askance.images.strip import PNG, check_scans

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.ImageFile import ImageFile

OutputFormat = Literal["jpeg", "png"]
"""Formats that pictures are re-encoded to."""

QUALITY = 90
"""JPEG quality of re-encoded pictures."""

_SHRINK_STEP = 0.75


def verify(data: bytes, form: Format) -> None:
    """Decode once, at the lowest resolution that the format offers.

    Raises:
        UnusableImage: the picture is cut off or broken.
    """
    picture = _decodable(data, form)
    with pillow_errors():
        if form == "jpeg":
            picture.draft(picture.mode, (1, 1))
        picture.load()


def decode(data: bytes, info: ImageInfo, *, least: int | None = None) -> Picture:
    """The first frame, decoded and upright, in 8 bits: `L`, `RGB`, or `RGBA` where it has transparency.

    Args:
        data: the file.
        info: its header.
        least: pixels of the shorter side that are enough; a larger JPEG is decoded at half, a quarter or an eighth of
            its size as long as it has so many, in a fraction of the time.

    Raises:
        UnusableImage: the picture is cut off or broken.
    """
    picture = _decodable(data, info.format)
    with pillow_errors():
        if least is not None and info.format == "jpeg":
            picture.draft(None, (least, least))
        picture.load()
        # Pillow turns a TIFF upright while it loads it.
        return to_8bit(picture if info.format == "tiff" else upright(picture, info.orientation))


def _decodable(data: bytes, form: Format) -> ImageFile:
    picture = open_header(data, form)
    if form == "jpeg":
        check_scans(data, picture.width * picture.height)
    return picture


def upright(picture: Picture, orientation: int) -> Picture:
    """A picture whose EXIF says this orientation, turned upright."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return picture.transpose(turns[orientation]) if orientation in turns else picture


def as_stored(picture: Picture, orientation: int) -> Picture:
    """An upright picture, turned back to how a file stores it whose EXIF says this orientation."""
    return upright(picture, {6: 8, 8: 6}.get(orientation, orientation))


def to_8bit(picture: Picture) -> Picture:
    """The picture in 8 bits: `L`, `RGB`, or `RGBA` where it has transparency.

    Grey values of 16 bits are divided by 257. Those of 32 bits, and floats, are stretched so that the lowest becomes 0
    and the highest 255. The metadata goes, but for a colour profile that still fits the mode.
    """
    profile = picture.info.get("icc_profile") if picture.mode in {"L", "P", "RGB", "RGBA"} else None
    converted = _convert_mode(picture)
    converted.info = {"icc_profile": profile} if profile else {}
    return converted


def _convert_mode(picture: Picture) -> Picture:
    if picture.has_transparency_data:
        return picture.convert("RGBA")
    if picture.mode.startswith("I;16"):
        return picture.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if picture.mode in {"I", "F"}:
        return _stretch_contrast(picture)
    if picture.mode in {"1", "L"}:
        return picture.convert("L")
    return picture.convert("RGB")


def _stretch_contrast(picture: Picture) -> Picture:
    extrema = picture.convert("F").getextrema()
    low, high = (float(value) for value in extrema if isinstance(value, (int, float)))
    scale = 255 / (high - low) if high > low else 0.0
    return picture.convert("F").point(lambda value: value * scale - low * scale).convert("L")


def flatten(picture: Picture) -> Picture:
    """The picture on a white background, without transparency; `L` and `RGB` stay as they are."""
    if picture.mode != "RGBA":
        return picture
    from PIL import Image

    flat = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    flat.info = picture.info
    return flat


def to_rgb(picture: Picture) -> Picture:
    """The picture in `RGB` on a white background; the colour profile of a grey picture goes, since it fits no other.

    One that is in `RGB` is given as it is, and not copied.
    """
    flat = flatten(picture)
    rgb = flat if flat.mode == "RGB" else flat.convert("RGB")
    if picture.mode == "L":
        rgb.info.pop("icc_profile", None)
    return rgb


MEAN_COLOUR = (123, 117, 104)
"""CLIP's mean colour, which its normalization turns into zero: of padding, and of what is hidden."""


def pad_to_square(picture: Picture, colour: tuple[int, ...]) -> Picture:
    """The picture centred in a square with bars of a colour of its mode, for encoders that crop to the centre."""
    from PIL import Image

    side = max(picture.size)
    if picture.size == (side, side):
        return picture
    square = Image.new(picture.mode, (side, side), colour)
    square.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    return square


def scale_down(picture: Picture, longest: int) -> Picture:
    """The picture with no side longer than `longest` pixels; a smaller one stays as it is."""
    factor = min(1.0, longest / max(picture.size))
    return resize(picture, (max(1, round(picture.width * factor)), max(1, round(picture.height * factor))))


def resize(picture: Picture, size: tuple[int, int]) -> Picture:
    """The picture in this width and height, in pixels."""
    from PIL.Image import Resampling

    return picture if picture.size == size else picture.resize(size, Resampling.LANCZOS)


def encode(picture: Picture, form: OutputFormat, *, quality: int = QUALITY) -> bytes:
    """The picture as a file without metadata; equal pixels and an equal Pillow give equal bytes."""
    stream, profile = BytesIO(), picture.info.get("icc_profile")
    if form == "jpeg":
        flatten(picture).save(stream, "JPEG", quality=quality, icc_profile=profile)
    else:
        picture.save(stream, "PNG", icc_profile=profile)
    return stream.getvalue()


def encode_within(picture: Picture, form: OutputFormat, *, max_bytes: float) -> tuple[bytes, Picture, OutputFormat]:
    """The picture as a file of at most `max_bytes`: in the format given, else as JPEG, else as ever smaller JPEG.

    Returns:
        The file, the picture that is in it, and its format.

    Raises:
        UnusableImage: not even one pixel fits.
    """
    while True:
        data = encode(picture, form)
        if len(data) <= max_bytes:
            return data, picture, form
        if form == "png":
            form = "jpeg"
        elif max(picture.size) == 1:
            raise UnusableImage(f"does not fit into {max_bytes} bytes", "Raise `max_bytes` of the image policy.")
        else:
            picture = scale_down(picture, max(1, int(max(picture.size) * _SHRINK_STEP)))


def uncompressed_png(picture: Picture) -> bytes:
    """The pixels as a PNG file whose bytes depend on the pixels and the colour profile alone.

    Raises:
        UnusableImage: the picture has no pixels, or cannot be loaded.
    """
    with pillow_errors():
        if not (picture.width and picture.height):
            raise UnusableImage(f"has no pixels ({picture.width}×{picture.height})")
        converted = to_8bit(picture)
        profile = converted.info.get("icc_profile")
        return _png_file(converted.size, converted.mode, converted.tobytes(), profile=profile)


_COLOUR_TYPES = {"L": 0, "RGB": 2, "RGBA": 6}
"""Numbers of the colour types in a PNG header."""


def _png_file(size: tuple[int, int], mode: str, pixels: bytes, *, profile: bytes | None = None) -> bytes:
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
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, _COLOUR_TYPES[mode], 0, 0, 0])
    colours = _png_chunk(b"iCCP", b"icc\0\0" + _zlib_stored(profile)) if profile else b""
    return (
        PNG + _png_chunk(b"IHDR", head) + colours + _png_chunk(b"IDAT", _zlib_stored(rows)) + _png_chunk(b"IEND", b"")
    )


def _png_chunk(kind: bytes, payload: bytes) -> bytes:
    body = kind + payload
    return len(payload).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def _zlib_stored(data: bytes, block: int = 0xFFFF) -> bytes:
    """`data` as a zlib stream of uncompressed blocks."""
    parts = [b"\x78\x01"]
    for at in range(0, len(data), block):
        piece = data[at : at + block]
        size = len(piece).to_bytes(2, "little")
        parts += [bytes([at + block >= len(data)]), size, bytes(byte ^ 0xFF for byte in size), piece]
    return b"".join([*parts, zlib.adler32(data).to_bytes(4, "big")])
