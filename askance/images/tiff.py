"""TIFF directories: the pages of a TIFF file, and the orientation inside EXIF blocks, which have the same form."""

from __future__ import annotations

from collections.abc import Callable

from askance.images.info import Unusable, big, cut, little

MAGICS = (b"II*\0", b"MM\0*")

_ORIENTATION = 0x112
_SHORT, _LONG = 3, 4
_MOST_PAGES = 1000


def orientation(exif: bytes) -> int:
    """The orientation, 1 to 8, in an EXIF block; 1 where it has none or is broken."""
    try:
        found = directory(exif).get(_ORIENTATION, 1)
    except Unusable:
        return 1
    return found if 1 <= found <= 8 else 1


def pages(data: bytes) -> int:
    """Pages of a TIFF file: the length of the chain of directories, as far as it can be followed, and 1000 at most.

    Raises:
        Unusable: the first directory is cut off.
    """
    number, seen = _numbers(data), set[int]()
    start = number(data, 4, 4)
    while start and start not in seen and len(seen) < _MOST_PAGES:
        seen.add(start)
        try:
            start = number(data, start + 2 + 12 * number(data, start, 2), 4)
        except Unusable:
            break
    return len(seen)


def directory(data: bytes) -> dict[int, int]:
    """Tags and first values of the first directory, of those tags that hold whole numbers.

    Raises:
        Unusable: the directory is cut off.
    """
    number = _numbers(data)
    start = number(data, 4, 4)
    count = number(data, start, 2)
    cut(data, start + 2, 12 * count)
    entries = (_entry(data, start + 2 + 12 * index, number) for index in range(count))
    return {tag: value for tag, value in entries if value is not None}


def _numbers(data: bytes) -> Callable[[bytes, int, int], int]:
    """How numbers are read in this file."""
    if data[:4] not in MAGICS:
        raise Unusable("has a broken TIFF header")
    return little if data[:2] == b"II" else big


def _entry(data: bytes, at: int, number: Callable[[bytes, int, int], int]) -> tuple[int, int | None]:
    """Tag and first value of the entry at `at`; None where the value is no whole number or lies outside."""
    tag, kind, count = number(data, at, 2), number(data, at + 2, 2), number(data, at + 4, 4)
    size = {_SHORT: 2, _LONG: 4}.get(kind)
    if size is None or not count:
        return tag, None
    place = at + 8 if size * count <= 4 else number(data, at + 8, 4)
    return tag, number(data, place, size) if place + size <= len(data) else None
