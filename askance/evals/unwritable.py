"""Files that cannot be written, on a full disk or without the rights: told by name, with nothing half left behind."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from askance.errors import StoreError

ROOM = "Make room on the disk, or check the rights to the folder; then the same command again."


@contextmanager
def writing_to(path: Path, *, hint: str = ROOM) -> Generator[None]:
    """Tells of a file that cannot be written; what stands beside it as `NAME.part` is then taken away.

    Raises:
        StoreError: the system refuses.
    """
    try:
        yield
    except OSError as error:
        part = path.with_name(f"{path.name}.part")
        if part.is_file():
            part.unlink()
        raise StoreError(f"{str(path)!r} cannot be written: {error.strerror or error}.", hint=hint) from error


def write_whole(path: Path, text: str) -> None:
    """Writes a text file, in place of one that is there; at no time is it half written.

    Its folder is made. Half a surrogate pair, as a name may hold, is written as JSON's escape for it.

    Raises:
        StoreError: it cannot be written; a file that was there stays.
    """
    with writing_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        part.replace(path)
