"""Bounding boxes of the atypicality annotations: JSON, or JSON in which every comma is written as a hyphen.

Such a hyphen can be told from a real one: inside a text it belongs to the text, behind a value it is a comma, and
anywhere else it is a sign. So `t-shirt` stays `t-shirt`, which the rule of the published code (each hyphen is a comma)
would break. A comma that stood inside a text was lost when the file was written, and stays a hyphen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from askance.errors import BadData

if TYPE_CHECKING:
    from askance.chat import Json

LONGEST = 20_000
"""Characters of a field with boxes."""

_PIECES = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<word>[a-zA-Z]+)|(?P<mark>[^\s])'
)
_EXPECTED = 'It reads like [{"label": "cup"-"x": 1}-{"label": "feather"-"x": 2}], or the same with commas.'


@dataclass(frozen=True, slots=True)
class Box:
    """One box of an annotator."""

    label: str
    """What is in it."""
    rest: Mapping[str, Json]
    """Whatever else is said of it; the names of the coordinates are not documented."""


def parse_boxes(text: str, *, where: str) -> tuple[Box, ...]:
    """The boxes in a field; `[]`, blanks and `nan` hold none.

    Raises:
        BadData: neither JSON nor JSON with hyphens for commas, or a box without a label.
    """
    text = text.strip()
    if text in {"", "[]", "nan"}:
        return ()
    if len(text) > LONGEST:
        raise BadData(f"{where}: the boxes have more than {LONGEST:,} characters.", hint=_EXPECTED)
    content = _json(text)
    content = _json(with_commas(text)) if content is None else content
    if not isinstance(content, list):
        raise BadData(f"{where}: the boxes {text[:60]!r} cannot be read.", hint=_EXPECTED)
    return tuple(_box(item, where) for item in content)


def _json(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _box(item: object, where: str) -> Box:
    form = cast("dict[str, Json]", item) if isinstance(item, dict) else {}
    label = form.get("label")
    if not isinstance(label, str):
        raise BadData(f"{where}: a box has no label.", hint=_EXPECTED)
    return Box(label, {name: value for name, value in form.items() if name != "label"})


def with_commas(text: str) -> str:
    """`text` with each hyphen that stands for a comma written as one."""
    pieces: list[str] = []
    behind_value = False
    place = 0
    while found := _PIECES.search(text, place):
        piece = found[0]
        if behind_value and piece.startswith("-"):
            pieces.append(",")
            place, behind_value = found.start() + 1, False
            continue
        pieces.append(piece)
        place = found.end()
        behind_value = found.lastgroup != "mark" or piece in "}]"
    return "".join(pieces)
