"""A ledger in the tables of a database: what a call, a batch and a killed process do to what is spent and reserved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from secrets import randbits
from typing import Protocol, TypeVar

from askance.errors import OverBudget
from askance.replay.ledger import NOTHING, Balance, Budget, Cost

T = TypeVar("T")

OF_BATCH = "batch:"
"""What the owner of a batch's reservation begins with."""


class LedgerTable(Protocol):
    """The tables of one budget, in a transaction. Owners of reservations are processes, and batches."""

    def spent(self) -> Cost:
        """What the calls that have ended cost."""
        ...

    def lost(self) -> Cost:
        """Of that, the worst cases of calls whose process was killed."""
        ...

    def spend(self, amount: Cost, /, *, lost: bool = False) -> None:
        """Adds to what is spent."""
        ...

    def reserved(self, start: str = "", /) -> Cost:
        """What is reserved by owners that begin with `start`."""
        ...

    def reserved_by(self, owner: str, /) -> Cost:
        """What is reserved by one owner."""
        ...

    def reserve(self, reservation: int, owner: str, amount: Cost, /) -> None:
        """Adds a reservation; nothing where it is there already."""
        ...

    def has(self, reservation: int, /) -> bool:
        """Whether a reservation is there."""
        ...

    def free(self, reservation: int, /) -> bool:
        """Takes a reservation out; whether it was there."""
        ...

    def free_all(self, owner: str, /) -> bool:
        """Takes the reservations of an owner out; whether there were any."""
        ...

    def owners(self) -> list[str]:
        """Who has reservations."""
        ...

    def ended(self, own: str, /) -> list[str]:
        """The owners that are processes which have ended; `own` has not."""
        ...


class TableLedger(ABC):
    """A ledger that changes its tables in transactions; see `Ledger` for what its methods do."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._owner = ""
        """This process; set when the tables are first changed."""

    @abstractmethod
    def _change(self, work: Callable[[LedgerTable], T], /) -> T:
        """The result of `work`: all of its changes are kept or none, and nobody else makes any meanwhile."""

    def reserve(self, worst: Cost, /, *, what: str = "the next call") -> int | None:
        reservation = randbits(62)

        def reserved(table: LedgerTable) -> int | None:
            if table.has(reservation):  # a transaction that was repeated
                return reservation
            if not self._fits(table, worst, what, waits_for="no batch"):
                return None
            table.reserve(reservation, self._owner, worst)
            return reservation

        return self._change(reserved)

    def settle(self, reservation: int, actual: Cost, /) -> None:
        def settled(table: LedgerTable) -> None:
            if table.free(reservation):
                table.spend(actual)

        self._change(settled)

    def hold(self, batch: str, worst: Cost, /, *, what: str = "the next call") -> bool:
        owner = OF_BATCH + batch

        def held(table: LedgerTable) -> bool:
            if not self._fits(table, worst, what, waits_for=f"{OF_BATCH}{batch.partition(':')[0]}:"):
                return False
            _reserve_anew(table, owner, table.reserved_by(owner) + worst)
            return True

        return self._change(held)

    def trim(self, batch: str, worst: Cost, /) -> None:
        owner = OF_BATCH + batch

        def trimmed(table: LedgerTable) -> None:
            if owner in table.owners():
                _reserve_anew(table, owner, worst)

        self._change(trimmed)

    def held(self, place: str, /) -> list[str]:
        start = f"{OF_BATCH}{place}:"
        owners = self._change(lambda table: table.owners())
        return [owner.removeprefix(OF_BATCH) for owner in owners if owner.startswith(start)]

    def settle_batch(self, batch: str, actual: Cost | None, /) -> None:
        owner = OF_BATCH + batch

        def settled(table: LedgerTable) -> None:
            if actual is None:
                _write_off(table, owner)
            elif table.free_all(owner):
                table.spend(actual)

        self._change(settled)

    def balance(self) -> Balance:
        def balanced(table: LedgerTable) -> Balance:
            self._write_off_ended(table)
            return Balance(spent=table.spent(), lost=table.lost(), reserved=table.reserved())

        return self._change(balanced)

    def _write_off_own(self) -> None:
        """Settles what this process has reserved at its worst case."""
        self._change(lambda table: _write_off(table, self._owner))

    def _write_off_ended(self, table: LedgerTable) -> None:
        for owner in table.ended(self._owner):
            _write_off(table, owner)

    def _fits(self, table: LedgerTable, worst: Cost, what: str, *, waits_for: str) -> bool:
        """Whether `worst` fits by now; not where it has to wait for calls of processes, or of batches named so.

        Raises:
            OverBudget: there is nothing to wait for.
        """
        if self.budget.allows(table.spent() + table.reserved() + worst):
            return True
        self._write_off_ended(table)
        spent, batches = table.spent(), table.reserved(OF_BATCH) - table.reserved(waits_for)
        if not self.budget.allows(spent + batches + worst):
            raise self._over(spent, worst, what, batches=batches)
        return self.budget.allows(spent + table.reserved() + worst)

    def _over(self, spent: Cost, worst: Cost, what: str, *, batches: Cost) -> OverBudget:
        words = self.budget.words
        held = "" if batches == NOTHING else f", {words(batches)} set aside for batches under way"
        return OverBudget(
            f"The budget of {self.budget} is used up: {words(spent)} spent{held}, and {what} may take {words(worst)}.",
            hint="The same command with a larger budget goes on; a smaller `max_tokens` lowers what a call may take.",
        )


def _reserve_anew(table: LedgerTable, owner: str, amount: Cost) -> None:
    table.free_all(owner)
    table.reserve(randbits(62), owner, amount)


def _write_off(table: LedgerTable, owner: str) -> None:
    """Settles what an owner has reserved at its worst case, which is lost."""
    left = table.reserved_by(owner)
    table.free_all(owner)
    if left != NOTHING:
        table.spend(left, lost=True)
