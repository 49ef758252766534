"""`WeirdImage`: one weird image with everything that people wrote about it, and its reading from a row.

List columns are lists in Arrow files, JSON in the CSV file, and Python literals if a list was written by `str`. They
are tried in this order.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from askance.errors import BadData

if TYPE_CHECKING:
    from askance.images import Image

Question: TypeAlias = tuple[str, str]
"""A question about a picture, and its answer."""

LONGEST = 200_000
"""Most characters of a cell; the longest of the data set has some thousands."""
MOST_BRACKETS = 2_000
"""Most brackets of a Python literal, since nesting costs memory and stack."""


def text_in(value: object, where: str) -> str:
    """The text of a cell; empty if it has no value.

    Raises:
        BadData: it is not a text.
    """
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if not isinstance(value, str):
        raise BadData(f"{where}: {str(value)[:60]!r} is no text.", hint="Make it a text.")
    return value


def texts_in(value: object, where: str) -> tuple[str, ...]:
    """The texts of a list column, without blank ones.

    Raises:
        BadData: it is not a list of texts in one of the three forms.
    """
    items = _list(value, where)
    if not all(isinstance(item, str) for item in items):
        raise BadData(f"{where}: not all items are texts.", hint=_HINT)
    return tuple(text for text in cast("list[str]", items) if text.strip())


def questions_in(value: object, where: str) -> tuple[Question, ...]:
    """The questions of a list column, each with its answer.

    Raises:
        BadData: it is not a list of pairs of texts.
    """
    return tuple(_question(item, where) for item in _list(value, where))


def _question(item: object, where: str) -> Question:
    parts: list[Any] = list(cast("Sequence[Any]", item)) if isinstance(item, (list, tuple)) else []
    plain = [str(part) for part in parts if isinstance(part, (str, int, float)) and not isinstance(part, bool)]
    if len(parts) != 2 or len(plain) != 2 or not all(part.strip() for part in plain):
        shown = str(cast("object", item))[:60]
        raise BadData(
            f"{where}: {shown!r} is no pair of question and answer.", hint='Such as ["Who howls?", "a wolf"].'
        )
    return plain[0], plain[1]


def _list(value: object, where: str) -> list[object]:
    if isinstance(value, str):
        value = _read(value, where)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise BadData(f"{where}: {str(value)[:60]!r} is no list.", hint=_HINT)
    return list(cast("Sequence[object]", value))


def _read(text: str, where: str) -> object:
    """The list in a text, as JSON or as a Python literal; None if it is blank."""
    if not text.strip():
        return None
    if len(text) > LONGEST or sum(map(text.count, "[({")) > MOST_BRACKETS:
        raise BadData(f"{where}: a cell of {len(text):,} characters, more than any of the data set.", hint=_HINT)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _literal(text, where)


def _literal(text: str, where: str) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise BadData(
            f"{where}: {text[:60]!r} is a list neither in JSON nor as Python writes one.", hint=_HINT
        ) from error


_HINT = 'A cell reads like ["a text", "another text"]; fetch the file again if it was edited.'


TEXTS: Mapping[str, str] = {
    "designer": "image_designer",
    "designer_explanation": "designer_explanation",
    "selected_caption": "selected_caption",
    "category": "commonsense_category",
}
"""Columns with a text each, by field."""
LISTS: Mapping[str, str] = {
    "captions": "crowd_captions",
    "explanations": "crowd_explanations",
    "underspecified": "crowd_underspecified_captions",
}
"""Columns with a list of five texts each, by field."""
QUESTIONS = "question_answering_pairs"
NAMES = ("image_id", "file_name")
"""Columns that name the image: in every layout, and in the folder of images with its `metadata.csv`."""
COLUMNS = (*NAMES, *TEXTS.values(), *LISTS.values(), QUESTIONS)
"""Columns that are read; every other is passed over."""


def _nothing() -> Image | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeirdImage:
    """One image with what was written about it; a field is empty if its column is missing."""

    id: str
    """Its id: the name of its file without the ending."""
    place: int
    """Position of its row, from 0; the benchmark of atypical ads names it so."""
    designer: str = ""
    designer_explanation: str = ""
    selected_caption: str = ""
    """The caption that was chosen among those of the crowd."""
    captions: tuple[str, ...] = ()
    explanations: tuple[str, ...] = ()
    """The references of the explanation task."""
    underspecified: tuple[str, ...] = ()
    """Captions that leave out what is weird."""
    questions: tuple[Question, ...] = ()
    category: str = ""
    """The commonsense category, one of 26."""
    load: Callable[[], Image | None] = field(default=_nothing, compare=False, repr=False)
    """Loads the picture; None if the folder has none."""


def id_of(row: Mapping[str, Any], where: str) -> str:
    """The id in a row: its own column, else the name of its file.

    Raises:
        BadData: it has neither.
    """
    named = text_in(row.get(NAMES[0]), where).strip()
    file = text_in(row.get(NAMES[1]), where).strip().replace("\\", "/")
    image_id = named or PurePosixPath(file).stem
    if not image_id:
        raise BadData(f"{where}: nothing says which image it is about.", hint=f"Expected {' or '.join(NAMES)}.")
    return image_id


def entry_of(row: Mapping[str, Any], place: int, *, where: str, load: Callable[[], Image | None]) -> WeirdImage:
    """The image of a row.

    Args:
        row: values by column.
        place: position of the row, from 0.
        where: the file and the place in it, for messages.
        load: gives its picture.

    Raises:
        BadData: a cell cannot be read, or the row names no image.
    """
    fields: dict[str, Any] = {
        **{name: text_in(row.get(column), f"{where}, {column!r}").strip() for name, column in TEXTS.items()},
        **{name: texts_in(row.get(column), f"{where}, {column!r}") for name, column in LISTS.items()},
    }
    questions = questions_in(row.get(QUESTIONS), f"{where}, {QUESTIONS!r}")
    return WeirdImage(id=id_of(row, where), place=place, questions=questions, load=load, **fields)
