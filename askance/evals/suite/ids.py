"""Lists of images: read from a file, or drawn.

Which 250 images make up the small set of the paper is not published: its code takes the keys of whatever file of
statements it is given, and drew that file unseeded. A list of one's own says which; a drawn set says how.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import cast

from askance.errors import BadData
from askance.evals.suite.files import read_json, read_table, read_text
from askance.evals.suite.keys import check_key, full_key

FULL_SET = 1_168
"""Images of the paper's full set (section 4)."""
SMALL_SET = 250
"""Images of the paper's small set (section 4)."""

_ID_COLUMNS = ("id", "ID", "image_url", "image", "image_id", "key")


def read_ids(path: Path) -> tuple[str, ...]:
    """The images that a file lists, with their shards, in its order.

    Args:
        path: one a line (`#` begins a comment); a JSON list, or an object whose keys they are, such as a file of
            statements; or a CSV file with a column `id`, `ID`, `image_url`, `image`, `image_id` or `key`.

    Raises:
        BadData: no such file, none in it, something that is no image, or an image that is listed twice.
    """
    match path.suffix.lower():
        case ".json":
            listed = _of_json(path)
        case ".csv":
            listed = [(values["id"], f"line {line}") for line, values in read_table(path, {"id": _ID_COLUMNS})]
        case _:
            listed = _of_lines(path)
    return _checked(listed, f"The file {str(path)!r}")


def _of_json(path: Path) -> list[tuple[str, str]]:
    content = read_json(path)
    items = list(content) if isinstance(content, (list, dict)) else None
    if items is None or not all(isinstance(item, str) for item in items):
        raise BadData(
            f"The file {str(path)!r} is no list of images.", hint='It reads like ["9/142269.jpg", "0/12050.jpg"].'
        )
    return [(item, f"item {place}") for place, item in enumerate(cast("list[str]", items), start=1)]


def _of_lines(path: Path) -> list[tuple[str, str]]:
    lines = enumerate(read_text(path).splitlines(), start=1)
    return [(text, f"line {number}") for number, line in lines if (text := line.partition("#")[0].strip())]


def checked_ids(keys: Iterable[str]) -> tuple[str, ...]:
    """The images, with their shards, in their order.

    Raises:
        BadData: there are none, or one is no image or stands there twice.
    """
    return _checked(((key, f"item {place}") for place, key in enumerate(keys, start=1)), "The list of images")


def _checked(listed: Iterable[tuple[str, str]], source: str) -> tuple[str, ...]:
    places: dict[str, str] = {}
    for text, place in listed:
        key = full_key(check_key(text.strip(), where=f"{source}, {place}"))
        if key in places:
            raise BadData(
                f"{source} has {key!r} twice, at {places[key]} and at {place}.", hint="Remove one of the two."
            )
        places[key] = place
    if not places:
        raise BadData(f"{source} is empty.", hint="Give one image a line, such as 9/142269.jpg.")
    return tuple(places)


def draw_ids(keys: Iterable[str], *, size: int = SMALL_SET, seed: int = 0) -> tuple[str, ...]:
    """`size` of the images, or all where there are fewer: those whose sha256 together with the seed comes first.

    What is drawn depends on the images and the seed alone: not on their order, not on a version of Python. A larger
    size draws the same and more; an image more or less changes at most one.
    """

    def lot(key: str) -> str:
        return sha256(json.dumps([seed, key]).encode()).hexdigest()

    return tuple(sorted(set(keys), key=lot)[:size])
