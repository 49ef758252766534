"""The PostgreSQL database of shared records: its address, its connections and its tables.

All of it stands in one schema. What waits for the database runs in a thread; a database that is gone for a while, as
when it is started again, is waited for. Times are the server's: no clock of a worker is read.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, LiteralString, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from askance.errors import StoreError, optional_library
from askance.replay.address import STORE_VARIABLE

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

_log = logging.getLogger("askance")

PATIENCE = 60.0
"""Seconds for which a database that is gone is waited for, once; then none until it is back."""
CONNECTIONS = 4
"""Most connections of a process."""
PARTITIONS = 16
"""Of the table of records, by the first four bits of the key."""

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_BOUNDS = ("MINVALUE", *(f"'\\x{digit:x}0'" for digit in range(1, PARTITIONS)), "MAXVALUE")
MIGRATIONS: tuple[str, ...] = (
    f"""
    CREATE TABLE meta (version integer NOT NULL, store uuid NOT NULL DEFAULT gen_random_uuid());
    INSERT INTO meta (version) VALUES (0);
    CREATE SEQUENCE added;
    CREATE TABLE record (
        key bytea PRIMARY KEY, n bigint NOT NULL DEFAULT nextval('added'), kind text NOT NULL, model text NOT NULL,
        body text NOT NULL, changes integer NOT NULL DEFAULT 0, at timestamptz NOT NULL DEFAULT now()
    ) PARTITION BY RANGE (key);
    {
        "".join(
            f"CREATE TABLE record_{digit:x} PARTITION OF record FOR VALUES FROM ({low}) TO ({high});"
            for digit, (low, high) in enumerate(pairwise(_BOUNDS))
        )
    }
    CREATE INDEX ON record (kind, n);
    CREATE TABLE change (key bytea NOT NULL, at timestamptz NOT NULL DEFAULT now());
    CREATE INDEX ON change (at);
    CREATE TABLE lease (key bytea PRIMARY KEY, owner bigint NOT NULL, until timestamptz NOT NULL);
    CREATE INDEX ON lease (owner);
    CREATE TABLE batch (name text PRIMARY KEY, owner bigint NOT NULL UNIQUE, host text NOT NULL, file text);
    CREATE TABLE budget (
        name text PRIMARY KEY, nanodollars numeric NOT NULL DEFAULT 0, tokens numeric NOT NULL DEFAULT 0,
        calls numeric NOT NULL DEFAULT 0, lost_nanodollars numeric NOT NULL DEFAULT 0,
        lost_tokens numeric NOT NULL DEFAULT 0, lost_calls numeric NOT NULL DEFAULT 0
    );
    CREATE TABLE reserved (
        id bigint PRIMARY KEY, budget text NOT NULL REFERENCES budget, owner text NOT NULL,
        nanodollars numeric NOT NULL, tokens numeric NOT NULL, calls numeric NOT NULL, until timestamptz
    );
    CREATE INDEX ON reserved (budget, owner);
    CREATE TABLE pace (
        endpoint text PRIMARY KEY, calls timestamptz NOT NULL DEFAULT now(), tokens timestamptz NOT NULL DEFAULT now(),
        paused timestamptz NOT NULL DEFAULT now()
    );
    """,
)
"""Statements that bring the tables from each version to the next; version 0 is an empty schema."""
VERSION = len(MIGRATIONS)


class DatabaseGone(StoreError):
    """The database does not answer, or breaks off what it was asked."""


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a database is: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&front=FOLDER`.

    The password belongs into `PGPASSWORD` or `~/.pgpass`; one in the address is neither shown nor pickled.
    """

    connection: Mapping[str, str]
    """Parameters of libpq, but for the password."""
    password: str | None = field(default=None, repr=False)
    schema: str = "askance"
    front: Path | None = None
    """Folder on a local disk for what was read; by default one in the user's cache, by the database's own name."""

    @classmethod
    def parse(cls, rest: str) -> PostgresAddress:
        """The address in what stands behind `postgres:`.

        Raises:
            StoreError: it is no address of a database. It is not said, since it may hold a password.
        """
        try:
            parts = urlsplit(f"postgres:{rest}")
            settings, port = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query))), parts.port
            if not rest.startswith("//") or parts.fragment:
                raise ValueError
        except ValueError:
            raise StoreError(
                "The address of the records is no address of a PostgreSQL database.",
                hint="Write it as postgres://USER@HOST/DATABASE; the password goes into PGPASSWORD or ~/.pgpass.",
            ) from None
        schema, front = settings.pop("schema", None), settings.pop("front", None)
        if schema is not None and not _SCHEMA.fullmatch(schema):
            raise StoreError(
                f"{schema!r} cannot be a schema of records.", hint="Use small letters, digits and _: schema=ads_2026."
            )
        named = {"host": parts.hostname, "port": port, "user": parts.username, "dbname": parts.path[1:]}
        password = settings.pop("password", None) or parts.password
        return cls(
            connection={**settings, **{name: unquote(str(value)) for name, value in named.items() if value}},
            password=None if password is None else unquote(password),
            schema=schema or "askance",
            front=None if front is None else Path(front).expanduser(),
        )

    def __str__(self) -> str:
        """The address without the password."""
        known = dict(self.connection)
        user, host, port = (known.pop(name, "") for name in ("user", "host", "port"))
        place = f"{quote(user)}{'@' if user else ''}{quote(host, safe=':')}{':' if port else ''}{port}"
        if host.startswith("/"):  # the folder of a socket
            place, known["host"] = quote(user) + "@" * bool(user), host
        path = quote(known.pop("dbname", ""))
        ours = {"schema": self.schema if self.schema != "askance" else "", "front": str(self.front or "")}
        query = "&".join(f"{name}={quote(value)}" for name, value in {**known, **ours}.items() if value)
        return f"postgres://{place}/{path}{'?' if query else ''}{query}"


