"""The SQLite file of a store: diskcache's tables, holding JSON text and nothing else.

The file may come from anybody. diskcache trusts a row to say how it is read (`mode`, which can mean "unpickle") and
which file to read or delete (`filename`), and it applies the settings that a table holds. So here a row with any other
mode is refused, no file name is followed, every value is in its row, and settings of others are refused.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from askance.errors import StoreError
from askance.replay.held_file import HeldFile

DATABASE = "cache.db"
"""The file in the folder that holds the records."""

FORMAT = 1
"""Version of what rows hold, kept in the file as `user_version`; it is the first."""

MIGRATION_HINT = (
    "`askance cache export all.jsonl` with the askance that wrote it, then `askance cache import all.jsonl` with this "
    "one, into another folder (--store, ASKANCE_STORE)."
)
"""The hint for a store of another version: a cassette does not depend on the version of a store."""

APPLICATION_ID = 0x41534B4E
"""`ASKN`: marks the file as a store of askance's, as `application_id`."""

BUSY_TIMEOUT = 60.0
"""Seconds to wait for another process that is writing."""

ROWS_PER_DELETE = 500
"""Rows that are deleted in one transaction, for which other processes wait."""

MAX_VALUE = 64 * 2**20
"""Longest record, in bytes; a longer value is not read."""

RAW_MODE = 1
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


# ---- the folder ------------------------------------------------------------------------------------------------------

MOUNTS = Path("/proc/self/mountinfo")
"""Linux's table of mounts; on other systems network file systems are not recognized."""

_FUSE = ("ceph", "ceph-fuse", "davfs2", "gcsfuse", "glusterfs", "juicefs", "rclone", "s3fs", "sshfs")
_SERVED = ("9p", "afs", "cifs", "coda", "davfs", "ncpfs", "nfs", "nfs3", "nfs4", "smb2", "smb3", "smbfs")
_CLUSTERS = ("beegfs", "ceph", "gfs2", "glusterfs", "gpfs", "lustre", "ocfs2", "orangefs", "panfs", "pvfs2", "wekafs")
NETWORK_FILE_SYSTEMS = frozenset({*_SERVED, *_CLUSTERS, *(f"fuse.{name}" for name in _FUSE)})
"""Types of file systems that several machines may write at once."""

_ESCAPE = re.compile(r"\\([0-7]{3})")


def network_mount(path: Path, mountinfo: str) -> str | None:
    """The type of the network file system that `path` is on; None where it is on a local one.

    Args:
        path: absolute, without links.
        mountinfo: text of `/proc/self/mountinfo`; lines of another shape are passed over.
    """
    best: tuple[int, str] = (-1, "")
    for line in mountinfo.split("\n"):
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if not dash or len(fields) < 5:
            continue
        point = Path(_ESCAPE.sub(lambda match: chr(int(match[1], 8)), fields[4]))
        # Of two mounts in one place the later one covers the other.
        if path.is_relative_to(point) and len(point.parts) >= best[0]:
            best = (len(point.parts), kind)
    return best[1] if best[1] in NETWORK_FILE_SYSTEMS else None


def network_file_system(folder: Path) -> str | None:
    """The type of the network file system that `folder`, which need not exist, is or would be on."""
    try:
        text = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        return network_mount(folder.resolve(), text)
    except OSError:
        return None


def refuse_network(folder: Path) -> None:
    """Refuse to write a store where SQLite's locks do not hold.

    Raises:
        StoreError: the folder is on a network file system.
    """
    if (kind := network_file_system(folder)) is not None:
        msg = f"The record store {str(folder)!r} is on a network file system ({kind}): two writers would spoil it."
        hint = (
            "Name a folder on a local disk with ASKANCE_STORE, and take what is here into it with"
            f" `askance cache merge {folder}`."
        )
        raise StoreError(msg, hint=hint)


