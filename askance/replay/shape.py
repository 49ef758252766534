"""The tables of a store's file, held against those that diskcache makes.

A file of somebody else's may hold more: a trigger that never ends or takes every new row away again, a column that
computes a gigabyte, a view in the place of a table. None of that is ever run.
"""

from __future__ import annotations

import re
import sqlite3

_SETTINGS = "CREATE TABLE Settings ( key TEXT NOT NULL UNIQUE, value)"
_CACHE = (
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

_KNOWN = frozenset((_SETTINGS, _CACHE, *_TRIGGERS))

_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX \w+ ON Cache ?\(\w+(, ?\w+)*\)( WHERE \w+ IS NOT NULL)?")
"""An index over columns; one over an expression would have it run."""


def stranger(connection: sqlite3.Connection) -> str | None:
    """What there is in the file beside diskcache's tables, in words; None where there is nothing."""
    for kind, name, text in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        statement = " ".join(str(text).split())
        known = text is None or statement in _KNOWN or (kind == "index" and _INDEX.fullmatch(statement))
        if not known:
            return f"{'an' if kind == 'index' else 'a'} {kind} {name!r}"
    return None
