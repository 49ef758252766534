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
