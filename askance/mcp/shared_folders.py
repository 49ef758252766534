"""Folders whose pictures a stranger may name, and nothing else on the disk.

A name is that of a folder and the way from it: `photos/holiday/cat.jpg`. No part of the way is a link. The file is
opened part by part, each below the one before, so that nothing that changes meanwhile leads elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from askance.errors import BadImage, UsageError
from askance.images import SUFFIXES, Image

MOST_BYTES: Final = 50_000_000
"""Bytes of a picture that is read."""
_LONGEST: Final = 1_000
"""Characters of a name."""
_HINT: Final = "Name it as the tool `pictures` lists it."
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# A pipe that nobody writes to is opened at once, and refused.
_FILE: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class SharedFolders:
    """Folders of pictures, each known by its own name.

    Args:
        folders: the paths.

    Raises:
        UsageError: there are none, one is no folder, two have one name, or the system cannot keep a name within one.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        if os.open not in os.supports_dir_fd:
            raise UsageError(
                "This system cannot keep a name within a folder.", hint="Serve pictures from Linux or macOS."
            )
        self._folders: dict[str, Path] = {}
        for folder in folders:
            path = folder.resolve()
            if not path.is_dir():
                raise UsageError(f"There is no folder {str(folder)!r}.", hint="Name a folder of pictures.")
            if self._folders.setdefault(path.name, path) != path:
                raise UsageError(
                    f"Two folders are called {path.name!r}.", hint="Rename one, or name the one above both."
                )
        if not self._folders:
            raise UsageError("No folder of pictures is named.", hint="Name one: askance mcp photos")

    def names(self, *, after: str = "", most: int = 100) -> list[str]:
        """The names of pictures, in order.

        Args:
            after: a name; those behind it are given.
            most: how many are given.
        """
        every = (name for label, root in sorted(self._folders.items()) for name in _below(root, label))
        return list(islice((name for name in every if _place(name) > _place(after)), most))

    def picture(self, name: str) -> Image:
        """The picture of a name; its bytes are read now.

        Raises:
            BadImage: the folders hold no such picture, it is a link, or larger than `MOST_BYTES`; or it is none.
        """
        label, *parts = name.split("/")
        if label not in self._folders or not _is_way(name, parts):
            raise BadImage(f"There is no picture {name[:200]!r} in the folders that are shared.", hint=_HINT)
        try:
            with _opened(self._folders[label], parts) as file:
                data = _read(file, name)
        except (OSError, ValueError) as error:
            raise BadImage(f"There is no picture {name[:200]!r} in the folders that are shared.", hint=_HINT) from error
        image = Image.from_bytes(data, name=name)
        _ = image.info  # what is no picture is refused here
        return image


def _is_way(name: str, parts: list[str]) -> bool:
    """Whether the parts of a name are a way to a picture: none leads up, is hidden or is another system's way.

    A file whose name is not UTF-8 cannot be named: the system's own form of it is no text that is sent.
    """
    return (
        len(name) <= _LONGEST
        and bool(parts)
        and not any("\ud800" <= letter <= "\udfff" for letter in name)
        and Path(parts[-1]).suffix.lower() in SUFFIXES
        and not any(not part or part.startswith(".") or "\\" in part or "\0" in part for part in parts)
    )


@contextmanager
def _opened(root: Path, parts: list[str]) -> Generator[int]:
    """The file at the end of a way, open.

    Raises:
        OSError: there is none, or a part of the way is a link.
    """
    at = os.open(root, os.O_RDONLY)
    try:
        for place, part in enumerate(parts, start=1):
            below = os.open(part, _FILE if place == len(parts) else _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _read(file: int, name: str) -> bytes:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise BadImage(f"{name[:200]!r} is no file.", hint=_HINT)
    with os.fdopen(file, "rb", closefd=False) as opened:
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadImage(f"{name[:200]!r} has more than {MOST_BYTES // 1_000_000} MB.", hint="Scale it down first.")
    return data


def _below(root: Path, label: str) -> Iterator[str]:
    """The names of pictures below a folder, in order; links and what cannot be named are left out."""
    try:
        entries = sorted(os.scandir(root), key=lambda each: each.name)
    except OSError:
        return
    for entry in entries:
        name = f"{label}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith("."):
                yield from _below(Path(entry.path), name)
        elif entry.is_file(follow_symlinks=False) and _is_way(name, name.split("/")[1:]):
            yield name


def _place(name: str) -> list[str]:
    """Where a name stands in the order."""
    return name.split("/") if name else []
