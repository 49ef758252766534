"""Pictures on disk, by the name of their file without its ending: in folders, or in the archive that they come in."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from askance.errors import BadData, BadImage
from askance.images import SUFFIXES, Image

ARCHIVE = "whoops_images.zip"
FOLDER = "whoops_images"
APART = frozenset({"pairs", "normal", "weird"})
"""Folders that hold pictures of another kind: those of pairs."""

DEEPEST = 3
MOST_FILES = 100_000
"""Files that are looked at at most; the data set has 500 images."""
MOST_BYTES = 64_000_000
"""Most bytes of a picture within an archive; those of the data set have about 1.4 million."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """The pictures of a folder, and those of an archive for which there is no file."""

    by_stem: Mapping[str, Path]
    archive: Path | None = None
    members: Mapping[str, str]
    """Of the archive, by name without its ending."""

    @classmethod
    def scan(cls, folder: Path) -> Pictures:
        """The pictures below a folder; names alone are read.

        Raises:
            BadData: too many files, or an archive that is none.
        """
        by_stem: dict[str, Path] = {}
        for path in sorted(_files(folder), key=lambda path: (path.parent.name != FOLDER, len(path.parts), str(path))):
            by_stem.setdefault(path.stem, path)
        archive = next((path for path in (folder / ARCHIVE, folder / "test" / ARCHIVE) if path.is_file()), None)
        return cls(by_stem=by_stem, archive=archive, members={} if archive is None else _members(archive))

    def __contains__(self, stem: str) -> bool:
        return stem in self.by_stem or stem in self.members

    def __len__(self) -> int:
        return len({*self.by_stem, *self.members})

    def load(self, stem: str) -> Image | None:
        """The picture of that name; one from the archive is held in memory.

        Raises:
            BadImage: the archive does not give it out.
        """
        if stem in self.by_stem:
            return Image.from_path(self.by_stem[stem])
        if self.archive is None or stem not in self.members:
            return None
        return _unpacked(self.archive, self.members[stem])


def _files(folder: Path, depth: int = 0) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise BadData(
            f"The folder {str(folder)!r} cannot be read: {error.strerror}.", hint="Check the path and its permissions."
        ) from error
    if len(entries) > MOST_FILES:
        raise BadData(
            f"The folder {str(folder)!r} holds more than {MOST_FILES:,} files.", hint="Name that of the data."
        )
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if Path(entry.name).suffix.lower() in SUFFIXES and entry.is_file():
            yield Path(entry.path)
        elif depth < DEEPEST and entry.is_dir() and entry.name not in APART:
            yield from _files(Path(entry.path), depth + 1)


def _members(archive: Path) -> dict[str, str]:
    try:
        with zipfile.ZipFile(archive) as opened:
            names = opened.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise BadData(f"The archive {str(archive)!r} cannot be read: {error}.", hint="Fetch it again.") from error
    shown = [name for name in names if not PurePosixPath(name).name.startswith(".") and "__MACOSX" not in name]
    wanted = (name for name in shown if PurePosixPath(name).suffix.lower() in SUFFIXES)
    return {PurePosixPath(name).stem: name for name in wanted}


def _unpacked(archive: Path, member: str) -> Image:
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as stream:
            data = stream.read(MOST_BYTES + 1)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError) as error:
        raise BadImage(f"{member!r} cannot be taken out of {str(archive)!r}: {error}.", hint="Unpack it.") from error
    if len(data) > MOST_BYTES:
        raise BadImage(
            f"{member!r} in {str(archive)!r} has more than {MOST_BYTES // 1_000_000} MB.",
            hint="Make the picture smaller.",
        )
    return Image.from_bytes(data, name=PurePosixPath(member).name)
