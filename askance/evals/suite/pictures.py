"""Pictures of a data set: files below a folder, files in an archive, and columns of Arrow tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from askance.errors import BadData, BadImage
from askance.evals.suite.files import DataFile, files_below, is_picture
from askance.images import Image

if TYPE_CHECKING:
    from askance.data_table import ArrowFiles

PICTURE = "image"
"""The column with the picture: its bytes, and the name of its file."""

DEEPEST = 3
MOST_FILES = 100_000
"""Files that are looked at, at most."""
MOST_BYTES = 64_000_000
"""Most bytes of a picture within an archive; the largest of WHOOPS! have about 1.4 million."""


@dataclass(frozen=True, slots=True)
class PictureFiles:
    """The pictures of a folder, and those in its archive."""

    by_stem: Mapping[str, DataFile]
    """By the name of the file without its ending."""

    @classmethod
    def scan(
        cls, folder: Path, *, archive: Path | None = None, first: str = "", apart: Collection[str] = ()
    ) -> PictureFiles:
        """The pictures below a folder; only names are read. A file counts before one of its name in the archive.

        Args:
            folder: where they are looked for, at most `DEEPEST` levels down.
            archive: the archive that they come in, if it is there.
            first: the folder that counts before others, where several have a picture of one name.
            apart: folders that are not looked into.

        Raises:
            BadData: there are too many files, or the archive cannot be read.
        """
        files = files_below(
            folder, deepest=DEEPEST, most=MOST_FILES, takes=is_picture, enters=lambda name: name not in apart
        )
        by_stem: dict[str, DataFile] = {}
        for path in sorted(files, key=lambda path: (path.parent.name != first, len(path.parts), str(path))):
            by_stem.setdefault(path.stem, DataFile(path))
        packed = () if archive is None else DataFile(archive).members()
        wanted = {file.stem: file for file in packed if is_picture(file.member)}
        return cls(wanted | by_stem)

    def __contains__(self, stem: str) -> bool:
        return stem in self.by_stem

    def load(self, stem: str) -> Image | None:
        """The picture of that name; one from the archive is held in memory.

        Raises:
            BadImage: it cannot be unpacked.
        """
        return load_picture(self.by_stem[stem]) if stem in self.by_stem else None


def load_picture(file: DataFile) -> Image:
    """The picture in a file; one from an archive is held in memory.

    Raises:
        BadImage: it cannot be unpacked.
    """
    if not file.member:
        return Image.from_path(file.path)
    try:
        return Image.from_bytes(file.read(MOST_BYTES), name=PurePosixPath(file.member).name)
    except BadData as error:
        raise BadImage(error.message, hint="Unpack the archive, and look at the picture.") from error


def picture_cell(table: ArrowFiles, row: int) -> tuple[bytes | None, str]:
    """The bytes of a row's picture, None if there are none, and the name of its file."""
    cell: Any = table.cell(PICTURE, row) if PICTURE in table.columns else None
    if not isinstance(cell, dict):
        return cell, ""
    parts = cast("Mapping[str, Any]", cell)
    return parts.get("bytes"), str(parts.get("path") or "")


def load_cell(table: ArrowFiles, row: int) -> Image | None:
    """The picture of a row, held in memory; None if there is none."""
    data, name = picture_cell(table, row)
    return None if data is None else Image.from_bytes(data, name=PurePosixPath(name).name or None)
