"""The file that a store lives in: diskcache's tables, holding JSON text and nothing else.

What stands in a row is data, whoever wrote it. diskcache takes from a row how to read it (`mode`, which may say
"unpickle") and which file to read or delete (`filename`), and from a table which settings to apply. So here a row of
any other mode is refused, no file name is followed, every value stays in its row, and other settings are not applied.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from askance.errors import StoreError
from askance.replay.location import DATABASE
from askance.replay.shape import stranger

FORMAT = 1
"""Version of what rows hold, kept in the file as `user_version`; it is the first."""

CARRY_OVER = (
    "`askance cache export all.jsonl` with the askance that wrote it, then `askance cache import all.jsonl` with this "
    "one, into another folder (--store, ASKANCE_STORE)."
)
"""The way out for a store of another version: a cassette names no version of a store."""

APPLICATION = 0x41534B4E
"""`ASKN`: marks the file as a store of askance's, as `application_id`."""

BUSY_SECONDS = 60.0
"""How long to wait for another process that is writing."""

TOGETHER = 500
"""Rows that are taken out at once: other processes wait meanwhile."""

MAX_VALUE = 64 * 2**20
"""Longest record, in bytes; a longer value is not read."""

RAW = 1
"""diskcache's mode of a value that stands in its row as it is."""

SETTINGS: Mapping[str, int | str] = {
    "statistics": 0,
    "tag_index": 1,
    "eviction_policy": "none",
    "size_limit": 2**62,
    "cull_limit": 0,
    "sqlite_auto_vacuum": 0,
    "sqlite_cache_size": 2**11,
    "sqlite_journal_mode": "wal",
    "sqlite_mmap_size": 0,
    "sqlite_synchronous": 1,
    "disk_min_file_size": 2**62,
    "disk_pickle_protocol": 0,
}
"""No eviction, no size limit, no expiry; a write survives the death of the process at any instant."""

_SETTING_TYPES = {(name, type(value)) for name, value in SETTINGS.items()} | {
    (counter, int) for counter in ("count", "size", "hits", "misses")
}


class _Cache(Protocol):
    """The part of `diskcache.Cache` that is used."""

    def set(self, key: str, value: str, *, tag: str) -> bool: ...
    def delete(self, key: str) -> bool: ...
    def transact(self) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


