"""Published verbalizations: what a model of the paper's authors said of each image.

Their files are named `{IN|UH|V|T|combine}_{VLM}_description_{task}.csv` and have the columns `ID` and `description`. A
chain that is given such a text does not ask a model for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

from askance.atypicality import distinct
from askance.errors import BadData
from askance.evals.suite.files import read_table
from askance.evals.suite.image_keys import check_key, full_key

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
"""The link of a chain that each part fills in."""

_NAME = re.compile(r"(?P<source>IN|UH|V|T|combine)_(?P<vlm>.+)_description_(?P<task>.+)\.csv")
_NUMBERED = re.compile(r"(?:^|(?<=[\s,;]))\(?\d{1,2}[.)](?=\D)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptions:
    """One part of the verbalization of many images, by one model."""

    path: Path
    source: DescriptionPart
    vlm: str
    task: str
    texts: Mapping[str, str]
    """By the image's key with its shard, exactly as written."""


def is_descriptions(path: Path) -> bool:
    """Whether a file is one of descriptions, by its name."""
    return _NAME.fullmatch(path.name) is not None


def read_descriptions(path: Path) -> Descriptions:
    """The descriptions in a file.

    Raises:
        BadData: the file or a column is missing, its name does not say what it describes, or an image is described
            twice.
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
    """The description files in a folder, by name; for a file, the file itself.

    Raises:
        BadData: there are none.
    """
    if not place.is_dir():
        return [place]
    files = sorted(path for path in place.iterdir() if is_descriptions(path))
    if not files:
        raise BadData(
            f"The folder {str(place)!r} has no description files.",
            hint="Their names read like IN_LLAVA_description_ARR.csv, with IN, UH, V, T or combine in front.",
        )
    return files


def one_of_each(files: Iterable[Descriptions]) -> dict[DescriptionPart, Descriptions]:
    """The files by the part that they describe.

    Raises:
        BadData: two files describe the same part.
    """
    by_part: dict[DescriptionPart, Descriptions] = {}
    for file in files:
        if other := by_part.get(file.source):
            raise BadData(
                f"Both {str(other.path)!r} and {str(file.path)!r} hold {file.source}.",
                hint="Name the files of one model and task.",
            )
        by_part[file.source] = file
    return by_part


def given_links(key: str, files: Mapping[DescriptionPart, Descriptions]) -> dict[GivenLink, str | tuple[str, ...]]:
    """The descriptions of an image as links of a chain; blank texts are left out."""
    texts: dict[DescriptionPart, str] = {source: file.texts.get(key, "") for source, file in files.items()}
    return {
        LINK_OF[source]: object_names(text) if source == "V" else text for source, text in texts.items() if text.strip()
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
