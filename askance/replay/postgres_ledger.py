"""The ledger of a budget in a PostgreSQL database, which workers on all machines share.

One row a budget is locked while a call is reserved or settled. What a worker has reserved lasts until a time of the
server's, which the worker puts off every few seconds; what a dead one had reserved is settled at its worst case.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from askance.errors import StoreError
from askance.replay.leases import EXPIRY
from askance.replay.ledger import Budget, Cost
from askance.replay.postgres_database import Database, PostgresAddress, host
from askance.replay.table_ledger import OF_BATCH, LedgerTable, TableLedger

if TYPE_CHECKING:
    from askance.replay.postgres_database import Connection

T = TypeVar("T")

RENEWAL = EXPIRY / 3
"""Seconds between two renewals of what a process has reserved."""

_LOCK = """
    WITH new AS (INSERT INTO budget (name) VALUES (%s) ON CONFLICT DO NOTHING)
    SELECT FROM budget WHERE name = %s FOR UPDATE
"""
_SUMS = "SELECT coalesce(sum(nanodollars), 0), coalesce(sum(tokens), 0), coalesce(sum(calls), 0) FROM reserved "
_RESERVE = """
    INSERT INTO reserved (id, budget, owner, nanodollars, tokens, calls, until)
    VALUES (%s, %s, %s, %s, %s, %s, now() + make_interval(secs => %s)) ON CONFLICT DO NOTHING
"""
_RENEW = "UPDATE reserved SET until = now() + make_interval(secs => %(seconds)s) WHERE owner = %(owner)s"


class PostgresLedger(TableLedger):
    """The ledger of a budget in one schema of a database.

    Args:
        address: of the database.
        name: of the budget; all ledgers of one name share it.
        budget: see `Ledger`.
    """

    def __init__(self, address: PostgresAddress, name: str, budget: Budget) -> None:
        super().__init__(budget)
        self._database = Database(address)
        self._name = name
        self._lock = Lock()
        self._process = 0
        self._closed = Event()

    def __reduce__(self) -> tuple[Any, ...]:
        return _ledger_at, (str(self._database.address), self._name, self.budget)

    def place_of(self, folder: Path, /) -> str:
        """See `Ledger`; the folder is one of this machine."""
        place = f"{host()}:{os.path.abspath(folder)}"  # noqa: PTH100
        return sha256(os.fsencode(place)).hexdigest()[:16]

    def close(self) -> None:
        self._closed.set()
        if self._owner and self._process == os.getpid():
            with suppress(StoreError):
                self._write_off_own()
        self._owner = ""
        self._database.close()

    def _change(self, work: Callable[[LedgerTable], T], /) -> T:
        with self._lock:
            if not self._owner or self._process != os.getpid():
                self._process, self._owner, self._closed = os.getpid(), token_hex(16), Event()
                renews = (self._owner, self._closed)
                Thread(target=self._renew, args=renews, name="askance-budget-renewal", daemon=True).start()
            if not self._database.exists:
                self._database.open()

        def changed(connection: Connection) -> T:
            connection.execute(_LOCK, (self._name, self._name))
            return work(_PostgresTable(connection, self._name))

        try:
            return self._database.change(changed)
        except StoreError as error:
            raise StoreError(
                f"The budget's ledger cannot be written. {error.message}",
                hint=f"No call is made without it. {error.hint or ''}".strip(),
            ) from error

    def _renew(self, owner: str, closed: Event) -> None:
        while not closed.wait(RENEWAL):
            with suppress(StoreError):
                self._database.rows(_RENEW, {"owner": owner, "seconds": EXPIRY})


class _PostgresTable:
    """The tables of one budget, in a transaction that has locked its row; see `LedgerTable`."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def spent(self) -> Cost:
        return self._cost("SELECT nanodollars, tokens, calls FROM budget WHERE name = %s")

    def lost(self) -> Cost:
        return self._cost("SELECT lost_nanodollars, lost_tokens, lost_calls FROM budget WHERE name = %s")

    def spend(self, amount: Cost, /, *, lost: bool = False) -> None:
        nothing = Cost()
        self._connection.execute(
            "UPDATE budget SET nanodollars = nanodollars + %s, tokens = tokens + %s, calls = calls + %s, "
            "lost_nanodollars = lost_nanodollars + %s, lost_tokens = lost_tokens + %s, lost_calls = lost_calls + %s "
            "WHERE name = %s",
            (*_amounts(amount), *_amounts(amount if lost else nothing), self._name),
        )

    def reserved(self, start: str = "", /) -> Cost:
        return self._cost(_SUMS + "WHERE budget = %s AND starts_with(owner, %s)", start)

    def reserved_by(self, owner: str, /) -> Cost:
        return self._cost(_SUMS + "WHERE budget = %s AND owner = %s", owner)

    def reserve(self, reservation: int, owner: str, amount: Cost, /) -> None:
        seconds = None if owner.startswith(OF_BATCH) else EXPIRY  # that of a batch lasts until it is settled
        self._connection.execute(_RESERVE, (reservation, self._name, owner, *_amounts(amount), seconds))

    def has(self, reservation: int, /) -> bool:
        return self._connection.execute("SELECT FROM reserved WHERE id = %s", (reservation,)).fetchone() is not None

    def free(self, reservation: int, /) -> bool:
        return self._connection.execute("DELETE FROM reserved WHERE id = %s", (reservation,)).rowcount > 0

    def free_all(self, owner: str, /) -> bool:
        deleted = self._connection.execute("DELETE FROM reserved WHERE budget = %s AND owner = %s", (self._name, owner))
        return deleted.rowcount > 0

    def owners(self) -> list[str]:
        rows = self._connection.execute("SELECT DISTINCT owner FROM reserved WHERE budget = %s", (self._name,))
        return [owner for (owner,) in rows]

    def ended(self, own: str, /) -> list[str]:
        rows = self._connection.execute(
            "SELECT owner FROM reserved WHERE budget = %s AND owner <> %s GROUP BY owner HAVING max(until) < now()",
            (self._name, own),
        )
        return [owner for (owner,) in rows]

    def _cost(self, query: Any, *values: str) -> Cost:
        ((nanodollars, tokens, calls),) = self._connection.execute(query, (self._name, *values))
        return Cost(nanodollars=int(nanodollars), tokens=int(tokens), calls=int(calls))


def _ledger_at(address: str, name: str, budget: Budget) -> PostgresLedger:
    return PostgresLedger(PostgresAddress.parse(address.partition(":")[2]), name, budget)


def _amounts(amount: Cost) -> tuple[int, int, int]:
    return amount.nanodollars, amount.tokens, amount.calls
