"""Topics, sentiments, strategies, slogans and symbols: their id lists in three encodings, and the annotations.

`Topics_List.txt` is UTF-16 with a byte order mark and tabs, `Sentiments_List.txt` Latin-1 with no-break spaces,
`Strategies_List.txt` ASCII with commas. Annotations are ids or free texts, one or several an annotator; annotators are
anonymous, and the i-th of one file need not be the i-th of another. Strategy 3, *Atypical*, is not category 3 of the
atypicality annotations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

from askance.errors import BadData
from askance.evals.suite.files import Problems, note, read_map, read_text
from askance.evals.suite.keys import check_key, full_key

Value = TypeVar("Value")

SIDE = 500.0
"""Largest coordinate of a symbol's box: they were drawn on pictures scaled to about 501×501 pixels."""

_LINE = re.compile(r"\s*(\d{1,4})\s*[\t.,]\s*(\S.*?)\s*")
_QUOTED = re.compile(r'"(?P<text>.*)"(?:\s*\(ABBREVIATION:\s*"(?P<short>[^"]*)"\))?')


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of an id list."""

    id: str
    text: str
    """The whole of it: `Beauty products and cosmetics (deodorants, …)`."""
    short: str
    """Its abbreviation, `beauty`; the text itself, in lower case, where it has none."""


def read_id_list(path: Path) -> dict[str, Listed]:
    """The entries of an id list, by id.

    Raises:
        BadData: no such file, a line of another form, or an id that stands there twice.
    """
    entries: dict[str, Listed] = {}
    for number, line in enumerate(read_text(path, otherwise="latin-1").splitlines(), start=1):
        if line.strip():
            entry = _listed(line, f"The file {str(path)!r}, line {number}")
            if entry.id in entries:
                raise BadData(
                    f"The file {str(path)!r}, line {number}: the id {entry.id} stands there twice.",
                    hint="Leave one of the two lines out.",
                )
            entries[entry.id] = entry
    if not entries:
        raise BadData(f"The file {str(path)!r} is empty.", hint=_EXPECTED)
    return entries


_EXPECTED = 'A line reads like: 6 "Alcohol" (ABBREVIATION: "alcohol"), with a tab, a period or a comma behind the id.'


def _listed(line: str, where: str) -> Listed:
    found = _LINE.fullmatch(line.replace("\xa0", " "))
    if found is None:
        raise BadData(f"{where}: {line[:60]!r} has no id and text.", hint=_EXPECTED)
    quoted = _QUOTED.fullmatch(found[2])
    text = quoted["text"] if quoted else found[2]
    short = quoted["short"] if quoted else None
    return Listed(str(int(found[1])), text, short or text.lower())


Votes: TypeAlias = tuple[tuple[str, ...], ...]
"""For each annotator what was said: ids or free texts, exactly as written, blanks and all."""


def read_votes(path: Path, problems: Problems | None = None) -> dict[str, Votes]:
    """Annotations by image: of topics or slogans, a text an annotator; of sentiments or strategies, a list of them.

    Args:
        path: a JSON object of images.
        problems: takes what is wrong with single images, which are then left out; without it the first is raised.

    Raises:
        BadData: no such file, or a value of another form.
    """
    return _by_image(path, _votes, problems)


def _votes(value: object, where: str) -> Votes:
    if not isinstance(value, list):
        raise BadData(f"{where}: the value is no list.", hint='It reads like ["27", "9"] or [["14"], ["2", "5"]].')
    return tuple(_vote(item, where) for item in cast("list[object]", value))


def _vote(item: object, where: str) -> tuple[str, ...]:
    texts = cast("list[object]", item) if isinstance(item, list) else [item]
    if not all(isinstance(text, str) for text in texts):
        raise BadData(
            f"{where}: {str(cast('object', item))[:60]!r} is no text.",
            hint='It reads like ["27", "9"] or [["14"], ["2"]].',
        )
    return tuple(cast("list[str]", texts))


def named(votes: Votes, entries: Mapping[str, Listed]) -> tuple[str, ...]:
    """What the annotators said, in order: ids by their abbreviation, free texts as they are, blanks left out."""
    said = (text for vote in votes for text in vote if text.strip())
    return tuple(entries[text.strip()].short if text.strip() in entries else text for text in said)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolBox:
    """Where an annotator saw what stands for something; its corners are in order.

    Coordinates run from 0 to `SIDE` whatever the size of the picture; x grows to the right, y downwards.
    """

    left: float
    top: float
    right: float
    bottom: float
    label: str

    def scaled(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Left, top, right and bottom in the pixels of a picture of that size; what lies beyond its edge is cut."""
        sides = zip((self.left, self.top, self.right, self.bottom), (width, height) * 2, strict=True)
        left, top, right, bottom = (min(max(at / SIDE, 0.0), 1.0) * size for at, size in sides)
        return left, top, right, bottom


def read_symbols(path: Path, problems: Problems | None = None) -> dict[str, tuple[SymbolBox, ...]]:
    """Boxes of symbols by image; the corners of many are swapped in the file and are put in order.

    Args:
        path: a JSON object of images, each a list of `[x1, y1, x2, y2, label]`.
        problems: takes what is wrong with single images, which are then left out; without it the first is raised.

    Raises:
        BadData: no such file, or a value of another form.
    """
    return _by_image(path, _boxes, problems)


def _boxes(value: object, where: str) -> tuple[SymbolBox, ...]:
    if not isinstance(value, list):
        raise BadData(f"{where}: the value is no list of boxes.", hint=_BOX)
    return tuple(_box(item, where) for item in cast("list[object]", value))


_BOX = 'A box reads like [58.0, 14.0, 430.0, 466.0, "electronics"].'


def _box(item: object, where: str) -> SymbolBox:
    fields = cast("list[object]", item) if isinstance(item, list) else []
    if len(fields) != 5 or not isinstance(fields[4], str) or not all(_is_number(field) for field in fields[:4]):
        raise BadData(f"{where}: {str(cast('object', item))[:60]!r} is no box.", hint=_BOX)
    x1, y1, x2, y2 = (float(cast("float", field)) for field in fields[:4])
    left, right = sorted((x1, x2))
    top, bottom = sorted((y1, y2))
    return SymbolBox(left=left, top=top, right=right, bottom=bottom, label=fields[4])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e6


def _by_image(path: Path, read: Callable[[object, str], Value], problems: Problems | None) -> dict[str, Value]:
    images: dict[str, Value] = {}
    for key, value in read_map(path, problems).items():
        try:
            image = full_key(check_key(key, where=f"The file {str(path)!r}"))
            images[image] = read(value, f"The file {str(path)!r}, key {key[:80]!r}")
        except BadData as error:
            note(error, problems)
    return images
