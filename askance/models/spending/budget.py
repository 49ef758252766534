"""Budgets: how much a run may spend, in US dollars, tokens or calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.chat import Usage
    from askance.models.settings import Price

_NANO = 10**9
_BUDGET = re.compile(r"\$?\s*(\d[\d_,]*(?:\.\d+)?)\s*([kM]?)\s*(dollars?|usd|\$|tokens?|calls?|)", re.IGNORECASE)
_EXAMPLES = "Write 5.00 for US dollars, 20000tokens, or 100calls."


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What calls cost: whole numbers, so that sums are exact over any number of processes."""

    nanodollars: int = 0
    """Billionths of a US dollar, rounded up."""
    tokens: int = 0
    """Input and output."""
    calls: int = 0
    """Tries that were, or may have been, answered."""

    @classmethod
    def of(cls, usage: Usage, price: Price | None, *, share: float = 1.0) -> Amount | None:
        """One call that took `usage`, at the most that it can cost; without a price it counts no dollars.

        `share` is the part of the price that is asked, as in a batch. None where the endpoint did not count, or the
        price does not hold for so much.
        """
        if usage.input is None or usage.output is None:
            return None
        dollars = 0.0 if price is None else price.most(usage)
        if dollars is None:
            return None
        return cls(nanodollars=ceil(round(dollars * share * _NANO, 3)), tokens=usage.input + usage.output, calls=1)

    @property
    def dollars(self) -> float:
        """US dollars."""
        return self.nanodollars / _NANO

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            nanodollars=self.nanodollars + other.nanodollars,
            tokens=self.tokens + other.tokens,
            calls=self.calls + other.calls,
        )

    def __mul__(self, times: int) -> Amount:
        return Amount(nanodollars=self.nanodollars * times, tokens=self.tokens * times, calls=self.calls * times)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(
            nanodollars=self.nanodollars - other.nanodollars,
            tokens=self.tokens - other.tokens,
            calls=self.calls - other.calls,
        )


NOTHING = Amount()


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
            raise UsageError("A budget limits dollars, tokens or calls, to nothing or more.", hint=_EXAMPLES)

    @classmethod
    def parse(cls, text: str) -> Budget:
        """The budget that `text` writes: `5`, `$5.00`, `20000tokens`, `2M tokens`, `100calls`.

        Raises:
            UsageError: it writes none.
        """
        found = _BUDGET.fullmatch(text.strip())
        if found is None:
            raise UsageError(f"{text!r} is no budget.", hint=_EXAMPLES)
        number = float(re.sub(r"[_,]", "", found[1])) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()]
        unit = found[3].lower()
        if unit.startswith(("token", "call")):
            return cls(tokens=int(number)) if unit.startswith("token") else cls(calls=int(number))
        return cls(dollars=number)

    def allows(self, amount: Amount) -> bool:
        """Whether `amount` is within every limit."""
        return (
            (self.dollars is None or amount.nanodollars <= round(self.dollars * _NANO))
            and (self.tokens is None or amount.tokens <= self.tokens)
            and (self.calls is None or amount.calls <= self.calls)
        )

    def words(self, amount: Amount) -> str:
        """`amount` in the units that this budget limits."""
        parts = {
            shown_dollars(amount.dollars): self.dollars,
            f"{amount.tokens:,} tokens": self.tokens,
            f"{amount.calls:,} call{'s' * (amount.calls != 1)}": self.calls,
        }
        return " and ".join(part for part, limit in parts.items() if limit is not None)

    def __str__(self) -> str:
        nano = round((self.dollars or 0) * _NANO)
        return self.words(Amount(nanodollars=nano, tokens=self.tokens or 0, calls=self.calls or 0))


def shown_dollars(dollars: float) -> str:
    """`dollars` with two digits after the point, four below one dollar, and never as nothing where it is something."""
    if dollars >= 1 or not dollars:
        return f"${dollars:,.2f}"
    return f"${dollars:.4f}" if dollars >= 0.0001 else "less than $0.0001"
