"""Topics, sentiments, strategies, slogans and symbols: their id lists in three encodings, and the annotations.

`Topics_List.txt` is UTF-16 with a byte order mark and tabs, `Sentiments_List.txt` Latin-1 with no-break spaces,
`Strategies_List.txt` ASCII with commas. Annotations are ids or free texts, one or several an annotator; annotators are
anonymous, and the i-th of one file need not be the i-th of another. Strategy 3, *Atypical*, is not category 3 of the
atypicality annotations.

Published verbalizations are the authors' files `{IN|UH|V|T|combine}_{VLM}_description_{task}.csv` with the columns `ID`
and `description`. What a file says can be given to a chain, which then does not ask for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, cast

from askance.atypicality import distinct
from askance.errors import BadData
from askance.evals.suite.files import Problems, note, read_map, read_table, read_text
from askance.evals.suite.image_keys import check_key, full_key

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


DescriptionPart: TypeAlias = Literal["V", "T", "IN", "UH", "combine"]
"""Objects, scene text, narration, what is unusual, and the one description combined of all four."""

GivenLink: TypeAlias = Literal["objects", "scene_text", "narration", "unusual", "description"]

LINK_OF: Mapping[DescriptionPart, GivenLink] = {
    "V": "objects",
    "T": "scene_text",
    "IN": "narration",
    "UH": "unusual",
    "combine": "description",
}
"""The link of a chain that each is given as."""

_NAME = re.compile(r"(?P<source>IN|UH|V|T|combine)_(?P<vlm>.+)_description_(?P<task>.+)\.csv")
_NUMBERED = re.compile(r"(?:^|(?<=[\s,;]))\(?\d{1,2}[.)](?=\D)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptions:
    """What one model said of the images, as to one of the questions."""

    path: Path
    source: DescriptionPart
    vlm: str
    task: str
    texts: Mapping[str, str]
    """By the image's key with its shard, exactly as written."""


def is_descriptions(path: Path) -> bool:
    """Whether the name of a file is that of descriptions."""
    return _NAME.fullmatch(path.name) is not None


def read_descriptions(path: Path) -> Descriptions:
    """The descriptions in a file.

    Raises:
        BadData: no such file, a name that does not say what is described, a missing column, or an image that is
            described twice.
    """
    name = _NAME.fullmatch(path.name)
    if name is None:
        raise BadData(
            f"The name of {str(path)!r} does not say what it describes.",
            hint="It should read like IN_LLAVA_description_ARR.csv, with IN, UH, V, T or combine in front.",
        )
    texts: dict[str, str] = {}
    for line, values in read_table(path, {"id": ("ID",), "description": ("description",)}):
        where = f"The file {str(path)!r}, line {line}"
        key = full_key(check_key(values["id"].strip(), where=where))
        if key in texts:
            raise BadData(f"{where}: the image {key!r} is described twice.", hint="Keep one of the two rows.")
        texts[key] = values["description"]
    return Descriptions(
        path=path, source=cast("DescriptionPart", name["source"]), vlm=name["vlm"], task=name["task"], texts=texts
    )


def find_descriptions(place: Path) -> list[Path]:
    """The description files in a folder, by name; a file is taken for itself.

    Raises:
        BadData: there is nothing of the kind.
    """
    if not place.is_dir():
        return [place]
    found = sorted(path for path in place.iterdir() if is_descriptions(path))
    if not found:
        raise BadData(
            f"The folder {str(place)!r} has no description files.",
            hint="Their names read like IN_LLAVA_description_ARR.csv, with IN, UH, V, T or combine in front.",
        )
    return found


def one_of_each(files: Iterable[Descriptions]) -> dict[DescriptionPart, Descriptions]:
    """The files by what they describe.

    Raises:
        BadData: two describe the same, as two models' do.
    """
    found: dict[DescriptionPart, Descriptions] = {}
    for file in files:
        if other := found.get(file.source):
            raise BadData(
                f"Both {str(other.path)!r} and {str(file.path)!r} hold {file.source}.",
                hint="Name the files of one model and task.",
            )
        found[file.source] = file
    return found


def given_links(key: str, files: Mapping[DescriptionPart, Descriptions]) -> dict[GivenLink, str | tuple[str, ...]]:
    """What the files say of an image, as links of a chain; blank texts are left out."""
    said: dict[DescriptionPart, str] = {source: file.texts.get(key, "") for source, file in files.items()}
    return {
        LINK_OF[source]: object_names(text) if source == "V" else text for source, text in said.items() if text.strip()
    }


def object_names(text: str) -> tuple[str, ...]:
    """The objects that a text lists: numbered, a line each, or with commas between them; each once."""
    pieces = _NUMBERED.split(text)
    if len(pieces) > 1:
        return _names(pieces[1:])  # what stands before the first number introduces the list
    pieces = text.splitlines()
    if len(pieces) == 1:
        pieces = text.split(",")
    return _names(pieces)


def _names(pieces: Iterable[str]) -> tuple[str, ...]:
    return distinct(name for piece in pieces if (name := piece.strip(" \t\r\n,;.*-•")))