def refuse_link(folder: Path) -> None:
    """Refuses a link, through which a file elsewhere could be overwritten.

    Raises:
        StoreError: the store's file is a symbolic link.
    """
    if (folder / DATABASE).is_symlink():
        msg = f"{str(folder / DATABASE)!r} is a link to another file; it is not followed."
        raise StoreError(msg, hint="Link the folder, or name the one that holds the file with ASKANCE_STORE.")


def may_write(path: Path) -> bool:
    """Whether the system lets this process write there."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def make_folder(folder: Path) -> None:
    """Makes the folder with a `.gitignore` of all its files; a folder that exists keeps its own rules."""
    fresh = not folder.exists() or folder.name == ".askance"
    folder.mkdir(parents=True, exist_ok=True)
    if fresh:
        with suppress(FileExistsError), (folder / ".gitignore").open("x") as file:
            file.write("*\n")


# ---- what the file may hold ------------------------------------------------------------------------------------------

# A file from elsewhere may hold a trigger that never ends or deletes each new row, a column that computes a gigabyte,
# or a view in place of a table. Only what diskcache makes is allowed, so that none of these runs.
_SETTINGS_TABLE = "CREATE TABLE Settings ( key TEXT NOT NULL UNIQUE, value)"
_CACHE_TABLE = (
    "CREATE TABLE Cache ( rowid INTEGER PRIMARY KEY, key BLOB, raw INTEGER, store_time REAL, expire_time REAL,"
    " access_time REAL, access_count INTEGER DEFAULT 0, tag BLOB, size INTEGER DEFAULT 0, mode INTEGER DEFAULT 0,"
    " filename TEXT, value BLOB)"
)
_COUNTS = (
    ("count_insert", "INSERT", "value + 1", "count"),
    ("count_delete", "DELETE", "value - 1", "count"),
    ("size_insert", "INSERT", "value + NEW.size", "size"),
    ("size_update", "UPDATE", "value + NEW.size - OLD.size", "size"),
    ("size_delete", "DELETE", "value - OLD.size", "size"),
)
_TRIGGERS = tuple(
    f"CREATE TRIGGER Settings_{name} AFTER {event} ON Cache FOR EACH ROW BEGIN"
    f' UPDATE Settings SET value = {value} WHERE key = "{counter}"; END'
    for name, event, value, counter in _COUNTS
)

_KNOWN = frozenset((_SETTINGS_TABLE, _CACHE_TABLE, *_TRIGGERS))

_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX \w+ ON Cache ?\(\w+(, ?\w+)*\)( WHERE \w+ IS NOT NULL)?")
"""An index over columns; one over an expression would run the expression."""


def check_file(connection: sqlite3.Connection, folder: Path) -> bool:
    """Whether the tables are there; another process may be about to make them.

    Raises:
        StoreError: the file is no store of askance's, or of another version.
    """
    tables = _tables(connection)
    if not tables and _pragma(connection, "application_id") == 0:
        return False
    if _pragma(connection, "application_id") != APPLICATION_ID:
        msg = f"{str(folder / DATABASE)!r} is no record store of askance's."
        raise StoreError(msg, hint="Name another folder with ASKANCE_STORE.")
    version = _pragma(connection, "user_version")
    if version != FORMAT:
        msg = f"The record store {str(folder)!r} has format {version}, and this askance reads format {FORMAT}."
        raise StoreError(msg, hint=f"{'Update askance, or carry it over: ' * (version > FORMAT)}{MIGRATION_HINT}")
    if (foreign := foreign_object(connection)) is not None:
        msg = f"The record store {str(folder)!r} holds {foreign} that askance did not make."
        raise StoreError(msg, hint="Do not trust the file; name another folder with ASKANCE_STORE.")
    if "Settings" in tables and not _settings(connection) <= _SETTING_TYPES:
        msg = f"The record store {str(folder)!r} carries settings that askance did not write."
        raise StoreError(msg, hint="Do not trust the file; name another folder with ASKANCE_STORE.")
    return {"Cache", "Settings"} <= tables


def _writing(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / DATABASE, timeout=BUSY_TIMEOUT, isolation_level=None)


def _settings(connection: sqlite3.Connection) -> set[tuple[str, type]]:
    return {(name, type(value)) for name, value in connection.execute("SELECT key, value FROM Settings")}


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def foreign_object(connection: sqlite3.Connection) -> str | None:
    """The first object of the file that is not diskcache's, in words; None where there is none."""
    for kind, name, text in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        statement = " ".join(str(text).split())
        known = text is None or statement in _KNOWN or (kind == "index" and _INDEX.fullmatch(statement))
        if not known:
            return f"{'an' if kind == 'index' else 'a'} {kind} {name!r}"
    return None


