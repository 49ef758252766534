"""The images that a task is run on: lists in files, random subsets, folds, and notes on what was left out.

The paper on atypical ads does not publish which 250 images are its small set: its code takes the keys of the file of
statements that it is given, and that file was drawn without a seed. Give your own list, or draw a set by a seed.
Five-fold splits by image are for those who train (section 5 of the WHOOPS! paper: 60, 20 and 20 percent); the authors'
own splits are not published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from askance.amounts import many
from askance.errors import BadData, UsageError
from askance.evals.suite.files import read_json, read_table, read_text
from askance.evals.suite.image_keys import check_key, full_key
from askance.evals.suite.shuffle import stable_hash

Item = TypeVar("Item")

FULL_SET = 1_168
"""Images of the paper's full set (section 4)."""
SMALL_SET = 250
"""Images of the paper's small set (section 4)."""

_ID_COLUMNS = ("id", "ID", "image_url", "image", "image_id", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset(Generic[Item]):
    """The images that a task is run on."""

    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()
    """Which images these are, and what was left out."""
    noun: str = "images"

    def where(self, holds: Callable[[Item], bool], *, left_out: str) -> Subset[Item]:
        """The items for which `holds` is true, with a note on the others."""
        holding = tuple(item for item in self.items if holds(item))
        if len(holding) == len(self.items):
            return self
        lost = f"{len(self.items) - len(holding):,} of {len(self.items):,} {self.noun} are left out: {left_out}"
        return replace(self, items=holding, notes=(*self.notes, lost))

    def first(self, count: int | None) -> Subset[Item]:
        """The first `count` items; None keeps all."""
        if count is None or count >= len(self.items):
            return self
        note = f"the first {count:,} of {len(self.items):,} {self.noun}"
        return replace(self, items=self.items[:count], notes=(*self.notes, note))

    def in_fold(self, fold: int | None, folds: Callable[[Item], int | None], *, seed: int) -> Subset[Item]:
        """The items in the test set of a fold; None keeps all.

        Args:
            fold: its number, from 0.
            folds: gives the fold of an item.
            seed: of the folds, for the note.

        Raises:
            BadData: no item is in it.
        """
        if fold is None:
            return self
        items = tuple(item for item in self.items if folds(item) == fold)
        if not items:
            raise BadData(
                f"There is no image in fold {fold}.",
                hint=f"Folds are 0 to {FOLDS - 1}, and a list has to name an image of the fold.",
            )
        note = f"the {len(items):,} test images of fold {fold} of {FOLDS}, seed {seed}"
        return replace(self, items=items, notes=(*self.notes, note))


def read_names(path: Path) -> tuple[str, ...]:
    """The ids in a file, as they are written: one a line, or a JSON list of texts.

    Raises:
        UsageError: the file cannot be read, is empty, or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"The ids {str(path)!r} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The ids {str(path)!r} are not UTF-8 text.", hint="Save them as UTF-8.") from error
    names: Any = [line.strip() for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"The ids {str(path)!r} are no JSON list: {error}.", hint="Or write one a line."
            ) from error
    if not names or not all(isinstance(each, str) for each in names):
        raise UsageError(
            f"The file {str(path)!r} holds no list of ids.", hint="Write one a line, or a JSON list of texts."
        )
    return tuple(cast("list[str]", names))


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
    """A random subset of `size` images, or all if there are fewer: those with the lowest hash of seed and key.

    The order of the images and the version of Python have no influence. A larger size draws the same images and more;
    one image more or less in `keys` changes at most one of those drawn.
    """
    return tuple(sorted(set(keys), key=lambda key: stable_hash(seed, key))[:size])


FOLDS = 5


def fold_of(ids: Iterable[str], *, seed: int = 0, count: int = FOLDS) -> dict[str, int]:
    """For each image the fold, from 0, in whose test it is; depends on the set of ids and the seed alone.

    Raises:
        UsageError: fewer than three folds, or fewer images than folds.
    """
    ordered = sorted({*ids}, key=lambda name: stable_hash(seed, name, "fold"))
    if count < 3 or len(ordered) < count:
        raise UsageError(
            f"{many(len(ordered), 'image')} cannot be split into {count} folds.",
            hint="Three folds or more, none empty.",
        )
    return {name: place % count for place, name in enumerate(ordered)}
