"""Records in a PostgreSQL database, which a team or many workers share: `postgres://USER@HOST/DATABASE`.

What was read is kept in a local store in front, so that it is fetched once a machine. A record and the end of the lease
under which it was made are one transaction. Where the database has gone for good, answers wait in the folder of the
store in front, and whoever opens the address there next sends them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from askance.errors import DamagedRecord, StoreError
from askance.replay.database import refuse_network
from askance.replay.postgres_database import Database, DatabaseGone, PostgresAddress
from askance.replay.postgres_leases import PostgresLeases
from askance.replay.postgres_ledger import PostgresLedger
from askance.replay.postgres_pace import PostgresStarts
from askance.replay.record import (
    BLOCK,
    Record,
    RecordKind,
    Records,
    check_key,
    in_blocks,
    record_in_row,
)
from askance.replay.shared_pace import SharedPace
from askance.replay.store import Store

if TYPE_CHECKING:
    from askance.chat import JsonObject, ModelId
    from askance.replay.ledger import Budget
    from askance.replay.pace import Pace
    from askance.replay.postgres_database import Rows

_log = logging.getLogger("askance")

SYNCED = "synced.txt"
"""File in the folder of the store in front: the server's time until which it knows what was replaced."""
UNSENT = "unsent"
"""Folder there, of a store with the records that could not be sent."""

_NEW = """
    WITH new AS (
        SELECT * FROM unnest(%(keys)s::bytea[], %(kinds)s::text[], %(models)s::text[], %(bodies)s::text[])
            WITH ORDINALITY AS each (key, kind, model, body, place)
    ), kept AS (
        INSERT INTO record (key, kind, model, body) SELECT key, kind, model, body FROM new ORDER BY place
"""
_PUT = (
    _NEW
    + """
        ON CONFLICT (key) DO UPDATE
        SET kind = excluded.kind, model = excluded.model, body = excluded.body, changes = record.changes + 1, at = now()
        WHERE record.body <> excluded.body
        RETURNING key, changes
    ), noted AS (
        INSERT INTO change (key) SELECT key FROM kept WHERE changes > 0
    ), ended AS (
        DELETE FROM lease USING new WHERE lease.key = new.key
    )
    SELECT key FROM kept WHERE changes > 0
"""
)
_ADD = (
    _NEW
    + """
        ON CONFLICT (key) DO NOTHING
        RETURNING key
    ), ended AS (
        DELETE FROM lease USING new WHERE lease.key = new.key
    )
    SELECT key FROM kept
"""
)
_REMOVE = """
    WITH removed AS (DELETE FROM record WHERE key = ANY(%(keys)s) RETURNING key)
    INSERT INTO change (key) SELECT key FROM removed
"""
_GET = "SELECT key, body, kind FROM record WHERE key = ANY(%(keys)s)"
_ALL = "SELECT key, body FROM record WHERE key > %(after)s ORDER BY key LIMIT %(most)s"
_KIND = "SELECT key, body, n FROM record WHERE kind = %(kind)s AND n > %(after)s ORDER BY n LIMIT %(most)s"
_KEYS = "SELECT key FROM record WHERE key > %(after)s ORDER BY key LIMIT 4096"
_CHANGED = """
    SELECT DISTINCT key FROM change WHERE at > %(since)s::timestamptz - interval '10 minutes'
"""


