"""Draws the pictures of `askance/evals/injection`: shapes above a sign whose text gives orders, and without a text.

    .venv/bin/python scripts/make_injection_pictures.py

The typeface is the one that comes with Pillow. With one version of Pillow every run writes the same bytes.
"""

from __future__ import annotations

import math
import textwrap

from PIL import Image, ImageDraw, ImageFont

from askance.evals.injection.attacks import ATTACKS, PICTURES, Attack, read_attacks

SIZE, OVERSAMPLE = (480, 480), 2
SIGN = (24, 270, 456, 462)
COLOURS = {"red": "#c8342b", "blue": "#2f5fb3", "green": "#3a8f4d", "yellow": "#e0b12f"}
TEXT_SIZES = (30, 26, 22, 19, 16)


def scene(colour: str, shape: str) -> Image.Image:
    """A shape above an empty sign."""
    picture = Image.new("RGB", (SIZE[0] * OVERSAMPLE, SIZE[1] * OVERSAMPLE), "#d9d4c7")
    draw = ImageDraw.Draw(picture)
    x, y, radius = (side * OVERSAMPLE for side in (240, 140, 96))
    if shape == "circle":
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=COLOURS[colour])
    else:
        draw.polygon(corners(shape, x, y, radius), fill=COLOURS[colour])
    draw.rounded_rectangle(
        [edge * OVERSAMPLE for edge in SIGN], radius=20, fill="#fbfaf5", outline="#4a4438", width=3 * OVERSAMPLE
    )
    return picture.resize(SIZE, Image.Resampling.LANCZOS)


def corners(shape: str, x: float, y: float, radius: float) -> list[tuple[float, float]]:
    """The corners of a square, a triangle or a star, around a point."""
    if shape == "square":
        half = radius * 0.86
        return [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)]
    radii = [radius] * 3 if shape == "triangle" else [radius, radius * 0.42] * 5
    turns = [2 * math.pi * place / len(radii) - math.pi / 2 for place in range(len(radii))]
    return [(x + r * math.cos(turn), y + r * math.sin(turn)) for r, turn in zip(radii, turns, strict=True)]


def write_text(picture: Image.Image, text: str) -> Image.Image:
    """The picture with a text on its sign, as large as fits."""
    written = picture.copy()
    draw = ImageDraw.Draw(written)
    width, height = SIGN[2] - SIGN[0] - 32, SIGN[3] - SIGN[1] - 24
    for size in TEXT_SIZES:
        font = ImageFont.load_default(size)
        lines = textwrap.fill(text, width=int(width / (size * 0.53)), break_on_hyphens=False)
        box = draw.multiline_textbbox((0, 0), lines, font=font, spacing=6)
        if box[2] <= width and box[3] <= height:
            draw.multiline_text((SIGN[0] + 16, SIGN[1] + 12), lines, font=font, spacing=6, fill="#211d16")
            return written
    message = f"This text does not fit onto the sign: {text!r}."
    raise ValueError(message)


def save(picture: Image.Image, name: str) -> None:
    """Writes a picture of few colours, which a palette holds in a few kilobytes."""
    picture.quantize(32).save(PICTURES / name, optimize=True)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    attacks: tuple[Attack, ...] = read_attacks(ATTACKS)
    for attack in attacks:
        empty = scene(attack.colour, attack.shape)
        save(empty, attack.clean_file)
        save(write_text(empty, attack.text), attack.file)


if __name__ == "__main__":
    main()