# ---- writing ---------------------------------------------------------------------------------------------------------


class _Cache(Protocol):
    """The part of `diskcache.Cache` that is used."""

    def set(self, key: str, value: str, *, tag: str) -> bool: ...
    def delete(self, key: str) -> bool: ...
    def transact(self) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


class StoreWriter:
    """The store's file, open for writing, from any thread."""

    def __init__(self, cache: _Cache, busy: type[Exception]) -> None:
        self._cache = cache
        self._busy = busy

    def set_all(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Write rows (key, text, kind), all of them or none; they are on disk, whole, when this returns.

        Raises:
            sqlite3.Error: they cannot be written, or another process has held the file for `BUSY_TIMEOUT`.
        """
        with self._original_errors():
            if len(rows) == 1:
                self._set(rows[0])
                return
            with self._cache.transact():
                for row in rows:
                    self._set(row)

    def remove(self, keys: Sequence[str]) -> None:
        """Deletes rows, many in one transaction.

        Raises:
            sqlite3.Error: it cannot be written, or another process has held the file for `BUSY_TIMEOUT`.
        """
        with self._original_errors():
            for start in range(0, len(keys), ROWS_PER_DELETE):
                with self._cache.transact():
                    for key in keys[start : start + ROWS_PER_DELETE]:
                        self._cache.delete(key)

    def _set(self, row: tuple[str, str, str]) -> None:
        key, text, kind = row
        self._cache.set(key, text, tag=kind)

    @contextmanager
    def _original_errors(self) -> Generator[None]:
        """Raises the original error of SQLite in place of one that follows from it."""
        try:
            yield
        except self._busy as error:
            raise HeldFile from error
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


def row_text(mode: object, filename: object, value: object) -> str:
    """The JSON text of a row; a row that holds anything but plain text is refused.

    Raises:
        StoreError: any other mode, a file name, or no text.
    """
    if mode == RAW_MODE and filename is None and type(value) is str:
        return value
    msg = f"It does not hold JSON text (mode {mode!r}); it was not read."
    raise StoreError(msg, hint="No version of askance writes such a row: do not trust the file that it came from.")


@cache
def json_disk() -> type:
    """The `diskcache.Disk` that holds JSON text only.

    Made when it is first needed, so that a replay does not import diskcache.
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
            return 0, RAW_MODE, None, value

        def fetch(self, mode: object, filename: object, value: object, *_: object) -> str:
            return row_text(mode, filename, value)

        def remove(self, file_path: object) -> None:
            """Removes nothing: no row that askance writes names a file."""

    return JsonDisk


def open_writer(folder: Path) -> StoreWriter:
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
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        check_file(connection, folder)
    cache: Any = diskcache.Cache
    return StoreWriter(cache(str(folder), timeout=BUSY_TIMEOUT, disk=json_disk(), **SETTINGS), diskcache.Timeout)


def vacuum(folder: Path) -> None:
    """Shrinks the file to the size of its content, if the disk has the space that this takes meanwhile."""
    with suppress(sqlite3.Error), closing(_writing(folder)) as connection:
        connection.execute("VACUUM")


def checkpoint(folder: Path) -> None:
    """Moves the content of the journal into the file itself, so that the file can be copied alone."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