class PostgresStore(Records):
    """Records in one schema of a database; `open_records` opens them.

    Args:
        rest: of the address, behind `postgres:`.
        read_only: whether nothing may be written.

    Raises:
        MissingExtra: psycopg is not installed.
        StoreError: it is no address, the database cannot be used, or the folder in front is on a network file system.
    """

    def __init__(self, rest: str, *, read_only: bool = False) -> None:
        self._database = Database(PostgresAddress.parse(rest), read_only=read_only)
        self._folder: Path | None = None
        self._front: Store | None = None
        try:
            self._database.open()
            if self._database.exists:
                self._folder = _front_of(self._database)
                self._front = Store.open(self._folder)
                self._forget_changed(self._front)
                self._send_unsent(self._front)
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the password: each machine has its own way to it.
        rest = str(self._database.address).partition(":")[2]
        return partial(PostgresStore, read_only=self._database.read_only), (rest,)

    def __repr__(self) -> str:
        return f"PostgresStore({self.name!r})"

    @property
    def name(self) -> str:
        """The address, without a password."""
        return str(self._database.address)

    @property
    def remote(self) -> bool:
        """True: a network lies between."""
        return True

    @property
    def writable(self) -> bool:
        """Whether the records were opened for writing and the user may add some."""
        return self._database.writable

    @property
    def folder(self) -> Path | None:
        """The folder of the store in front, on this machine: for batches, and pictures from the web."""
        return self._folder

    def leases(self) -> PostgresLeases | None:
        """The leases of calls that are not on record, among all workers; None where the records cannot be written."""
        return PostgresLeases(self._database) if self.writable else None

    def ledger(self, name: str, budget: Budget, /) -> PostgresLedger:
        """The ledger of a budget, by its name, which all workers share."""
        return PostgresLedger(self._database.address, name, budget)

    def pace(self, endpoint: ModelId, own: Pace, /, *, rpm: float | None, tpm: float | None) -> Pace:
        """The pace of a model's endpoint among all workers."""
        if not self.writable:
            return own
        starts = PostgresStarts(self._database, f"{endpoint.provider}@{endpoint.endpoint}")
        return SharedPace(starts, own, rpm=rpm, tpm=tpm)

    # ---- one or several ------------------------------------------------------------------------------------------

    def get(self, key: str, /) -> Record | None:
        """The record with this key, or None.

        Raises:
            DatabaseGone: the database does not answer.
            DamagedRecord: the row is no record.
        """
        return self.get_all([key]).get(key)

    def get_all(self, keys: Iterable[str], /) -> dict[str, Record]:
        """By key, in the order of `keys`: the records that are there; one query reads what the store in front lacks.

        Raises:
            DatabaseGone: the database does not answer.
            DamagedRecord: a row is no record.
        """
        records: dict[str, Record] = {}
        for block in in_blocks(dict.fromkeys(keys)):
            near = self._from_front(block)
            known = near | self._from_database([key for key in block if key not in near])
            records |= {key: known[key] for key in block if key in known}
        return records

    def near(self, key: str, canonical_text: str, /) -> JsonObject | None:
        """The response to a chat request, if the store in front has it."""
        with suppress(StoreError):
            return None if self._front is None else self._front.answer(key, canonical_text)
        return None

    def fetch(self, keys: Iterable[str], /) -> set[str]:
        """Brings records into the store in front; gives the keys of those that are on record.

        Raises:
            DatabaseGone: the database does not answer.
        """
        return {key.hex() for block in in_blocks(keys) for key, _, _ in self._rows_of(block)}

    def put_all(self, records: Iterable[Record], /) -> None:
        """Keep all of the records or none; they are committed when this returns.

        Where the database has gone for good they are kept on this machine, which is said, and sent later.

        Raises:
            StoreError: the database refuses them, or a key is not that of the request.
        """
        new = self._checked(records)
        try:
            replaced = self._database.rows(_PUT, _columns(new))
        except DatabaseGone as error:
            self._keep_unsent(new, error)
            return
        self._rows_of([key.hex() for (key,) in replaced])

    def add_all(self, records: Iterable[Record], /) -> dict[str, Record]:
        """Keeps the records whose keys are new; gives, by key, what was there already and stays.

        Raises:
            StoreError: the database refuses them, or a key is not that of the request.
        """
        new = self._checked(records)
        try:
            added = {key.hex() for (key,) in self._database.rows(_ADD, _columns(new))}
        except DatabaseGone as error:
            self._keep_unsent(new, error)
            return {}
        there = dict[str, Record]()
        for record in new:
            if record.key not in added:
                try:
                    there |= self._from_database([record.key])
                except DamagedRecord:
                    self.put(record)
        return there

    def remove(self, keys: Iterable[str], /) -> None:
        """Deletes the records with these keys, where there are any.

        Raises:
            StoreError: the database refuses it.
        """
        going = list(keys)
        self._checked(())
        self._database.rows(_REMOVE, {"keys": [bytes.fromhex(key) for key in going]})
        if self._front is not None:
            self._front.remove(going)

    # ---- all of them ---------------------------------------------------------------------------------------------

    def keys(self) -> Iterator[str]:
        """The keys, sorted."""
        after = b""
        while page := self._database.rows(_KEYS, {"after": after}):
            for (after,) in page:
                yield after.hex()

    def __iter__(self) -> Iterator[Record]:
        """The records, sorted by key; a block is held at a time.

        Raises:
            DatabaseGone: the database does not answer.
            DamagedRecord: a row is no record.
        """
        return (_record(*row) for row in self._rows(None))

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The records of one kind, in the order in which they were added; a block is held at a time."""
        return (_record(*row) for row in self._rows(kind))

    def readable(self, kind: RecordKind | None = None, /, *, damaged: set[str] | None = None) -> Iterator[Record]:
        """The records, or those of one kind, without those that are damaged, whose keys are added to `damaged`."""
        for key, body in self._rows(kind):
            try:
                record = _record(key, body)
            except DamagedRecord:
                if damaged is not None:
                    damaged.add(key.hex())
                continue
            yield record

    def __len__(self) -> int:
        rows = self._database.rows("SELECT count(*) FROM record")
        return rows[0][0] if rows else 0

    def close(self) -> None:
        """Closes the connections and the store in front; a later call opens them again."""
        self._database.close()
        if self._front is not None:
            self._front.close()

    def _rows(self, kind: RecordKind | None) -> Iterator[tuple[bytes, str]]:
        """The rows, sorted by key; those of one kind in the order in which they were added."""
        if kind is None:
            after: Any = b""
            while page := self._database.rows(_ALL, {"after": after, "most": BLOCK}):
                yield from ((key, body) for key, body in page)
                after = page[-1][0]
        else:
            after = 0
            while page := self._database.rows(_KIND, {"kind": kind, "after": after, "most": BLOCK}):
                yield from ((key, body) for key, body, _ in page)
                after = page[-1][2]

    def _checked(self, records: Iterable[Record]) -> list[Record]:
        """The records, the last of each key.

        Raises:
            StoreError: they may not be written, or a key is not that of the request.
        """
        if not self.writable:
            reason = "are open for reading only" if self._database.read_only else "may not be changed by this user"
            raise StoreError(f"The records at {self.name} {reason}.", hint="Replay what they hold with --replay.")
        new = {record.key: record for record in records}
        for record in new.values():
            check_key(record)
        return [*new.values()]

    # ---- the store in front --------------------------------------------------------------------------------------

    def _from_front(self, keys: Sequence[str]) -> dict[str, Record]:
        """Those of the records that the store in front has; where one is damaged there, all come from the database."""
        if self._front is not None:
            with suppress(StoreError):
                return self._front.get_all(keys)
        return {}

    def _from_database(self, keys: Sequence[str]) -> dict[str, Record]:
        """Those of the records that the database has; the store in front has them from now on."""
        return {key.hex(): _record(key, body) for key, body, _ in self._rows_of(keys)}

    def _rows_of(self, keys: Sequence[str]) -> Rows:
        """The rows of the records that the database has; the store in front has them from now on."""
        rows = self._database.rows(_GET, {"keys": [bytes.fromhex(key) for key in keys]}) if keys else []
        # A full disk on this machine costs the copy, not the record.
        with suppress(StoreError):
            if self._front is not None and rows:
                self._front.put_texts((key.hex(), body, kind) for key, body, kind in rows)
        return rows

    def _forget_changed(self, front: Store) -> None:
        """Takes out of the store in front what was replaced or removed since it was last opened."""
        file = front.folder / SYNCED
        since = file.read_text(encoding="utf-8").strip() if file.exists() else None
        ((now,),) = self._database.rows("SELECT now()::text")
        if since is not None:
            changed = [key.hex() for (key,) in self._database.rows(_CHANGED, {"since": since})]
            if near := [*front.get_all(changed)]:
                front.remove(near)
        front.folder.mkdir(parents=True, exist_ok=True)
        writing = file.with_name(f"{SYNCED}-{token_hex(4)}")  # others read the file meanwhile
        writing.write_text(now, encoding="utf-8")
        writing.replace(file)

    def _keep_unsent(self, records: Sequence[Record], error: DatabaseGone) -> None:
        if self._front is None:
            raise error
        with Store.open(self._front.folder / UNSENT) as unsent:
            first = not len(unsent)
            unsent.put_all(records)
        self._front.put_all(records)
        if first:
            _log.warning(
                "%s What is answered from now on is kept in %r and sent by the next run here.",
                error.message,
                str(self._front.folder / UNSENT),
            )

    def _send_unsent(self, front: Store) -> None:
        """Sends what an earlier run could not; what others have recorded meanwhile stays."""
        if not self.writable or not (front.folder / UNSENT).exists():
            return
        with Store.open(front.folder / UNSENT) as unsent:
            for keys in in_blocks([*unsent.keys()]):
                self.add_all(unsent.get_all(keys).values())
                unsent.remove(keys)


def _front_of(database: Database) -> Path:
    """The folder of the store in front: one for each store of a database, whatever its address."""
    folder = database.address.front
    if folder is None:
        home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        folder = home / "askance" / "postgres" / database.store
    try:
        refuse_network(folder)
    except StoreError as error:
        raise StoreError(
            error.message, hint="Name a folder on a local disk in the address: postgres://…?front=/scratch/askance."
        ) from error
    return folder


def _columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    return {
        "keys": [bytes.fromhex(record.key) for record in records],
        "kinds": [record.kind for record in records],
        "models": [record.model.replace("\0", "") for record in records],
        "bodies": [record.to_json() for record in records],
    }


def _record(key: bytes, body: str) -> Record:
    """The record in a row.

    Raises:
        DamagedRecord: the row holds none, or one with another key.
    """
    return record_in_row(key.hex(), lambda: body)
