"""A folder that keeps pictures from the web and from tables, so that they need to be fetched once only."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Literal, NamedTuple

from askance.errors import BadImage, UsageError
from askance.images.image import Image

PICTURES = "pictures"
"""Name of such a folder beside the records."""

Fetch = Literal["missing", "always", "never"]
"""Which pictures are fetched from the web: those that are not kept yet, all, or none."""


@dataclass(frozen=True, slots=True)
class KeptPicture:
    """A picture of a folder."""

    file: Path
    size: int
    """Bytes."""
    at: datetime
    """When it was fetched, UTC."""


class TakenPictures(NamedTuple):
    """What became of the pictures of another folder."""

    new: int
    known: int
    left: int
    """Files in which there is no picture."""


_NAME = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PictureFolder:
    """Pictures as files, each named by the sha256 of its address, or of its bytes where it has none, and by its format.

    Deleting the folder, or some of its pictures, costs no more than fetching them again.
    """

    path: Path

    def of_address(self, url: str, *, fetch: Fetch = "missing") -> Path:
        """The file of the picture at an http(s) address; see `Image.from_url` for what is refused.

        Raises:
            BadImage: it cannot be fetched, is no picture, or is not kept and may not be fetched.
            UsageError: the folder cannot be written.
        """
        name = sha256(url.encode("utf-8", "surrogatepass")).hexdigest()
        existing = self._existing(name)
        if fetch != "always" and existing is not None:
            return existing
        if fetch == "never":
            raise BadImage(
                f"The picture {url[:200]!r} is not kept in {str(self.path)!r}, and a replay fetches nothing.",
                hint="Run it once without `--replay`, or name the folder of its records by `--store`.",
            )
        return self._write(name, Image.from_url(url), instead_of=existing)

    def of_bytes(self, data: bytes) -> Path:
        """The file of a picture whose bytes are at hand.

        Raises:
            UsageError: the folder cannot be written.
        """
        image = Image.from_bytes(data)
        existing = self._existing(image.sha256)
        if existing is not None and existing.read_bytes() == data:
            return existing
        return self._write(image.sha256, image, instead_of=existing)

    def kept(self) -> Iterator[KeptPicture]:
        """The pictures that are there, in the order of their names; none where there is no folder."""
        for file in sorted(self.path.glob("[!.]*")):
            with suppress(OSError):  # somebody else may take it out just now
                status = file.lstat()
                if _NAME.fullmatch(file.stem) and S_ISREG(status.st_mode):
                    yield KeptPicture(file, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def take(self, other: PictureFolder) -> TakenPictures:
        """Takes in the pictures of another folder that are not here; what is no picture stays where it is.

        Raises:
            UsageError: the folder cannot be written.
        """
        counts = Counter[str]()
        for each in other.kept():
            image = Image.from_path(each.file)
            if self._existing(each.file.stem) is not None:
                counts["known"] += 1
            elif _suffix(image):
                self._write(each.file.stem, image)
                counts["new"] += 1
            else:
                counts["left"] += 1
        return TakenPictures(counts["new"], counts["known"], counts["left"])

    def remove(self, pictures: Iterable[KeptPicture]) -> None:
        """Takes pictures out.

        Raises:
            UsageError: the folder cannot be written.
        """
        for each in pictures:
            try:
                each.file.unlink(missing_ok=True)
            except OSError as error:
                raise UsageError(
                    f"The picture {str(each.file)!r} cannot be taken out: {error.strerror}.",
                    hint="Mend the rights of its folder.",
                ) from error

    def _existing(self, name: str) -> Path | None:
        return next(self.path.glob(f"{name}*"), None)

    def _write(self, name: str, image: Image, *, instead_of: Path | None = None) -> Path:
        """Writes a file whole, or not at all; `instead_of` is taken out."""
        file = self.path / f"{name}{_suffix(image)}"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError), (self.path / ".gitignore").open("x") as ignored:
                ignored.write("*\n")
            handle, part = tempfile.mkstemp(dir=self.path, prefix=".part-")
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(image.data)
                Path(part).replace(file)
                if instead_of is not None and instead_of != file:
                    instead_of.unlink(missing_ok=True)
            except BaseException:
                with suppress(OSError):
                    Path(part).unlink()
                raise
        except OSError as error:
            raise UsageError(
                f"A picture cannot be kept in {str(self.path)!r}: {error.strerror}.",
                hint="Name another folder for records and pictures: --store FOLDER.",
            ) from error
        return file


def _suffix(image: Image) -> str:
    """The ending of a file with this picture, by which it is found in a folder; none for what is no picture."""
    try:
        return f".{image.info.format}"
    except BadImage:
        return ""
