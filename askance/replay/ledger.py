"""A budget, in US dollars, tokens or calls, and its ledger: what is spent and reserved, shared by all who spend.

The most that a call can cost is reserved before it starts and settled when it has ended.

What a batch can cost is held for the batch and not for a process: it stays until the batch's answers are recorded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from askance.amounts import money
from askance.errors import UsageError

NANO = 10**9
"""Nanodollars in a dollar."""
_BUDGET = re.compile(r"\$?\s*(\d[\d_,]*(?:\.\d+)?)\s*([kM]?)\s*(dollars?|usd|\$|tokens?|calls?|)", re.IGNORECASE)
_EXAMPLES = "Write 5.00 for US dollars, 20000tokens, or 100calls."


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What calls cost: whole numbers, so that sums are exact over any number of processes."""

    nanodollars: int = 0
    """Billionths of a US dollar, rounded up."""
    tokens: int = 0
    """Input and output."""
    calls: int = 0
    """Tries that were answered, or may have been."""

    @property
    def dollars(self) -> float:
        """US dollars."""
        return self.nanodollars / NANO

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            nanodollars=self.nanodollars + other.nanodollars,
            tokens=self.tokens + other.tokens,
            calls=self.calls + other.calls,
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(nanodollars=self.nanodollars * times, tokens=self.tokens * times, calls=self.calls * times)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            nanodollars=self.nanodollars - other.nanodollars,
            tokens=self.tokens - other.tokens,
            calls=self.calls - other.calls,
        )


NOTHING = Cost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a run may spend; what is None is not limited.

    Raises:
        UsageError: nothing is limited, or to less than nothing.
    """

    dollars: float | None = None
    tokens: int | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        limits = [limit for limit in (self.dollars, self.tokens, self.calls) if limit is not None]
        if not limits or not all(0 <= limit < float("inf") for limit in limits):
            raise UsageError("A budget limits dollars, tokens or calls, each to 0 or more.", hint=_EXAMPLES)

    @classmethod
    def parse(cls, text: str) -> Budget:
        """The budget in `text`: `5`, `$5.00`, `20000tokens`, `2M tokens`, `100calls`.

        Raises:
            UsageError: it is not a budget.
        """
        match = _BUDGET.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"{text!r} is not a budget.", hint=_EXAMPLES)
        number = float(re.sub(r"[_,]", "", match[1])) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()]
        unit = match[3].lower()
        if unit.startswith(("token", "call")):
            return cls(tokens=int(number)) if unit.startswith("token") else cls(calls=int(number))
        return cls(dollars=number)

    def allows(self, amount: Cost) -> bool:
        """Whether `amount` is within every limit."""
        return (
            (self.dollars is None or amount.nanodollars <= round(self.dollars * NANO))
            and (self.tokens is None or amount.tokens <= self.tokens)
            and (self.calls is None or amount.calls <= self.calls)
        )

    def words(self, amount: Cost) -> str:
        """`amount` in the units that this budget limits."""
        parts = {
            money(amount.dollars): self.dollars,
            f"{amount.tokens:,} tokens": self.tokens,
            f"{amount.calls:,} call{'s' * (amount.calls != 1)}": self.calls,
        }
        return " and ".join(part for part, limit in parts.items() if limit is not None)

    @property
    def most(self) -> Cost:
        """All that may be spent; 0 in units that are not limited."""
        nano = round((self.dollars or 0) * NANO)
        return Cost(nanodollars=nano, tokens=self.tokens or 0, calls=self.calls or 0)

    def __str__(self) -> str:
        return self.words(self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Where a ledger stands."""

    spent: Cost
    """The cost of the calls that have ended."""
    lost: Cost
    """Of `spent`: the worst cases of calls whose process was killed."""
    reserved: Cost
    """Worst cases of calls under way."""


class Ledger(Protocol):
    """What a run has spent of its budget, and what its calls under way may yet cost; from any thread.

    All processes of a run share it. `SqliteLedger` keeps it in a file; another can keep it in a database that several
    machines reach. Each method raises a `StoreError` where the ledger cannot be read or written; then no call is made.
    """

    budget: Budget
    """The most that may be spent, as this process was told; what is spent counts for all processes."""

    def reserve(self, worst: Cost, /, *, what: str = "the next call") -> int | None:
        """Reserves `worst`; None where that has to wait until calls under way have ended.

        Args:
            worst: the most that a call can cost.
            what: the call, in words.

        Returns:
            The reservation, for `settle`.

        Raises:
            OverBudget: `worst` does not fit, even if everything under way but batches turned out to cost nothing.
        """
        ...

    def settle(self, reservation: int, actual: Cost, /) -> None:
        """Replaces a reservation by what the call cost; settling twice changes nothing."""
        ...

    def place_of(self, folder: Path, /) -> str:
        """The name under which costs of the batches in `folder` are held: `PLACE` below, without a colon."""
        ...

    def hold(self, batch: str, worst: Cost, /, *, what: str = "the next call") -> bool:
        """Adds `worst` to what is held for a batch; False where that has to wait for calls under way.

        What is held for a batch outlives the process: it stays until the batch's answers are in.

        Args:
            batch: `PLACE:JOB:PART`.
            worst: the most that more calls of the batch can cost.
            what: the calls, in words.

        Raises:
            OverBudget: `worst` does not fit, even if all that is under way, but batches of other places, cost nothing.
        """
        ...

    def trim(self, batch: str, worst: Cost, /) -> None:
        """Lowers what is held for a batch to `worst`; nothing where none is held."""
        ...

    def held(self, place: str, /) -> list[str]:
        """The batches of a place, each as `PLACE:JOB:PART`, that something is held for."""
        ...

    def settle_batch(self, batch: str, actual: Cost | None, /) -> None:
        """Replaces what was held for a batch by what it cost; None counts the worst case, for a batch that is lost."""
        ...

    def balance(self) -> Balance:
        """Where the ledger stands, with what killed processes left behind settled."""
        ...

    def close(self) -> None:
        """Closes the ledger; what this process has not settled counts at its worst case."""
        ...
