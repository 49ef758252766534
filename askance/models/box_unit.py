"""The unit in which a vision model gives boxes: by its family, else by how it answers about a drawn picture.

Models were trained on boxes of one unit each and are poor at others. A model of no known family is asked where four
rectangles are, without a word about units; the unit under which its numbers lie on them is its own.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, get_args

from askance.images.regions import iou

if TYPE_CHECKING:
    from askance.images.regions import Box

BoxUnit = Literal["thousandths", "fractions", "pixels", "none"]
"""Thousandths of the picture's sides; fractions of them, from 0 to 1; pixels of the picture as it is sent; or none,
where boxes of the model are of no use, so that regions are named instead."""
BOX_UNITS: tuple[BoxUnit, ...] = get_args(BoxUnit)

FAMILY_UNITS: tuple[tuple[re.Pattern[str], BoxUnit], ...] = (
    (re.compile(r"qwen-?2\.5-?vl"), "pixels"),
    (re.compile(r"qwen-?[23]-?vl"), "thousandths"),
    (re.compile(r"claude"), "pixels"),
)
"""Unit by a pattern of the model's name, in lower case; the first one found decides.

Sources, read in November 2026: QwenLM/Qwen3-VL, issues 676 and 940 (Qwen2.5-VL: pixels after the picture was fitted to
squares of 28, a few pixels beside what is sent), 866 and 1486 (Qwen2-VL and Qwen3-VL: 0 to 1000); Anthropic, "Vision
coordinates" on platform.claude.com (pixels of the picture once scaled down, which one of up to 1568 pixels is not).
"""


def family_unit(*names: str | None) -> BoxUnit | None:
    """The unit of the family that one of `names` tells; None where none does."""
    return next(
        (unit for name in names if name for pattern, unit in FAMILY_UNITS if pattern.search(name.lower())), None
    )


TARGETS: Mapping[str, Box] = {
    "red": (70, 40, 190, 110),
    "green": (430, 60, 600, 170),
    "blue": (90, 260, 250, 400),
    "orange": (400, 290, 520, 420),
}
"""The rectangles in `TARGETS_PICTURE` by their colours: boxes in pixels, which meet no other one under a wrong unit."""

TARGETS_SIZE = (672, 448)
"""Width and height of `TARGETS_PICTURE`: multiples of 14, 28 and 32, so that no model has to fit it."""

TARGETS_PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAqAAAAHABAMAAACPDscxAAAAD1BMVEX/////jAAAlgDcAAAAANwZr0MQAAACEklEQVR42u3dQRGAIBBAUXAoYAUr"
    "WMHYVrCCFaxgBZzVg8t7Z8Thz3LVUgAAAAAAAAAAAAAAAABiaseaNbD/MVrQyUwJKqigCCqooAgqqKAIKqiggiKooIIiqKD5tKTnWr7Y9DShrryg"
    "CCqooIIiqKCCIqiggiKooIIiqKCCCoqgggqKoIIKiqCCCoqgggoqKIIKKiiCCiooggoqqKASCCqooAgqqKD06PmiwyGTCRVUUAQVVFAEFVRQQRFU"
    "UEERVFBBEVRQQQVFUEEFRVBBBUVQQQVFUEEFFRRBBRUUQQUVFEEFFRRBBRVUUAQVVFAEFVRQBBVUUAQVVFBBAQAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAgkfpo9fby2/d8Qf0bWVBBBUVQQQVFUEEFRVBBBRUUQQUVFEEFFRRBBRUUQQUVVFAEFXQALctB5sCzlwl15QVFUEEFRVBBBUVQQQUV"
    "FEEFFRRBBRUUQQUVFEEFFVRQBBVUUAQVVFAEFVRQBBVUUEERVFBBEVRQQRFUUEEFRVBBBUVQQQVFUEEFRVBBBRUUQQUVFEEFFRRBBRUUQQUVVFAE"
    "FVRQBBVUUAQVVFAEFVRQQRFUUEERVFBBEVRQQQVFUEEFRVBBBUVQQQVFUEH/pGY5yBx49jKhrrygCCqooAgqqKAIKqiggiKooIIiqKCCAgAAAAAA"
    "AAAA8Dc3S/kIFZ3zYkkAAAAASUVORK5CYII="
)
"""A PNG with the rectangles of `TARGETS` on white."""

ENOUGH_HITS = 3
"""Rectangles that have to be found under one unit."""

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
"""A number that is no part of a word such as `bbox_2d`."""


def read_box(text: str) -> Box | None:
    """The box in a reply that has four numbers, in whatever brackets; None where it has no box."""
    numbers = [float(number) for number in _NUMBER.findall(text)]
    if len(numbers) != 4 or numbers[0] >= numbers[2] or numbers[1] >= numbers[3]:
        return None
    return numbers[0], numbers[1], numbers[2], numbers[3]


class UnitVotes:
    """Counts under which unit boxes lie on the rectangles that they are to be."""

    def __init__(self) -> None:
        self._hits = Counter[BoxUnit]()
        self._left = len(TARGETS)

    def add(self, colour: str, box: Box | None) -> None:
        """Adds what was said of the rectangle of this colour."""
        self._left -= 1
        if box is not None:
            target = TARGETS[colour]
            self._hits += Counter(unit for unit in BOX_UNITS[:-1] if iou(_in_pixels(box, unit), target) >= 0.5)

    @property
    def unit(self) -> BoxUnit | None:
        """The unit; None where it depends on rectangles that were not asked about yet."""
        unit: BoxUnit = max(BOX_UNITS, key=self._hits.__getitem__)
        if self._hits[unit] >= ENOUGH_HITS:
            return unit
        return "none" if self._hits[unit] + self._left < ENOUGH_HITS else None


def _in_pixels(box: Box, unit: BoxUnit) -> Box:
    width, height = TARGETS_SIZE
    across, down = {"thousandths": (width / 1000, height / 1000), "fractions": TARGETS_SIZE}.get(unit, (1, 1))
    return box[0] * across, box[1] * down, box[2] * across, box[3] * down
