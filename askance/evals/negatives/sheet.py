"""Validation sheets: options of some images in an order that says nothing, for people to call right or wrong.

After section 7.2 of *Benchmarking VLMs' Reasoning About Persuasive Atypical Images*: raters see the image and every
option, true statements and negatives alike. What is true stands in a key file of its own.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, cast

from askance.agents.negatives import KINDS
from askance.errors import BadData, BadImage, UsageError
from askance.evals.negatives.files import replaced
from askance.evals.negatives.sheet_page import PageImage, page
from askance.evals.spreadsheet import cell
from askance.evals.suite.files import read_map
from askance.evals.suite.ids import draw_ids
from askance.prompts import oneline

if TYPE_CHECKING:
    from askance.agents.negatives import NegativeKind
    from askance.evals.negatives.files import OptionSet
    from askance.images import Image

IMAGES = 100
"""Images of a sheet, as in the paper."""
SIDE = 480
"""Pixels of a thumbnail's longer side."""
QUESTION = "Is the statement right for the image?"

PAGE, TABLE, KEY = "sheet.html", "sheet.csv", "key.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One statement of a sheet, and what is true of it."""

    id: str
    """What raters see: the place of image and statement in the sheet."""
    key: str
    """The image."""
    text: str
    true: bool
    kind: NegativeKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What is put before raters, image by image."""

    id: str
    """Digest of the statements in their order, which answers are held against."""
    items: tuple[Item, ...]
    seed: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """The images, in their order."""
        return tuple(dict.fromkeys(item.key for item in self.items))

    def form(self) -> Mapping[str, Any]:
        """The key file: what is true."""
        items = [
            {"item": each.id, "image": each.key, "text": each.text, "true": each.true, "kind": each.kind}
            for each in self.items
        ]
        return {"sheet": self.id, "seed": self.seed, "items": items}


def draw_sheet(sets: Sequence[OptionSet], *, count: int = IMAGES, seed: int = 0) -> Sheet:
    """The options of `count` images, images and options in an order drawn with the seed.

    Raises:
        UsageError: no image has a negative.
    """
    by_key = {each.key: each for each in sets if each.negatives}
    if not by_key or count < 1:
        raise UsageError("There is nothing to sample: no image has a negative.", hint="Check the file.")
    keys = [*draw_ids(by_key, size=count, seed=seed)]
    Random(f"{seed}\nimages").shuffle(keys)
    items: list[Item] = []
    for number, key in enumerate(keys, start=1):
        each = by_key[key]
        kinds: dict[str, NegativeKind | None] = {negative.text: negative.kind for negative in each.negatives}
        options = sorted(dict.fromkeys(each.options))
        Random(f"{seed}\n{key}\noptions").shuffle(options)
        for place, text in enumerate(options, start=1):
            true = text in each.true
            items.append(Item(id=f"p{number:03}s{place:02}", key=key, text=text, true=true, kind=kinds.get(text)))
    return Sheet(id=_digest(items), items=tuple(items), seed=seed)


def _digest(items: Sequence[Item]) -> str:
    shown = json.dumps([[item.id, item.text] for item in items])
    return sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def write_sheet(
    sheet: Sheet,
    out: Path,
    *,
    images: Callable[[str], Image | None],
    question: str = QUESTION,
    side: int = SIDE,
) -> tuple[str, ...]:
    """Writes `sheet.html` and `sheet.csv` for raters, and `key.json`, which they must not see.

    Args:
        sheet: what is asked.
        out: folder for the three files.
        images: finds an image by its key.
        question: asked of every statement.
        side: pixels of the longer side of an image in the page.

    Returns:
        Images that could not be shown.

    Raises:
        BadData: none of them could.
    """
    shown = {key: _thumbnail(images(key), side) for key in sheet.keys}
    missing = tuple(key for key, data in shown.items() if data is None)
    if len(missing) == len(shown):
        raise BadData(
            f"None of the {len(shown):,} images of the sheet could be read, such as {missing[0]!r}.",
            hint="Name the folder that they are in with --images.",
        )
    pages = [
        PageImage(
            number=number,
            data=shown[key],
            statements=tuple((item.id, oneline(item.text)) for item in sheet.items if item.key == key),
        )
        for number, key in enumerate(sheet.keys, start=1)
    ]
    replaced(out / PAGE, page(sheet.id, pages, question=question))
    replaced(out / TABLE, _table(sheet))
    replaced(out / KEY, json.dumps(sheet.form(), ensure_ascii=False, indent=1) + "\n")
    return missing


def _thumbnail(image: Image | None, side: int) -> bytes | None:
    try:
        return None if image is None else image.thumbnail(side)
    except BadImage:
        return None


def _table(sheet: Sheet) -> str:
    """The CSV file that can be filled in a spreadsheet."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["sheet", "item", "image", "statement", "answer"])
    numbers = {key: number for number, key in enumerate(sheet.keys, start=1)}
    for item in sheet.items:
        writer.writerow([sheet.id, item.id, numbers[item.key], cell(oneline(item.text)), ""])
    return file.getvalue()


def read_key(path: Path) -> Sheet:
    """The sheet that a key file is of.

    Raises:
        BadData: no such file, or none that `write_sheet` made.
    """
    content = read_map(path)
    kinds = {None, *(kind for some in KINDS.values() for kind in some)}
    try:
        items = tuple(
            Item(
                id=str(each["item"]),
                key=str(each["image"]),
                text=str(each["text"]),
                true=each["true"],
                kind=each["kind"],
            )
            for each in cast("list[Mapping[str, Any]]", content["items"])
        )
        seed = int(content["seed"])
        sound = content["sheet"] == _digest(items) and all(item.kind in kinds for item in items)
        sound = sound and all(isinstance(item.true, bool) for item in items) and bool(items)  # pyright: ignore[reportUnnecessaryIsInstance]  # it was read
    except (KeyError, TypeError, ValueError) as error:
        raise BadData(f"The file {str(path)!r} is no key of a sheet.", hint=_MADE) from error
    if not sound:
        raise BadData(f"The key {str(path)!r} was changed: it does not fit its own sheet.", hint=_MADE)
    return Sheet(id=str(content["sheet"]), items=items, seed=seed)


_MADE = f"It is what `askance negatives sample` wrote as {KEY!r}."
