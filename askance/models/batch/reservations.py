"""What a job reserves before it makes a call: the call's lease, and its worst cost in the budget.

Other runs on the same records may want the same calls, and each call is to be paid for once. While a call is queued,
this process holds its lease, so that the lease is free as soon as the process has ended. Once its batch is asked for,
the batch holds the lease, whether a process lives or not, until the answer is on record.

What a batch can cost is held in the ledger before the batch is created. It belongs to the batch and not to a process:
it stays when the process is killed, until the answers are recorded and their cost takes its place. In the ledger it is
named by the job's folder, the job and the part, so that an abandoned batch can be told from one under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from askance.errors import BadRecord, OverBudget
from askance.replay import NOTHING, Cost

if TYPE_CHECKING:
    from askance.models.batch.batch_job import BatchJob, BatchPart
    from askance.models.budget import BudgetGuard
    from askance.models.recorder import Recorder
    from askance.replay import Leases

AHEAD = 32
"""Calls that budget is held for at once, where there is enough: each time takes a write to the disk."""

_log = logging.getLogger("askance")


class JobLeases:
    """The leases of one job's calls; from any thread.

    Args:
        job: the state on disk.
        recorder: the records, and the leases beside them.
    """

    def __init__(self, job: BatchJob, recorder: Recorder) -> None:
        self._job = job
        self._recorder = recorder
        self._own: set[str] = set()
        """Parts whose leases this process has taken."""

    @property
    def _leases(self) -> Leases | None:
        return self._recorder.leases

    def take(self, key: str) -> bool:
        """Takes the lease of a call that is to be queued; False where it is on record or another run asks for it.

        Raises:
            CallError: what is on record cannot be read.
        """
        leases, old = self._leases, self._recorder.superseded(key)
        if leases is not None and not leases.take(key):
            return False
        try:
            missing = self._recorder.answered_meanwhile(key, old) is None
        except BaseException:
            self.release([key])
            raise
        if not missing:
            self.release([key])
        return missing

    def release(self, keys: Iterable[str]) -> None:
        """Frees what `take` took."""
        leases = self._leases
        if leases is not None:
            for key in keys:
                leases.release(key)

    def spooled(self, part: str) -> None:
        """Notes that a part is complete whose calls were all taken."""
        self._own.add(part)

    def secure(self, part: BatchPart) -> bool:
        """Takes the leases of a part that has no batch: all of them, or none.

        Returns False where another run holds one of them, or one of the calls is on record by now.
        """
        leases = self._leases
        if leases is None:
            return True
        had, taken = part.id in self._own, list[str]()
        for key in self._job.keys(part.id):
            held = had and leases.owns(key)
            if not held and leases.take(key, of=part.id):
                taken.append(key)
                held = True
            if not held or self._answered(key):
                self.release(taken)
                self.release_batch(part)
                return False
        self._own.add(part.id)
        leases.release_batch(part.id)
        return True

    def assign_to_batch(self, part: BatchPart) -> bool:
        """Hands the leases of a part to its batch; False where another run has taken one of them meanwhile."""
        leases = self._leases
        if leases is None:
            return True
        try:
            done = leases.assign_to_batch(part.id, self._job.keys(part.id), file=self._job.calls_file(part.id))
        except OSError:
            return True
        if done:
            self._own.discard(part.id)
        return done

    def release_batch(self, part: BatchPart) -> None:
        """Frees the leases of a part, whether this process or its batch holds them."""
        if part.id in self._own:
            self._own.discard(part.id)
            self.release(self._job.keys(part.id))
        if self._leases is not None:
            self._leases.release_batch(part.id)

    def available(self, key: str) -> bool:
        """Whether a call that another run asked for is on record by now, or free to be asked for."""
        return self._answered(key) or self._leases is None or self._leases.is_free(key)

    def _answered(self, key: str) -> bool:
        with suppress(BadRecord):
            return self._recorder.answered_meanwhile(key, self._recorder.superseded(key)) is not None
        return False


@dataclass(slots=True)
class _Reserve:
    """What is held in the ledger for a part that is being written, and what its calls can cost."""

    held: Cost = field(default_factory=Cost)
    worst: Cost = field(default_factory=Cost)


class BatchBudget:
    """What the batches of one job may cost; from any thread, one at a time.

    Args:
        job: the batches on disk.
        guard: the run's.
    """

    def __init__(self, job: BatchJob, guard: BudgetGuard) -> None:
        self._job = job
        self._guard = guard
        self._place = guard.ledger.place_of(job.folder)
        self._open: dict[str, _Reserve] = {}

    def begin(self) -> None:
        """Settles what an earlier process has left: parts that were never sent, and those whose answers are in.

        What an earlier job in the same folder has left counts in full, since its cost is not known.

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
        known = self._open.setdefault(part, _Reserve())
        total = known.worst + worst
        lacking = _lacking(total, known.held)
        if lacking != NOTHING and not self._hold_ahead(part, known, worst * AHEAD):
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

    async def settle(self, part: BatchPart) -> None:
        """Puts what a settled part has cost in place of what was held for it."""
        await asyncio.to_thread(self._guard.ledger.settle_batch, self._name(part.id), part.spent)

    @property
    def set_aside(self) -> str:
        """Why calls wait that would fit by themselves."""
        return f"What is left of the budget of {self._guard.ledger.budget} is set aside for other calls under way."

    def _hold_ahead(self, part: str, known: _Reserve, ahead: Cost) -> bool:
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
