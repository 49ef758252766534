"""Putting a page on the disk: whole or not at all, with its pictures in it or in a folder beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from askance.errors import UsageError

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
        OSError: it cannot be written.
    """
    if out.is_dir():
        raise UsageError(f"{str(out)!r} is a folder, and the page is one file.", hint="Name a file: -o report.html")
    out.parent.mkdir(parents=True, exist_ok=True)
    files = _beside(out, pictures) if beside and pictures is not None else None
    part = out.with_name(f"{out.name}.part")
    try:
        size = part.write_bytes(make(files).encode("utf-8", "backslashreplace"))
        part.replace(out)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return size


def _beside(out: Path, pictures: Pictures) -> list[str]:
    folder = out.with_name(f"{out.stem}_files")
    folder.mkdir(exist_ok=True)
    for digest, data in pictures.jpegs.items():
        (folder / f"{digest[:32]}.jpg").write_bytes(data)
    return [f"{quote(folder.name)}/{digest[:32]}.jpg" for digest in pictures.jpegs]
