"""What annotators said of the ads: atypicality, and the topics, sentiments, strategies, slogans and symbols of PittAds.

**Atypicality**, `final_csv.csv`, has a row for each annotator of each image. The
rules are those of the published code (`clean_all_data`); what that leaves to chance is settled here:

1. Categories 1, 2, 3 and 8 are TR1, TR2, OIO and OR; rows of 4 to 7 and 9, of `Regular_Object` and of none are dropped.
2. Labels of an image are those of the rows kept so far, in the order of `askance.atypicality.RELATIONS`; its plurality
   label is the most frequent one, none on a tie. Both are settled before the next step.
3. Rows that lack the name of an object, or have one of fewer than 3 or more than 50 characters, give no statement.

Boxes are JSON, or JSON in which every comma is written as a hyphen. Such a hyphen can be told from a real one: inside a
text it belongs to the text, behind a value it is a comma, and anywhere else it is a sign. So `t-shirt` stays `t-shirt`,
which the rule of the published code (each hyphen is a comma) would break. A comma that stood inside a text was lost
when the file was written, and stays a hyphen.

**Topics, sentiments and strategies** have id lists in three encodings: `Topics_List.txt` is UTF-16 with a byte order
mark and tabs, `Sentiments_List.txt` Latin-1 with no-break spaces, `Strategies_List.txt` ASCII with commas. An
annotation is an id or a free text, one or several from each annotator. Annotators are anonymous: the i-th of one file
need not be the i-th of another. Strategy 3, *Atypical*, is not category 3 of the atypicality annotations.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, cast

from askance.atypicality import RELATIONS, Relation, Statement
from askance.chat import Json
from askance.errors import BadData
from askance.evals.suite.files import Problems, noting, read_map, read_table, read_text
from askance.evals.suite.image_keys import check_key, full_key

Value = TypeVar("Value")

LONGEST = 20_000
"""Characters of a field with boxes."""

_PIECES = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<word>[a-zA-Z]+)|(?P<mark>[^\s])'
)
_EXPECTED = 'It reads like [{"label": "cup"-"x": 1}-{"label": "feather"-"x": 2}], or the same with commas.'


@dataclass(frozen=True, slots=True)
class Box:
    """A box that an annotator drew."""

    label: str
    """What is in it."""
    rest: Mapping[str, Json]
    """Its other fields; the names of the coordinates are not documented."""


def parse_boxes(text: str, *, where: str) -> tuple[Box, ...]:
    """The boxes in a field; `[]`, blanks and `nan` mean no box.

    Raises:
        BadData: the field is neither JSON nor JSON with hyphens for commas, or a box has no label.
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
    """`text` with commas for the hyphens that stand for commas."""
    pieces: list[str] = []
    behind_value = False
    place = 0
    while match := _PIECES.search(text, place):
        piece = match[0]
        if behind_value and piece.startswith("-"):
            pieces.append(",")
            place, behind_value = match.start() + 1, False
            continue
        pieces.append(piece)
        place = match.end()
        behind_value = match.lastgroup != "mark" or piece in "}]"
    return "".join(pieces)


CATEGORIES: Mapping[str, Relation] = {"1": "TR1", "2": "TR2", "3": "OIO", "8": "OR"}
"""The four categories between two objects; the other ids of the taxonomy are 4 to 7 and 9."""
OTHERS = frozenset({"4", "5", "6", "7", "9"})
REGULAR = frozenset({"Regular_Object", "0"})
"""The category of an image that is not atypical; the published code writes it as 0."""

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
"""What pandas, and so the published code, reads as a missing value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One row: the annotation of one image by one annotator."""

    image: str
    """Key with its shard."""
    where: str
    """File and line, for messages."""
    category: str
    """As it is written."""
    relation: Relation | None
    """The relation, if the category is one of the four."""
    primary: str
    """As it is written; empty if it is missing."""
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
        """The relation that most annotators see; None on a tie, or if none sees one."""
        return _most(row.relation for row in self.rows if row.relation is not None)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of the rows, each once, in the order of the rows."""
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
        problems: takes the errors of single rows, which are then left out; without it the first error is raised.

    Raises:
        BadData: the file or a column is missing, the file is empty, or a category is not of the taxonomy.
    """
    images: dict[str, list[Annotation]] = {}
    for line, values in read_table(path, _COLUMNS):
        with noting(problems):
            row = _annotation(values, where=f"The file {str(path)!r}, line {line}")
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
    """The category, without the `.0` that a table of numbers adds; empty if it is missing."""
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
    """Whether a name has 3 to 50 characters and is not blank."""
    return SHORTEST_NAME <= len(name) <= LONGEST_NAME and bool(name.strip())


# --- topics, sentiments, strategies, slogans and symbols ---

