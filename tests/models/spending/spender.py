"""A process that spends from a ledger until nothing fits: reserves, is billed, settles; and may die at any step.

    python -m tests.models.spending.spender LEDGER INVOICE LIMIT SEED DEATHS

What is really billed is appended to the invoice before the ledger hears of it.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from askance.errors import OverBudget
from askance.models.spending.budget import Amount, Budget
from askance.models.spending.ledger import Ledger


def spend(ledger: Path, invoice: Path, limit: int, *, seed: int, deaths: float) -> None:
    """Spends `limit` tokens or dies, at each step with the probability `deaths`."""
    draw, book = random.Random(seed), Ledger(ledger, Budget(tokens=limit))
    under_way: list[tuple[int, int]] = []

    def perhaps_die() -> None:
        if draw.random() < deaths:
            os._exit(9)

    def end_one() -> None:
        reservation, worst = under_way.pop(draw.randrange(len(under_way)))
        bill = draw.randint(0, worst)
        perhaps_die()
        with invoice.open("a", encoding="utf-8") as file:
            file.write(f"{bill}\n")
        perhaps_die()
        book.settle(reservation, Amount(tokens=bill))

    while True:
        worst = draw.randint(1, 50)
        try:
            reservation = book.reserve(Amount(tokens=worst))
        except OverBudget:
            break
        perhaps_die()
        if reservation is not None:
            under_way.append((reservation, worst))
        elif not under_way:
            time.sleep(0.001)
        if under_way and (reservation is None or draw.random() < 0.6):
            end_one()
    while under_way:
        end_one()
    book.close()


if __name__ == "__main__":
    spend(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), seed=int(sys.argv[4]), deaths=float(sys.argv[5]))
