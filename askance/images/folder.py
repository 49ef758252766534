"""A folder that keeps pictures from the web and from tables, so that they need to be fetched once only."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from askance.errors import BadImage, UsageError
from askance.images.image import Image

Fetch = Literal["missing", "always", "never"]
"""Which pictures are fetched from the web: those that are not kept yet, all, or none."""


@dataclass(frozen=True, slots=True)
class PictureFolder:
    """Pictures as files, each named by the sha256 of its address, or of its bytes where it has none.

    Nothing is ever taken out; deleting the folder costs no more than fetching the pictures again.
    """

    path: Path

    def of_address(self, url: str, *, fetch: Fetch = "missing") -> Path:
        """The file of the picture at an http(s) address; see `Image.from_url` for what is refused.

        Raises:
            BadImage: it cannot be fetched, is no picture, or is not kept and may not be fetched.
            UsageError: the folder cannot be written.
        """
        file = self.path / sha256(url.encode()).hexdigest()
        if fetch != "always" and file.is_file():
            return file
        if fetch == "never":
            raise BadImage(
                f"The picture {url[:200]!r} is not kept in {str(self.path)!r}, and a replay fetches nothing.",
                hint="Run it once without `--replay`, or name the folder of its records by `--store`.",
            )
        self._write(file, Image.from_url(url).data)
        return file

    def of_bytes(self, data: bytes) -> Path:
        """The file of a picture whose bytes are at hand.

        Raises:
            UsageError: the folder cannot be written.
        """
        file = self.path / sha256(data).hexdigest()
        if not file.is_file():
            self._write(file, data)
        return file

    def _write(self, file: Path, data: bytes) -> None:
        """Writes a file whole, or not at all."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError), (self.path / ".gitignore").open("x") as ignored:
                ignored.write("*\n")
            handle, part = tempfile.mkstemp(dir=self.path, prefix=".part-")
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(data)
                Path(part).replace(file)
            except BaseException:
                with suppress(OSError):
                    Path(part).unlink()
                raise
        except OSError as error:
            raise UsageError(
                f"A picture cannot be kept in {str(self.path)!r}: {error.strerror}.",
                hint="Name another folder for records and pictures: --store FOLDER.",
            ) from error
