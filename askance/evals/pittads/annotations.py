"""Atypicality annotations, `final_csv.csv`: a row for each annotator of each image.

The rules are those of the published code (`clean_all_data`), with what it leaves to chance pinned down:

1. Categories 1, 2, 3 and 8 are TR1, TR2, OIO and OR; rows of 4 to 7 and 9, of `Regular_Object` and of none are dropped.
2. Labels of an image are those of the rows kept so far, in the order of `askance.atypicality.RELATIONS`; its plurality
   label is the most frequent one, none on a tie. Both are settled before the next step.
3. Rows that lack the name of an object, or have one of fewer than 3 or more than 50 characters, give no statement.

Boxes are JSON, or JSON in which every comma is written as a hyphen. Such a hyphen can be told from a real one: inside a
text it belongs to the text, behind a value it is a comma, and anywhere else it is a sign. So `t-shirt` stays `t-shirt`,
which the rule of the published code (each hyphen is a comma) would break. A comma that stood inside a text was lost
when the file was written, and stays a hyphen.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from askance.atypicality import RELATIONS, Relation, Statement
from askance.errors import BadData
from askance.evals.suite.files import Problems, note, read_table
from askance.evals.suite.image_keys import check_key, full_key

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


CATEGORIES: Mapping[str, Relation] = {"1": "TR1", "2": "TR2", "3": "OIO", "8": "OR"}
"""The four categories between two objects; the other ids of the taxonomy are 4 to 7 and 9."""
OTHERS = frozenset({"4", "5", "6", "7", "9"})
REGULAR = frozenset({"Regular_Object", "0"})
"""What an annotator says of an image that is not atypical; the published code writes it as 0."""

SHORTEST_NAME, LONGEST_NAME = 3, 50
"""Characters of an object's name, both included."""

Drop: TypeAlias = Literal[
    "no category",
    "another category",
    "regular object",
    "no primary object",
    "no secondary object",
    "unusable primary object",
    "unusable secondary object",
]
"""Why a row gives no statement."""
DROPS: tuple[Drop, ...] = get_args(Drop)

Vote: TypeAlias = Literal["TR1", "TR2", "OIO", "OR", "NA"]
"""What an annotator says of an image; `NA`: not atypical."""

_COLUMNS = {
    "image": ("image_url",),
    "category": ("category",),
    "primary": ("first_explaination", "first_explanation"),
    "secondary": ("second_explanation", "second_explaination"),
    "boxes": ("bounding_box",),
}
_MISSING = frozenset({"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}) | {
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
}
"""What pandas, and so the published code, takes for a missing value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One row: what one annotator says of one image."""

    image: str
    """Key with its shard."""
    where: str
    """File and line, for messages."""
    category: str
    """As it is written."""
    relation: Relation | None
    """The relation, where the category is one of the four."""
    primary: str
    """As it is written; empty where it is missing."""
    secondary: str
    drop: Drop | None
    """Why the row gives no statement."""
    bounding_box: str
    """As it is written; `boxes` reads it."""

    @property
    def vote(self) -> Vote | None:
        """The relation, `NA` for a regular object, None for anything else."""
        return "NA" if self.drop == "regular object" else self.relation

    @property
    def statement(self) -> Statement | None:
        """The relation between the two objects, if the row has all three."""
        if self.relation is None or self.drop is not None:
            return None
        return Statement(self.relation, self.primary, self.secondary)

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The objects' boxes.

        Raises:
            BadData: they cannot be read.
        """
        return parse_boxes(self.bounding_box, where=self.where)


@dataclass(frozen=True)
class AnnotatedImage:
    """All rows of one image."""

    key: str
    rows: tuple[Annotation, ...]
    """In the order of the file."""

    @cached_property
    def labels(self) -> tuple[Relation, ...]:
        """The relations that any annotator sees, in the order of `RELATIONS`."""
        seen = {row.relation for row in self.rows}
        return tuple(relation for relation in RELATIONS if relation in seen)

    @cached_property
    def plurality(self) -> Relation | None:
        """The relation that most of the rows with one say; None on a tie, and where there is none."""
        return _most(row.relation for row in self.rows if row.relation is not None)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of the rows that have one, each once, in the order of the rows."""
        return tuple(dict.fromkeys(row.statement for row in self.rows if row.statement is not None))

    @property
    def votes(self) -> tuple[Vote | None, ...]:
        """What each annotator says."""
        return tuple(row.vote for row in self.rows)

    @property
    def typical(self) -> bool:
        """Whether all annotators see a regular object."""
        return all(row.drop == "regular object" for row in self.rows)


def _most(relations: Iterable[Relation]) -> Relation | None:
    first, second = [*Counter(relations).most_common(2), (None, 0), (None, 0)][:2]
    return first[0] if first[1] > second[1] else None


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotated images of a file."""

    path: Path
    images: Mapping[str, AnnotatedImage]
    """By key, in the order of the file."""

    @property
    def rows(self) -> tuple[Annotation, ...]:
        """Every row."""
        return tuple(row for image in self.images.values() for row in image.rows)


def read_annotations(path: Path, problems: Problems | None = None) -> Annotations:
    """The annotations in a file.

    Args:
        path: a CSV file with the columns `image_url`, `category`, `first_explaination` (so spelt, or rightly),
            `second_explanation` and `bounding_box`.
        problems: takes what is wrong with single rows, which are then left out; without it the first is raised.

    Raises:
        BadData: no such file, an empty one, a column that is missing, a category that is none of the taxonomy.
    """
    images: dict[str, list[Annotation]] = {}
    for line, values in read_table(path, _COLUMNS):
        try:
            row = _annotation(values, where=f"The file {str(path)!r}, line {line}")
        except BadData as error:
            note(error, problems)
        else:
            images.setdefault(row.image, []).append(row)
    return Annotations(path, {key: AnnotatedImage(key, tuple(rows)) for key, rows in images.items()})


def _annotation(values: Mapping[str, str], *, where: str) -> Annotation:
    image = full_key(check_key(values["image"].strip(), where=where))
    category = _category(values["category"], where)
    primary, secondary = (_present(values[name]) for name in ("primary", "secondary"))
    return Annotation(
        image=image,
        where=where,
        category=values["category"],
        relation=CATEGORIES.get(category),
        primary=primary,
        secondary=secondary,
        drop=_drop(category, primary, secondary),
        bounding_box=_present(values["boxes"]),
    )


def _category(text: str, where: str) -> str:
    """The category without what a table of numbers adds to it, `3.0`; empty where it is missing."""
    category = re.sub(r"(?<=\d)\.0+$", "", _present(text).strip())
    if category and not (category in CATEGORIES or category in OTHERS or category in REGULAR):
        raise BadData(f"{where}: the category {text[:40]!r} is unknown.", hint="It should be 1 to 9 or Regular_Object.")
    return category


def _present(text: str) -> str:
    return "" if text in _MISSING else text


def _drop(category: str, primary: str, secondary: str) -> Drop | None:
    if category in REGULAR:
        return "regular object"
    if category not in CATEGORIES:
        return "another category" if category else "no category"
    if not primary:
        return "no primary object"
    if not secondary:
        return "no secondary object"
    if not is_meaningful(primary):
        return "unusable primary object"
    return None if is_meaningful(secondary) else "unusable secondary object"


def is_meaningful(name: str) -> bool:
    """Whether a name has 3 to 50 characters as it is written, and any that is not blank."""
    return SHORTEST_NAME <= len(name) <= LONGEST_NAME and bool(name.strip())
