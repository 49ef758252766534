"""The batches of a run: a queue for each pass over its pictures, and a task for each part that is under way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.models.batch.policy import BatchPolicy, BatchProgress
from askance.models.batch.queue import CallQueue
from askance.models.batch.reservations import BatchBudget, JobLeases
from askance.models.batch.target import BatchTarget
from askance.models.batch.worker import BatchWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from askance.errors import OverBudget
    from askance.models.batch.batch_job import BatchJob, BatchPart
    from askance.models.batch.policy import Phase
    from askance.models.model import Model


class Batches:
    """The batches of one run.

    Args:
        job: the state on disk.
        models: those of the chain, all of one engine.
        policy: bounds.
        on_progress: called after every step.

    Raises:
        UsageError: a model has no batch interface that is known here.
    """

    def __init__(
        self,
        job: BatchJob,
        models: Sequence[Model],
        *,
        policy: BatchPolicy | None = None,
        on_progress: Callable[[BatchProgress], None] | None = None,
    ) -> None:
        self.round = 1
        self._policy = policy or BatchPolicy()
        self._job = job
        self._on_progress = on_progress
        self._passes = 0
        self._engine = models[0].engine
        self._leases = JobLeases(job, self._engine.recorder)
        self._targets = {target.key: target for target in [BatchTarget(model, job) for model in models]}
        guard = self._engine.budget
        self._budget = None if guard is None else BatchBudget(job, guard)
        self._over: OverBudget | None = None
        self._worker = BatchWorker(
            job, self._targets, leases=self._leases, policy=self._policy, report=self.report, budget=self._budget
        )
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Sets up the targets, and goes on with the parts that an earlier process left.

        Raises:
            UsageError: the job holds batches of other models.
            CallError: an endpoint cannot be asked.
            StoreError: the budget's ledger cannot be written.
        """
        if self._budget is not None:
            await asyncio.to_thread(self._budget.begin)
        for target in self._targets.values():
            await target.begin()
        if self._engine.retry:
            for key in self._job.answered_keys():
                self._engine.recorder.renewed(key)
        for part in self._job.parts.values():
            if part.settled:
                await asyncio.to_thread(self._leases.release_batch, part)
        for part in sorted(self._job.unsettled, key=lambda part: part.batch is None):
            if part.target not in self._targets:
                raise UsageError(
                    f"The folder {str(self._job.folder)!r} holds batches of another model.",
                    hint="Finish them with the run that began them, or give another folder.",
                )
            self.start(part)

    async def check(self) -> None:
        """Makes sure, once, that every endpoint has a batch interface.

        Raises:
            UsageError: an endpoint has no batch interface.
            CallError: an endpoint cannot be asked.
        """
        for target in self._targets.values():
            await self._worker.with_retries(target.check)

    def queue(self, *, closed: bool = False) -> CallQueue:
        """A queue for the next pass; `closed`, for the last."""
        self._passes += 1
        queue = CallQueue(
            self._job,
            {name: target.dialect for name, target in self._targets.items()},
            leases=self._leases,
            most_calls=self._policy.most_calls,
            most_bytes=self._policy.most_bytes,
            reports_hits=self._passes == 1 and not closed,
            budget=self._budget,
            closed=closed,
        )
        queue.over_budget = self._over if closed else None
        return queue

    def end_pass(self, queue: CallQueue) -> bool:
        """Notes that a pass has ended; returns False where the budget did not allow all of its calls."""
        self._over = queue.over_budget
        return queue.over_budget is None

    def start(self, part: BatchPart) -> None:
        """Starts the task that takes a part to its end."""
        self._tasks.add(asyncio.create_task(self._worker.run(part)))

    async def wait_for_room(self) -> None:
        """Waits while more parts than the policy allows wait for their upload.

        Raises:
            AskanceError: a part cannot be carried on.
        """
        while sum(part.file is None for part in self._job.unsettled) > self._policy.ahead and self._tasks:
            await self._raised(await asyncio.wait(self._tasks, timeout=0.2))

    async def drain(self) -> None:
        """Waits until every part that was started is settled.

        Raises:
            AskanceError: a part cannot be carried on; the others are left as they are.
        """
        while self._tasks:
            await self._raised(await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED))

    async def wait_for_others(self, keys: list[str]) -> None:
        """Waits until other runs have answers to `keys`, or no longer ask for them."""
        words = f"Another run on these records asks for {len(keys):,} of the calls."
        wait = self._policy.first_poll
        while keys:
            while keys and await asyncio.to_thread(self._leases.available, keys[-1]):
                keys.pop()
            if keys:
                self.report("trouble", words)
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, self._policy.poll)

    async def aclose(self) -> None:
        """Stops the tasks; parts on disk stay, and leases of parts without a batch are freed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in self._job.unsettled:
            if part.has_no_batch:
                await asyncio.to_thread(self._leases.release_batch, part)
        for target in self._targets.values():
            await target.aclose()

    def report(self, phase: Phase, words: str = "", *, queued: int | None = None) -> None:
        """Reports how far the batches have come."""
        if self._on_progress is not None:
            known = self._worker.done
            parts = [part for part in self._job.parts.values() if part.id in known or not part.settled]
            self._on_progress(
                BatchProgress(
                    phase=phase,
                    round=self.round,
                    queued=sum(part.count for part in parts) if queued is None else queued,
                    sent=sum(part.count for part in parts if part.batch),
                    done=sum(part.count if part.settled else known.get(part.id, 0) for part in parts),
                    batches=tuple(part.batch for part in parts if part.batch and not part.settled),
                    words=words,
                )
            )

    async def _raised(self, waited: tuple[set[asyncio.Task[None]], object]) -> None:
        done, _ = waited
        self._tasks -= done
        for task in done:
            task.result()
        if not self._tasks:
            self._worker.done.clear()
