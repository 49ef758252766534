"""SQLite files that another process holds: the first wait is a long one, and then there is none until they are free."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}

WAY_OUT = "End that process (on most systems `fuser FILE` names it), or"
"""The beginning of a hint about a file that is held."""


class HeldFile(sqlite3.OperationalError):
    """Another process holds the file, and has not given it free in time."""


class Patience:
    """How long those who write one file wait for another process that holds it; usable from any thread.

    SQLite waits anew for each statement. Where the file is held for good, many writers that wait one after the other
    would keep a run from ending.

    Args:
        file: the database.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._held = False

    @contextmanager
    def waiting(self, seconds: float) -> Generator[None]:
        """For a change of the file, which waits for up to `seconds` by itself.

        Raises:
            HeldFile: it has waited for so long, or an earlier one has and the file is held still.
        """
        try:
            if self._held:
                self._refuse_held()
            yield
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            self._held = True
            msg = f"another process has held the file {str(self._file)!r} for {seconds:g} s"
            raise HeldFile(msg) from error
        self._held = False

    def _refuse_held(self) -> None:
        with closing(sqlite3.connect(self._file, timeout=0, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            file.execute("ROLLBACK")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether SQLite gave up since another process holds the file."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, HeldFile) or (code is not None and code & 0xFF in _BUSY)
