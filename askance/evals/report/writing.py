"""Putting a page on the disk: whole or not at all, with its pictures in it or in a folder beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from askance.errors import UsageError
from askance.evals.unwritable import writing_to

if TYPE_CHECKING:
    from askance.evals.report.pictures import Pictures

Make = Callable[[Sequence[str] | None], str]
"""From the addresses of the pictures beside the page, None where there are none, to the page."""


def write_page(out: Path, make: Make, *, pictures: Pictures | None = None, beside: bool = False) -> int:
    """Writes a page, in place of one that is there.

    Args:
        out: the file.
        make: makes the page.
        pictures: that it shows.
        beside: whether they go into the folder `NAME_files` beside the page instead of into it.

    Returns:
        The size of the page in bytes.

    Raises:
        UsageError: `out` is a folder.
        StoreError: it cannot be written; a page that was there stays.
    """
    if out.is_dir():
        raise UsageError(f"{str(out)!r} is a folder, and the page is one file.", hint="Name a file: -o report.html")
    with writing_to(out, hint="Make room on the disk, or name another place: `-o FILE`, `--html FILE`."):
        out.parent.mkdir(parents=True, exist_ok=True)
        page = make([*_places(out, pictures)] if beside and pictures is not None else None)
        part = out.with_name(f"{out.name}.part")
        size = part.write_bytes(page.encode("utf-8", "backslashreplace"))
        if beside and pictures is not None:
            _put_beside(out, pictures)
        part.replace(out)
    return size


def _places(out: Path, pictures: Pictures) -> Iterator[str]:
    """Addresses of pictures beside a page, in their order."""
    return (f"{quote(f'{out.stem}_files')}/{digest[:32]}.jpg" for digest in pictures.jpegs)


def _put_beside(out: Path, pictures: Pictures) -> None:
    folder = out.with_name(f"{out.stem}_files")
    folder.mkdir(exist_ok=True)
    for digest, data in pictures.jpegs.items():
        (folder / f"{digest[:32]}.jpg").write_bytes(data)
