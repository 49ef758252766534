"""The ledger of a budget in a PostgreSQL database, which workers on all machines share.

One row a budget is locked while it changes. So that this does not happen twice a call, a worker draws an allowance, a
hundredth of what is left, and reserves and settles calls of it by itself; it reports every two seconds, and gives back
what it does not use. Where a hundredth is less than a call, each call is reserved in the database.

What a worker has drawn lasts until a time of the server's, which the worker puts off every few seconds. What a dead one
had drawn is settled at its worst case.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import randbits, token_hex
from socket import gethostname
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from askance.errors import OverBudget, StoreError
from askance.replay.leases import EXPIRY
from askance.replay.ledger import NOTHING, Balance, Budget, Cost
from askance.replay.postgres_database import Database, PostgresAddress
from askance.replay.table_ledger import OF_BATCH, LedgerTable, TableLedger

if TYPE_CHECKING:
    from askance.replay.postgres_database import Connection

T = TypeVar("T")

REPORT = 2.0
"""Seconds between two reports of what was spent of an allowance."""
PART = 0.01
"""Of what is left of a budget: most that a worker draws ahead of its calls."""
CALLS_AHEAD = 50
"""Calls that an allowance is to last for, at most."""

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
        self._lock = RLock()
        self._process = 0
        self._closed = Event()
        self._forget()

    def _forget(self) -> None:
        self._row = 0
        """The reservation in the database that holds all of the following."""
        self._held: dict[int, Cost] = {}
        """Calls under way, at their worst case."""
        self._idle = NOTHING
        """Of the allowance, what no call has reserved."""
        self._used = False
        """Whether the allowance was used since the last report."""
        self._unreported = NOTHING
        """What calls cost that have ended since."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _ledger_at, (str(self._database.address), self._name, self.budget)

    def place_of(self, folder: Path, /) -> str:
        """See `Ledger`; the folder is one of this machine."""
        place = f"{gethostname()}:{os.path.abspath(folder)}"  # noqa: PTH100
        return sha256(os.fsencode(place)).hexdigest()[:16]

    def reserve(self, worst: Cost, /, *, what: str = "the next call") -> int | None:
        with self._lock:
            self._begin()
            reservation, self._used = randbits(62), True
            if not self._covers(self._idle, worst) and not self._draw(worst, what):
                return None
            self._idle -= worst
            self._held[reservation] = worst
            return reservation

    def settle(self, reservation: int, actual: Cost, /) -> None:
        with self._lock:
            self._begin()
            worst = self._held.pop(reservation, None)
            if worst is None:
                return
            ahead = self._covers(self._idle, worst)
            self._idle += worst - actual
            self._unreported += actual
            if not ahead:  # others may wait for what is left
                with suppress(StoreError):  # it is reported later
                    self._report()

    def balance(self) -> Balance:
        with self._lock:
            self._begin()
            self._report()
            return super().balance()

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            if self._owner and self._process == os.getpid():
                with suppress(StoreError):
                    self._report()
                    self._write_off_own()
            self._owner = ""
            self._forget()
            self._database.close()

    # ---- the allowance -------------------------------------------------------------------------------------------

    def _covers(self, allowance: Cost, amount: Cost) -> bool:
        """Whether an allowance is enough for an amount, in each unit that the budget limits."""
        limits, left = self.budget, allowance - amount
        return (
            (limits.dollars is None or left.nanodollars >= 0)
            and (limits.tokens is None or left.tokens >= 0)
            and (limits.calls is None or left.calls >= 0)
        )

    def _draw(self, worst: Cost, what: str) -> bool:
        """Draws an allowance for a call and some after it; whether there is one for this call."""

        def drawn(table: LedgerTable) -> Cost | None:
            if not self._fits(table, worst, what, waits_for="no batch"):
                return None
            left = self.budget.most - table.spent() - table.reserved() - worst
            ahead = [
                max(0, min(round(PART * rest), CALLS_AHEAD * each))
                for rest, each in zip(_amounts(left), _amounts(worst), strict=True)
            ]
            more = Cost(nanodollars=ahead[0], tokens=ahead[1], calls=ahead[2])
            return worst + more if self._covers(more, worst) else worst

        return self._report(drawn)

    def _report(self, draw: Callable[[LedgerTable], Cost | None] = lambda _: NOTHING) -> bool:
        """Reports what was spent, gives the allowance back, and draws another; whether `draw` gave one.

        Raises:
            OverBudget: as `draw` says; what was spent is reported all the same.
        """
        row, held = randbits(62), sum(self._held.values(), NOTHING)
        results: list[Cost | OverBudget | None] = []

        def reported(table: LedgerTable) -> None:
            if table.has(row):  # a transaction that was repeated
                return
            table.free(self._row)
            table.spend(self._unreported)
            table.reserve(row, self._owner, held)
            try:
                drawn = draw(table)
            except OverBudget as error:
                results.append(error)
            else:
                results.append(drawn)
                table.free(row)
                table.reserve(row, self._owner, held + (drawn or NOTHING))

        self._change(reported)
        result = results[-1]
        self._row, self._unreported = row, NOTHING
        self._idle = result if isinstance(result, Cost) else NOTHING
        if isinstance(result, OverBudget):
            raise result
        return result is not None

    def _begin(self) -> None:
        """Makes this process known, which reports from now on."""
        if not self._owner or self._process != os.getpid():
            self._forget()
            self._process, self._owner, self._closed = os.getpid(), token_hex(16), Event()
            follows = (self._owner, self._closed)
            Thread(target=self._follow, args=follows, name="askance-budget-report", daemon=True).start()

    def _follow(self, owner: str, closed: Event) -> None:
        renewed = time.monotonic()
        while not closed.wait(REPORT):
            with suppress(StoreError):
                with self._lock:
                    if not closed.is_set() and (self._idle, self._unreported) != (NOTHING, NOTHING):
                        kept = self._idle if self._used else NOTHING
                        self._report(lambda _, kept=kept: kept)
                    self._used = False
                if time.monotonic() - renewed >= EXPIRY / 3:
                    self._database.rows(_RENEW, {"owner": owner, "seconds": EXPIRY})
                    renewed = time.monotonic()

    def _change(self, work: Callable[[LedgerTable], T], /) -> T:
        self._begin()
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