class Database:
    """One schema of a database, from any thread and any process; it is opened by the first use.

    Args:
        address: of the database.
        read_only: whether nothing may be written, not even tables.

    Raises:
        MissingExtra: psycopg is not installed.
    """

    def __init__(self, address: PostgresAddress, *, read_only: bool = False) -> None:
        optional_library("psycopg", "postgres")
        self.address = address
        self.read_only = read_only
        self.store = ""
        """The name of the store: a random one, which the database has kept since its tables were made."""
        self.writable = False
        """Whether records may be added."""
        self._places = BoundedSemaphore(CONNECTIONS)
        self._process = os.getpid()
        self._idle: list[Connection] = []
        self._parents: list[list[Connection]] = []
        """Connections that a fork has copied: closing one here could damage the parent's."""
        self._gone = False
        """Whether it was waited for in vain."""
        self._waits = False
        """Whether it is waited for now, which is said once."""
        self.closed = 0
        """How often the connections were closed: what runs beside them ends then."""

    @property
    def exists(self) -> bool:
        """Whether the tables are there; a database that is opened for reading only may have none."""
        return bool(self.store)

    def open(self) -> None:
        """Looks at the tables, makes or migrates them where that is allowed, and checks how commits are kept.

        Raises:
            StoreError: there is no such database, it refuses the user, its tables are of a later version, or it does
                not keep commits.
        """
        self._run(self._check_tables, patience=0)

    def rows(self, query: LiteralString, values: Mapping[str, Any] | None = None) -> Rows:
        """The rows of one statement, which is a transaction of its own; none where there are no tables.

        Raises:
            DatabaseGone: the database does not answer.
            StoreError: it refuses the statement.
        """
        if not self.exists:
            return []

        def fetched(connection: Connection) -> Rows:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description is not None else []

        return self.change(fetched)

    def change(self, work: Callable[[Connection], T]) -> T:
        """The result of `work` in a transaction. It is repeated where the database goes away, so it has to bear that.

        Raises:
            DatabaseGone: the database does not answer.
            StoreError: it refuses a statement.
        """
        return self._run(work, patience=PATIENCE)

    def close(self) -> None:
        """Closes the connections; a later use opens new ones."""
        self.closed += 1
        idle, self._idle = self._idle, []
        if self._process == os.getpid():
            for connection in idle:
                connection.close()

    # ---- connections ---------------------------------------------------------------------------------------------

    def _run(self, work: Callable[[Connection], T], *, patience: float) -> T:
        from psycopg import Error, InterfaceError, OperationalError
        from psycopg.errors import DiskFull

        began, wait = time.monotonic(), 0.05
        while True:
            try:
                with self._connected() as connection, connection.transaction():
                    result = work(connection)
                self._gone = self._waits = False
                return result
            except (OperationalError, InterfaceError) as error:
                if isinstance(error, DiskFull) or self._gone or time.monotonic() - began >= patience:
                    self._gone = True
                    raise self._error(error, DatabaseGone) from None
                if wait > 0.4 and not self._waits:
                    self._waits = True
                    _log.warning("The database %s does not answer; it is waited for.", self.address)
                time.sleep(wait)
                wait = min(2 * wait, 2.0)
            except Error as error:
                raise self._error(error, StoreError) from None

    @contextmanager
    def _connected(self) -> Generator[Connection]:
        """A connection that nobody else uses meanwhile."""
        import psycopg
        from psycopg.conninfo import make_conninfo

        if self._process != os.getpid():
            self._parents.append(self._idle)
            self._process, self._idle, self._places = os.getpid(), [], BoundedSemaphore(CONNECTIONS)
        with self._places:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = psycopg.connect(make_conninfo(**self._parameters()), autocommit=True)
            try:
                yield connection
            finally:
                if not connection.closed:
                    self._idle.append(connection)

    def _parameters(self) -> dict[str, str]:
        password = self.address.password or _password_of_environment(self.address)
        own = f"-c search_path={self.address.schema}"
        options = " ".join(filter(None, (self.address.connection.get("options"), own)))
        known = {**_DEFAULTS, **self.address.connection, "options": options}
        return {**known, "password": password} if password else known

    def _error(self, error: Exception, kind: type[StoreError]) -> StoreError:
        words = str(error).strip().partition("\n")[0] or type(error).__name__
        secret = self.address.password or _password_of_environment(self.address)
        if secret:
            words = words.replace(secret, "…")
        return kind(f"The records at {self.address} cannot be used: {words.rstrip('.')}.", hint=_hint(error))

    # ---- tables --------------------------------------------------------------------------------------------------

    def _check_tables(self, connection: Connection) -> None:
        ((commits, there),) = connection.execute("SELECT current_setting('synchronous_commit'), to_regclass('meta')")
        if commits == "off":
            raise StoreError(
                f"The database of {self.address} loses answers that were paid for when it breaks down: "
                "`synchronous_commit` is off.",
                hint="ALTER DATABASE … SET synchronous_commit = on.",
            )
        if there is None and self.read_only:
            return
        version = self._version(connection) if there is not None else 0
        if version < VERSION and not self.read_only:
            version = self._migrate(connection)
        if version != VERSION:
            raise StoreError(
                f"The tables of {self.address} are of version {version}, and this is askance for version {VERSION}.",
                hint="Use the askance that wrote them, or a later one."
                if version > VERSION
                else "Open them for writing once, which brings them up to date.",
            )
        ((self.store, self.writable),) = connection.execute(
            "SELECT store::text, has_table_privilege('record', 'INSERT, UPDATE') FROM meta"
        )
        self.writable = self.writable and not self.read_only

    def _version(self, connection: Connection) -> int:
        ((version,),) = connection.execute("SELECT version FROM meta")
        return version

    def _migrate(self, connection: Connection) -> int:
        """Brings the tables up to date, one process at a time; the version that they are of then."""
        schema = self.address.schema
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('askance ' || %s))", (schema,))
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'.encode())
        ((there,),) = connection.execute("SELECT to_regclass('meta')")
        version = 0 if there is None else self._version(connection)
        for statements in MIGRATIONS[version:]:
            connection.execute(statements.encode())
            version += 1
        connection.execute("UPDATE meta SET version = greatest(version, %s)", (version,))
        return version


