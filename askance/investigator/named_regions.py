"""Regions of a picture by name, so that a model can look at them without coordinates: a grid, and lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import product
from typing import TYPE_CHECKING

from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.images.regions import Box
    from askance.tools import TextBox

_SPANS = ((0, 400), (300, 700), (600, 1000))
"""Thirds of a side in thousandths; each reaches into its neighbours, so that what lies on a border is seen whole."""
_ROWS, _COLUMNS = ("top", "", "bottom"), ("left", "", "right")

GRID: Mapping[str, Box] = {
    f"{_ROWS[row]} {_COLUMNS[column]}".strip() or "center": (
        _SPANS[column][0],
        _SPANS[row][0],
        _SPANS[column][1],
        _SPANS[row][1],
    )
    for row, column in product(range(3), repeat=2)
}
"""By name, nine overlapping parts of a picture, in thousandths of its sides: `top left`, `top`, … `bottom right`."""


def text_regions(lines: Sequence[TextBox], size: tuple[int, int]) -> Mapping[str, Box]:
    """By name (`text 1`, `text 2`, …) the box around each line of text, in thousandths of the picture's sides.

    Args:
        lines: what an OCR engine found, from the top down.
        size: width and height, in pixels, of the picture that it saw.
    """
    return {f"text {number}": _around(line.box, size) for number, line in enumerate(lines, start=1)}


def region_named(name: str, regions: Mapping[str, Box]) -> Box:
    """The box of a region; case, white space and hyphens in its name do not count.

    Raises:
        UsageError: there is no region of the name.
    """
    folded = " ".join(name.casefold().replace("-", " ").replace("_", " ").split())
    if folded in regions:
        return regions[folded]
    near = get_close_matches(folded, regions, n=1)
    meant = f"The nearest name is {near[0]!r}; there" if near else "There"
    raise UsageError(f"There is no region {name[:40]!r}.", hint=f"{meant} are {', '.join(regions)}.")


def _around(corners: Sequence[tuple[float, float]], size: tuple[int, int]) -> Box:
    """The smallest box around the corners in whole thousandths, which has an area and lies within the picture."""
    spans: list[tuple[int, int]] = []
    for places, side in zip(zip(*corners, strict=True), size, strict=True):
        begin = min(999, max(0, int(min(places) * 1000 / side)))
        spans.append((begin, max(begin + 1, min(1000, -int(-max(places) * 1000 // side)))))
    (left, right), (top, bottom) = spans
    return left, top, right, bottom
