"""The budget of a run around its batches: what a batch can cost is held in the ledger before the batch is made.

What is held belongs to the batch on disk and not to a process: it stays through kills and closed lids, until the
batch's answers are in and what they cost takes its place. In the ledger it goes by the place of the batches, the job in
it, and the part, so that what nobody comes back for is told from what is under way.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from askance.errors import OverBudget
from askance.models.budget import NOTHING, Cost

if TYPE_CHECKING:
    from askance.models.batch.jobs import Job, Part
    from askance.models.budget import BudgetGuard

_log = logging.getLogger("askance")

AHEAD = 32
"""Calls that are held for at once where there is room, since each time the disk has to be waited for."""


@dataclass(slots=True)
class _Open:
    """What is held for a part that is being written, and what its calls can cost."""

    held: Cost = field(default_factory=Cost)
    worst: Cost = field(default_factory=Cost)


class BatchBudget:
    """What the batches of one job may cost; from any thread, one at a time.

    Args:
        job: the batches on disk.
        guard: the run's.
    """

    def __init__(self, job: Job, guard: BudgetGuard) -> None:
        self._job = job
        self._guard = guard
        self._place = guard.ledger.place_of(job.folder)
        self._open: dict[str, _Open] = {}

    def begin(self) -> None:
        """Settles what an earlier process has left: parts that were never sent, and those whose answers are in.

        What an earlier job in the same place has left counts in full, for nobody knows what it came to.

        Raises:
            StoreError: the ledger cannot be written.
        """
        ledger = self._guard.ledger
        for batch in ledger.held(self._place):
            _, job, number = batch.split(":")
            part = self._job.parts.get(number)
            if job != self._job.id:
                ledger.settle_batch(batch, None)
            elif part is None:
                ledger.settle_batch(batch, NOTHING)
            elif part.settled:
                ledger.settle_batch(batch, part.spent)
        uncounted = sum(part.worst is None for part in self._job.unsettled)
        if uncounted:
            _log.warning("Batches that were begun without a budget do not count in it: %d.", uncounted)

    def take(self, part: str, worst: Cost) -> bool:
        """Holds what one more call of a part can cost; False where that has to wait for other calls.

        Raises:
            OverBudget: it does not fit.
            StoreError: the ledger cannot be written.
        """
        known = self._open.setdefault(part, _Open())
        total = known.worst + worst
        lacking = _lacking(total, known.held)
        if lacking != NOTHING and not self._held_ahead(part, known, worst * AHEAD):
            try:
                if not self._guard.ledger.hold(self._name(part), lacking, what="the next call of a batch"):
                    return False
            except OverBudget:
                self._guard.used_up = True
                raise
            known.held += lacking
        known.worst = total
        return True

    def spooled(self, part: str) -> Cost:
        """What the calls of a part can cost, now that it is complete; no more than that is held from here on."""
        known = self._open.pop(part, None)
        worst = NOTHING if known is None else known.worst
        self._guard.ledger.trim(self._name(part), worst)
        return worst

    def abandon(self, part: str) -> None:
        """Gives back what was held for a part that will not be sent."""
        self._open.pop(part, None)
        self._guard.ledger.settle_batch(self._name(part), NOTHING)

    async def settle(self, part: Part) -> None:
        """Puts what a settled part has cost in place of what was held for it."""
        await asyncio.to_thread(self._guard.ledger.settle_batch, self._name(part.id), part.spent)

    @property
    def set_aside(self) -> str:
        """Why calls wait that would fit by themselves."""
        return f"What is left of the budget of {self._guard.ledger.budget} is set aside for other calls under way."

    def _held_ahead(self, part: str, known: _Open, ahead: Cost) -> bool:
        try:
            held = self._guard.ledger.hold(self._name(part), ahead)
        except OverBudget:
            return False
        known.held += ahead if held else NOTHING
        return held

    def _name(self, part: str) -> str:
        return f"{self._place}:{self._job.id}:{part}"


def _lacking(wanted: Cost, held: Cost) -> Cost:
    missing = wanted - held
    return Cost(nanodollars=max(missing.nanodollars, 0), tokens=max(missing.tokens, 0), calls=max(missing.calls, 0))