_DEFAULTS = {
    "application_name": "askance",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "tcp_user_timeout": "30000",
}


def _hint(error: Exception) -> str:
    from psycopg import InterfaceError, OperationalError
    from psycopg.errors import InsufficientPrivilege, ReadOnlySqlTransaction

    if isinstance(error, InsufficientPrivilege):
        return "The first use makes a schema: GRANT CREATE ON DATABASE … TO …; later ones need rights on its tables."
    if isinstance(error, ReadOnlySqlTransaction):
        return "The server takes no writes, as a standby; name the primary, or replay with --replay."
    if isinstance(error, (InterfaceError, OperationalError)):
        return "Look whether the server runs, and at host, port and user; the same command goes on."
    return "Look at the settings of the address, and whether others change its tables."


def _password_of_environment(address: PostgresAddress) -> str | None:
    """The password in `ASKANCE_STORE`, where that names the same database: a pickled address has none."""
    kind, _, rest = os.environ.get(STORE_VARIABLE, "").partition(":")
    if kind in {"postgres", "postgresql"}:
        with suppress(StoreError):
            named = PostgresAddress.parse(rest)
            same = all(
                named.connection.get(part) == address.connection.get(part)
                for part in ("host", "port", "user", "dbname")
            )
            return named.password if same else None
    return None
