"""`Entry`: one weird image of the data set, with everything that people wrote about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from askance.errors import BadData
from askance.evals.whoops.cells import Question, questions_in, text_in, texts_in

if TYPE_CHECKING:
    from askance.images import Image

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
class Entry:
    """One image, and what was written about it; a field whose column is not there is empty."""

    id: str
    """Opaque: the name of its file without the ending."""
    place: int
    """Position of its row, from 0, by which the re-cast of the benchmark of atypical ads names it."""
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
    """Gives the picture; None where the folder has none."""


def id_of(row: Mapping[str, Any], where: str) -> str:
    """The id in a row: its own column, or else the name of its file.

    Raises:
        BadData: it has neither.
    """
    named = text_in(row.get(NAMES[0]), where).strip()
    file = text_in(row.get(NAMES[1]), where).strip().replace("\\", "/")
    found = named or PurePosixPath(file).stem
    if not found:
        raise BadData(f"{where}: nothing says which image it is about.", hint=f"Expected {' or '.join(NAMES)}.")
    return found


def entry_of(row: Mapping[str, Any], place: int, *, where: str, load: Callable[[], Image | None]) -> Entry:
    """The entry in a row.

    Args:
        row: values by column.
        place: position of the row, from 0.
        where: the file and the place in it, for complaints.
        load: gives its picture.

    Raises:
        BadData: a cell that cannot be read, or no name of an image.
    """
    fields: dict[str, Any] = {
        **{name: text_in(row.get(column), f"{where}, {column!r}").strip() for name, column in TEXTS.items()},
        **{name: texts_in(row.get(column), f"{where}, {column!r}") for name, column in LISTS.items()},
    }
    questions = questions_in(row.get(QUESTIONS), f"{where}, {QUESTIONS!r}")
    return Entry(id=id_of(row, where), place=place, questions=questions, load=load, **fields)