class Writer:
    """The store's file, open for writing, from any thread."""

    def __init__(self, cache: _Cache, busy: type[Exception]) -> None:
        self._cache = cache
        self._busy = busy

    def set_all(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Write rows (key, text, kind), all of them or none; they are on disk, whole, when this returns.

        Raises:
            sqlite3.Error: they cannot be written, or another process has held the file for `BUSY_SECONDS`.
        """
        with self._said_plainly():
            if len(rows) == 1:
                self._set(rows[0])
                return
            with self._cache.transact():
                for row in rows:
                    self._set(row)

    def remove(self, keys: Sequence[str]) -> None:
        """Take rows out, many at a time, and give their room back to the disk.

        Raises:
            sqlite3.Error: it cannot be written, or another process has held the file for `BUSY_SECONDS`.
        """
        with self._said_plainly():
            for start in range(0, len(keys), TOGETHER):
                with self._cache.transact():
                    for key in keys[start : start + TOGETHER]:
                        self._cache.delete(key)

    def _set(self, row: tuple[str, str, str]) -> None:
        key, text, kind = row
        self._cache.set(key, text, tag=kind)

    @contextmanager
    def _said_plainly(self) -> Generator[None]:
        """Raises what went wrong first, as SQLite says it."""
        try:
            yield
        except self._busy as error:
            msg = f"another process has held it for {BUSY_SECONDS:.0f} s"
            raise sqlite3.OperationalError(msg) from error
        except sqlite3.OperationalError as error:
            # On a full disk SQLite rolls back by itself, and diskcache's own attempt then hides the reason.
            cause: BaseException = error
            while isinstance(cause.__context__, sqlite3.Error):
                cause = cause.__context__
            if cause is not error:
                raise cause from None
            raise

    def close(self) -> None:
        self._cache.close()


def text_of(mode: object, filename: object, value: object) -> str:
    """The JSON text of a row, which is refused unless it is plain text that stands in the row itself.

    Raises:
        StoreError: any other mode, a file name, or no text.
    """
    if mode == RAW and filename is None and type(value) is str:
        return value
    msg = f"It does not hold JSON text (mode {mode!r}); it was not read."
    raise StoreError(msg, hint="No version of askance writes such a row: do not trust the file that it came from.")


@cache
def json_disk() -> type:
    """The `diskcache.Disk` that holds JSON text only.

    Made when it is first needed, so that a replay does not load diskcache.
    """
    import diskcache  # pyright: ignore[reportMissingTypeStubs]

    base: Any = diskcache.Disk

    class JsonDisk(base):
        """JSON text by text key, in the row itself; never a pickle, never a file."""

        def put(self, key: object) -> tuple[str, bool]:
            if type(key) is not str:
                msg = f"The key {key!r} is no text."
                raise StoreError(msg)
            return key, True

        def get(self, key: object, raw: object) -> str:
            if type(key) is not str or not raw:
                msg = "A row of the store has a key that is no text; it was not read."
                raise StoreError(msg)
            return key

        def store(self, value: object, *_: object, **__: object) -> tuple[int, int, None, str]:
            if type(value) is not str:
                msg = f"A {type(value).__name__} is no JSON text."
                raise StoreError(msg)
            return 0, RAW, None, value

        def fetch(self, mode: object, filename: object, value: object, *_: object) -> str:
            return text_of(mode, filename, value)

        def remove(self, file_path: object) -> None:
            """Nothing: no row of ours names a file, so a name in a row is somebody else's."""

    return JsonDisk


def open_writer(folder: Path) -> Writer:
    """The store's file, opened for writing; folder and file are made if they are missing.

    Raises:
        StoreError: the file is no store, or of another version.
        OSError, sqlite3.Error: it cannot be written.
    """
    import diskcache  # pyright: ignore[reportMissingTypeStubs]

    make_folder(folder)
    refuse_link(folder)
    with closing(_writing(folder)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        if not _tables(connection) and _pragma(connection, "application_id") == 0:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        check_file(connection, folder)
    cache: Any = diskcache.Cache
    return Writer(cache(str(folder), timeout=BUSY_SECONDS, disk=json_disk(), **SETTINGS), diskcache.Timeout)


def refuse_link(folder: Path) -> None:
    """Refuse a file that stands somewhere else, where whoever laid the link wants something written.

    Raises:
        StoreError: the store's file is a symbolic link.
    """
    if (folder / DATABASE).is_symlink():
        msg = f"{str(folder / DATABASE)!r} is a link to another file; it is not followed."
        raise StoreError(msg, hint="Link the folder, or name the one that holds the file with ASKANCE_STORE.")


def may_write(path: Path) -> bool:
    """Whether this process may write there, as far as the system says."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def give_back_room(folder: Path) -> None:
    """Make the file as small as what it holds, where the disk has the room that this takes for a moment."""
    with suppress(sqlite3.Error), closing(_writing(folder)) as connection:
        connection.execute("VACUUM")


def fold_journal(folder: Path) -> None:
    """Move what stands in the journal into the file itself, so that the file can be copied alone."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def check_file(connection: sqlite3.Connection, folder: Path) -> bool:
    """Whether the tables are there; another process may be about to make them.

    Raises:
        StoreError: the file is no store of askance's, or of another version.
    """
    tables = _tables(connection)
    if not tables and _pragma(connection, "application_id") == 0:
        return False
    if _pragma(connection, "application_id") != APPLICATION:
        msg = f"{str(folder / DATABASE)!r} is no record store of askance's."
        raise StoreError(msg, hint="Name another folder with ASKANCE_STORE.")
    version = _pragma(connection, "user_version")
    if version != FORMAT:
        msg = f"The record store {str(folder)!r} has format {version}, and this askance reads format {FORMAT}."
        raise StoreError(msg, hint=f"{'Update askance, or carry it over: ' * (version > FORMAT)}{CARRY_OVER}")
    if (found := stranger(connection)) is not None:
        msg = f"The record store {str(folder)!r} holds {found} that askance did not make."
        raise StoreError(msg, hint="Do not trust the file; name another folder with ASKANCE_STORE.")
    if "Settings" in tables and not _settings(connection) <= _SETTING_TYPES:
        msg = f"The record store {str(folder)!r} carries settings that askance did not write."
        raise StoreError(msg, hint="Do not trust the file; name another folder with ASKANCE_STORE.")
    return {"Cache", "Settings"} <= tables


def _writing(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / DATABASE, timeout=BUSY_SECONDS, isolation_level=None)


def _settings(connection: sqlite3.Connection) -> set[tuple[str, type]]:
    return {(name, type(value)) for name, value in connection.execute("SELECT key, value FROM Settings")}


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def make_folder(folder: Path) -> None:
    """Make the folder, and have git leave it alone; a folder that was there before keeps its own rules."""
    fresh = not folder.exists() or folder.name == ".askance"
    folder.mkdir(parents=True, exist_ok=True)
    if fresh:
        with suppress(FileExistsError), (folder / ".gitignore").open("x") as file:
            file.write("*\n")
