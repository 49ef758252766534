"""Reading the rows and pictures of the data set from a folder, in any of the layouts that people have on disk.

| layout | files |
|---|---|
| `csv` | `whoops_dataset.csv`, and `whoops_images.zip` or the pictures that it holds |
| `imagefolder` | `test/metadata.csv` with a column `file_name`, and the pictures beside it |
| `arrow` | parquet files, or what `datasets` keeps on disk; the pictures are among the columns |

Pictures are in folders or in the archive that they come in. They are found by the name of the file without its ending.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from askance.data_table import ArrowFiles, csv_records
from askance.errors import BadData
from askance.evals.suite.files import read_text
from askance.evals.suite.pictures import PictureFiles, load_cell, picture_cell
from askance.evals.whoops.images import COLUMNS, id_of

if TYPE_CHECKING:
    from askance.images import Image

ARCHIVE = "whoops_images.zip"
FOLDER = "whoops_images"
APART = frozenset({"pairs", "normal", "weird"})
"""Folders with other pictures: those of pairs."""

Layout: TypeAlias = Literal["csv", "imagefolder", "arrow"]

TABLE = "whoops_dataset.csv"
METADATA = "metadata.csv"
_TABLES: Mapping[Layout, str] = {"csv": TABLE, "imagefolder": METADATA}
_ARROW = (".parquet", ".arrow")
_PLACES = ("", "test", "data", "test/data", "default", "default/test")
"""Folders in which files are searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoopsRows:
    """The rows of the data set, and functions that load their pictures."""

    layout: Layout
    files: tuple[Path, ...]
    rows: tuple[tuple[str, Mapping[str, Any]], ...]
    """Each row with its file and the place in it, for messages."""
    load: Callable[[int], Image | None]
    """Loads the picture of a row, by its position."""
    has_picture: Callable[[int], bool]
    columns: tuple[str, ...]
    by_place: bool = False
    """Whether pictures are named by the position of the row, as the benchmark of atypical ads has them."""


def has_rows(folder: Path) -> bool:
    """Whether a folder has the data set in any layout; no file is read."""
    tables = ((folder / place / name).is_file() for name in _TABLES.values() for place in _PLACES)
    return any(tables) or bool(_arrow_files(folder))


def read_rows(folder: Path) -> WhoopsRows:
    """The rows in a folder, in any layout.

    If there are several, the CSV file is taken, else the folder of images, else Arrow files.

    Raises:
        BadData: the folder is missing, it has no file of the data set, or one cannot be read.
        MissingExtra: there is an Arrow file, and pyarrow is not installed.
    """
    if not folder.is_dir():
        raise BadData(f"There is no data folder {str(folder)!r}.", hint=_HINT)
    for layout, name in _TABLES.items():
        for place in _PLACES:
            if (folder / place / name).is_file():
                return _of_table(layout, folder, folder / place / name)
    files = _arrow_files(folder)
    if not files:
        raise BadData(f"The folder {str(folder)!r} holds nothing of the data set.", hint=_HINT)
    return _of_arrow(files)


_HINT = f"Expected is {TABLE!r}, or {METADATA!r} beside the images, or parquet or Arrow files."


def _arrow_files(folder: Path) -> tuple[Path, ...]:
    """The Arrow files of the first kind and place that has any."""
    for suffix in _ARROW:
        for place in _PLACES:
            files = sorted(path for path in (folder / place).glob(f"*{suffix}") if not path.name.startswith("cache-"))
            if files:
                return tuple(files)
    return ()


def _of_table(layout: Layout, folder: Path, path: Path) -> WhoopsRows:
    rows = tuple((f"The file {str(path)!r}, line {line}", row) for line, row in _records(path))
    pictures = PictureFiles.scan(
        folder,
        archive=next((path for path in (folder / ARCHIVE, folder / "test" / ARCHIVE) if path.is_file()), None),
        first=FOLDER,
        apart=APART,
    )
    names = [_stems(row, where) for where, row in rows]
    by_place = not any(stem in pictures for stems in names for stem in stems) and all(
        str(place) in pictures for place in range(len(rows))
    )

    def stem(place: int) -> str | None:
        wanted = (str(place),) if by_place else names[place]
        return next((each for each in wanted if each in pictures), None)

    def load(place: int) -> Image | None:
        file = stem(place)
        return None if file is None else pictures.load(file)

    return WhoopsRows(
        layout=layout,
        files=(path,),
        rows=rows,
        load=load,
        has_picture=lambda place: stem(place) is not None,
        columns=tuple(rows[0][1]) if rows else (),
        by_place=by_place,
    )


def _stems(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Names that the picture of a row may have: that of its file, and its id."""
    file = str(row.get("file_name") or "").replace("\\", "/")
    return tuple(dict.fromkeys(name for name in (PurePosixPath(file).stem, id_of(row, where)) if name))


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The rows of a CSV file, each with the line on which it ends."""
    header, rows = csv_records(io.StringIO(read_text(path), newline=""), str(path), strict=True)
    known = [name for name in header if name in COLUMNS]
    if not {"image_id", "file_name"} & {*known}:
        raise BadData(
            f"The file {str(path)!r} has no column that names the image.",
            hint=f"It has {', '.join(map(repr, header[:20])) or 'none'}; expected is 'image_id' or 'file_name'.",
        )
    twice = next((name for name in known if header.count(name) > 1), None)
    if twice is not None:
        raise BadData(f"The file {str(path)!r} has the column {twice!r} twice.", hint="Keep one of them.")
    for line, row in rows:
        yield line, {name: cell for name, cell in zip(header, row, strict=True) if name in COLUMNS}


def _of_arrow(files: tuple[Path, ...]) -> WhoopsRows:
    table = ArrowFiles(files)
    rows: list[Mapping[str, Any]] = [*table.rows([name for name in table.columns if name in COLUMNS])]
    first = str(files[0])
    if rows and not {"image_id", "file_name"} & {*table.columns}:
        rows = [{**row, "file_name": picture_cell(table, place)[1]} for place, row in enumerate(rows)]
    return WhoopsRows(
        layout="arrow",
        files=files,
        rows=tuple((f"The file {first!r}, row {place}", row) for place, row in enumerate(rows)),
        load=partial(load_cell, table),
        has_picture=lambda place: picture_cell(table, place)[0] is not None,
        columns=tuple(name for name in table.columns if name in COLUMNS),
    )
