"""Pairs of a weird image and a normal one, which the data set does not hold: read from a folder that somebody made.

| in the folder | what it is |
|---|---|
| `normal/NAME.png`, `weird/NAME.png` | pairs by name; without `weird/`, NAME is the id of an image of the data set |
| `NAME_normal.png`, `NAME_weird.png` | the same in one folder; also `NAME-normal.png` and `NAME.normal.png` |
| `pairs.csv` | columns `weird`, `normal` (files of the folder), and if known `id`, `category`, `weird_caption`, |
| | `normal_caption` |
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.errors import BadData
from askance.evals.suite.files import read_text
from askance.images import SUFFIXES, Image

if TYPE_CHECKING:
    from askance.evals.whoops.images import WeirdImage

PAIRS = "pairs.csv"
PAPER = 100
"""Pairs of the paper (section 4.1)."""

_NAMED = re.compile(r"(?P<name>.+)[-_.](?P<kind>normal|weird)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A weird image and the normal one that goes with it."""

    id: str
    weird: Image
    normal: Image
    weird_caption: str = ""
    normal_caption: str = ""
    category: str = ""


def read_pairs(folder: str | Path, entries: Mapping[str, WeirdImage] | None = None) -> tuple[Pair, ...]:
    """The pairs in a folder, ordered by id.

    Args:
        folder: in one of the shapes above.
        entries: weird images of the data set by id, from which come captions, categories, and weird images that the
            folder lacks.

    Raises:
        BadData: no such folder, no pair in it, an image without its other half, or a file that is not there.
    """
    place = Path(folder)
    known = entries or {}
    if not place.is_dir():
        raise BadData(f"There is no folder of pairs {str(place)!r}.", hint=_HINT)
    found = list((_in_table if (place / PAIRS).is_file() else _in_folders)(place, known))
    if not found:
        raise BadData(f"The folder {str(place)!r} holds no pairs.", hint=_HINT)
    return tuple(sorted(found, key=lambda pair: pair.id))


_HINT = "Expected are `normal/NAME.png` and `weird/NAME.png`, `NAME_normal.png` and `NAME_weird.png`, or `pairs.csv`."


def _in_folders(folder: Path, known: Mapping[str, WeirdImage]) -> Iterator[Pair]:
    normal, weird = (dict(_of_kind(folder, kind)) for kind in ("normal", "weird"))
    alone = sorted({*weird} - {*normal}) + sorted(name for name in {*normal} - {*weird} if not _image(known, name))
    if alone:
        raise BadData(
            f"In {str(folder)!r} {many(len(alone), 'image has', 'images have')} no other half, such as {alone[0]!r}.",
            hint=_HINT,
        )
    for name, path in normal.items():
        own = Image.from_path(weird[name]) if name in weird else _image(known, name)
        if own is not None:
            yield _pair(name, own, Image.from_path(path), entry=known.get(name))


def _of_kind(folder: Path, kind: str) -> Iterator[tuple[str, Path]]:
    """The images of a kind, by the name that pairs share."""
    apart = folder / kind
    paths = sorted(path for path in (apart if apart.is_dir() else folder).iterdir() if path.suffix.lower() in SUFFIXES)
    for path in paths:
        named = _NAMED.fullmatch(path.stem)
        if apart.is_dir():
            yield path.stem, path
        elif named is not None and named["kind"].lower() == kind:
            yield named["name"], path


def _image(known: Mapping[str, WeirdImage], name: str) -> Image | None:
    return known[name].load() if name in known else None


def _pair(name: str, weird: Image, normal: Image, *, entry: WeirdImage | None, **told: str) -> Pair:
    """A pair, with what the data set knows of its weird image where the folder does not say."""
    said = {} if entry is None else {"weird_caption": entry.selected_caption, "category": entry.category}
    return Pair(id=name, weird=weird, normal=normal, **{**said, **{key: text for key, text in told.items() if text}})


def _in_table(folder: Path, known: Mapping[str, WeirdImage]) -> Iterator[Pair]:
    path = folder / PAIRS
    seen = set[str]()
    for number, row in enumerate(csv.DictReader(io.StringIO(read_text(path), newline="")), start=2):
        cells = {str(name).strip(): (cell or "").strip() for name, cell in row.items() if isinstance(cell, str)}
        where = f"The file {str(path)!r}, row {number}"
        weird, normal = (_file(folder, cells.get(kind, ""), where) for kind in ("weird", "normal"))
        name = cells.get("id") or weird.stem
        if name in seen:
            raise BadData(f"{where}: the pair {name!r} stands there twice.", hint="Give each its own `id`.")
        seen.add(name)
        told = {key: cells.get(key, "") for key in ("weird_caption", "normal_caption", "category")}
        yield _pair(name, Image.from_path(weird), Image.from_path(normal), entry=known.get(name), **told)


def _file(folder: Path, name: str, where: str) -> Path:
    path = folder / name
    if not name or not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise BadData(f"{where}: {name!r} is no file of the folder.", hint="Columns: weird, normal; and what is known.")
    return path