SIDE = 500.0
"""Largest coordinate of a symbol's box: they were drawn on pictures scaled to about 501×501 pixels."""

_LINE = re.compile(r"\s*(\d{1,4})\s*[\t.,]\s*(\S.*?)\s*")
_QUOTED = re.compile(r'"(?P<text>.*)"(?:\s*\(ABBREVIATION:\s*"(?P<short>[^"]*)"\))?')


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of an id list."""

    id: str
    text: str
    """The full text: `Beauty products and cosmetics (deodorants, …)`."""
    short: str
    """Its abbreviation, `beauty`; if it has none, the text in lower case."""


def read_id_list(path: Path) -> dict[str, Listed]:
    """The entries of an id list, by id.

    Raises:
        BadData: the file is missing, a line is malformed, or an id is there twice.
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
        raise BadData(f"The file {str(path)!r} is empty.", hint=_ENTRY)
    return entries


_ENTRY = 'A line reads like: 6 "Alcohol" (ABBREVIATION: "alcohol"), with a tab, a period or a comma behind the id.'


def _listed(line: str, where: str) -> Listed:
    match = _LINE.fullmatch(line.replace("\xa0", " "))
    if match is None:
        raise BadData(f"{where}: {line[:60]!r} has no id and text.", hint=_ENTRY)
    quoted = _QUOTED.fullmatch(match[2])
    text = quoted["text"] if quoted else match[2]
    short = quoted["short"] if quoted else None
    return Listed(str(int(match[1])), text, short or text.lower())


Votes: TypeAlias = tuple[tuple[str, ...], ...]
"""By annotator, the ids or free texts of the annotation, exactly as written."""


def read_votes(path: Path, problems: Problems | None = None) -> dict[str, Votes]:
    """Annotations by image: of topics or slogans, a text an annotator; of sentiments or strategies, a list of them.

    Args:
        path: a JSON object of images.
        problems: takes the errors of single images, which are then left out; without it the first error is raised.

    Raises:
        BadData: the file is missing, or a value is malformed.
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
    """The annotations in order: ids as their abbreviations, free texts as they are; blank ones are left out."""
    texts = (text for vote in votes for text in vote if text.strip())
    return tuple(entries[text.strip()].short if text.strip() in entries else text for text in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolBox:
    """The box of a symbol that an annotator saw; its corners are in order.

    Coordinates run from 0 to `SIDE` whatever the size of the picture; x grows to the right, y downwards.
    """

    left: float
    top: float
    right: float
    bottom: float
    label: str

    def scaled(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Left, top, right and bottom in the pixels of a picture of that size; what is beyond the edge is cut."""
        sides = zip((self.left, self.top, self.right, self.bottom), (width, height) * 2, strict=True)
        left, top, right, bottom = (min(max(at / SIDE, 0.0), 1.0) * size for at, size in sides)
        return left, top, right, bottom


def read_symbols(path: Path, problems: Problems | None = None) -> dict[str, tuple[SymbolBox, ...]]:
    """Boxes of symbols, by image. Corners that are swapped in the file are put in order.

    Args:
        path: a JSON object of images, each a list of `[x1, y1, x2, y2, label]`.
        problems: takes the errors of single images, which are then left out; without it the first error is raised.

    Raises:
        BadData: the file is missing, or a value is malformed.
    """
    return _by_image(path, _symbol_boxes, problems)


def _symbol_boxes(value: object, where: str) -> tuple[SymbolBox, ...]:
    if not isinstance(value, list):
        raise BadData(f"{where}: the value is no list of boxes.", hint=_SYMBOL)
    return tuple(_symbol_box(item, where) for item in cast("list[object]", value))


_SYMBOL = 'A box reads like [58.0, 14.0, 430.0, 466.0, "electronics"].'


def _symbol_box(item: object, where: str) -> SymbolBox:
    fields = cast("list[object]", item) if isinstance(item, list) else []
    if len(fields) != 5 or not isinstance(fields[4], str) or not all(_is_number(field) for field in fields[:4]):
        raise BadData(f"{where}: {str(cast('object', item))[:60]!r} is no box.", hint=_SYMBOL)
    x1, y1, x2, y2 = (float(cast("float", field)) for field in fields[:4])
    left, right = sorted((x1, x2))
    top, bottom = sorted((y1, y2))
    return SymbolBox(left=left, top=top, right=right, bottom=bottom, label=fields[4])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e6


def _by_image(path: Path, read: Callable[[object, str], Value], problems: Problems | None) -> dict[str, Value]:
    images: dict[str, Value] = {}
    for key, value in read_map(path, problems).items():
        with noting(problems):
            image = full_key(check_key(key, where=f"The file {str(path)!r}"))
            images[image] = read(value, f"The file {str(path)!r}, key {key[:80]!r}")
    return images
