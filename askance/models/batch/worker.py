"""The worker: takes each part from the upload of its file to its answers on record.

A step that must not be taken twice is noted before it is taken, any other step after it. So a part goes on where the
last process left it. Where the request to create a batch got no answer, there may be a batch or not: it is looked for
by the part's id for as long as it may take to appear. A late second batch is looked for once more, and cancelled. Where
another run has begun to ask for a call of the part, the part is given up; the next pass queues what is left of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from askance.errors import BadRequest, CallError, ModelError, UsageError
from askance.models.batch.batch_job import CallFailure, form_of
from askance.models.batch.results import PartResults
from askance.models.openai.dialect import PATHS
from askance.replay import NOTHING

if TYPE_CHECKING:
    from askance.errors import AskanceError
    from askance.models.batch.batch_job import BatchJob, BatchPart
    from askance.models.batch.policy import BatchPolicy, Phase
    from askance.models.batch.reservations import BatchBudget, JobLeases
    from askance.models.batch.target import BatchTarget
    from askance.models.openai.batch_api import Batch

T = TypeVar("T")

_log = logging.getLogger("askance")

_UNSURE = frozenset({408, 409, 425})
"""Statuses below 500 after which a batch may have been created all the same."""

NO_ROOM = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})
"""Codes by which an endpoint says that too many calls wait there already."""


class _TakenOver(Exception):
    """Another run asks for a call of a part that is in no batch yet."""


class BatchWorker:
    """Takes the parts of one run from upload to recorded answers, any number at a time.

    Args:
        job: the state on disk.
        targets: by key; see `BatchPart.target`.
        leases: of the calls.
        policy: bounds.
        report: tells how far the batches have come.
        budget: holds what the parts can cost; None is without one.
    """

    def __init__(
        self,
        job: BatchJob,
        targets: Mapping[str, BatchTarget],
        *,
        leases: JobLeases,
        policy: BatchPolicy,
        report: Callable[[Phase, str], None],
        budget: BatchBudget | None = None,
    ) -> None:
        self.done: dict[str, int] = {}
        """Calls that the endpoint has done, by part."""
        self._job = job
        self._targets = targets
        self._leases = leases
        self._policy = policy
        self._report = report
        self._budget = budget
        self._transfers = asyncio.Semaphore(policy.at_once)
        self._finished = asyncio.Condition()
        self._under_way: Counter[str] = Counter()
        self._unsure: dict[str, float] = {}
        """By part: when its batch was last asked for, in seconds of the monotonic clock."""

    async def run(self, part: BatchPart) -> None:
        """Takes a part from the step that it has reached to the last one.

        Raises:
            AskanceError: it cannot go on; its state on disk stays, and another process can go on from there.
        """
        self.done.setdefault(part.id, 0)
        try:
            if part.has_no_batch:
                await self._secure(part)
            if part.batch is None:
                await self._upload(part)
            await self._complete(part)
        except _TakenOver:
            await self._give_up(part)
        self._report("settled", "")

    async def _complete(self, part: BatchPart) -> None:
        """Creates the batch, waits for its end, and records its results."""
        async with self._finished:
            # Where the endpoint has no room for all, each waits until the one before it is done.
            await self._finished.wait_for(
                lambda: part.target not in self._job.call_limits or not self._under_way[part.target]
            )
            self._under_way[part.target] += 1
        try:
            if part.batch is None:
                await self._create(part)
            self._report("sent", "")
            batch = await self._await_end(part)
            await self._settle(part, batch)
        finally:
            self._under_way[part.target] -= 1
            async with self._finished:
                self._finished.notify_all()

    async def _upload(self, part: BatchPart) -> None:
        if part.file is not None:
            return
        api, name = self._targets[part.target].api, f"askance-{part.id}.jsonl"

        async def upload() -> str:
            file = await api.find_file(name, part.size) if part.uploading else None
            if file is None:
                self._job.note("uploading", part)
                file = await api.upload(self._job.upload_file(part.id), name)
            return file

        async with self._transfers:
            self._job.note("uploaded", part, file=await self.with_retries(upload))

    async def _create(self, part: BatchPart) -> None:
        """Creates the batch, once.

        Raises:
            CallError: the endpoint does not create it.
        """
        attempt, made, doubtful = 0, None, False
        while made is None:
            doubtful = part.creating is not None
            try:
                made = await self._find_batch(part) or await self._ask_for_batch(part)
            except CallError as error:
                attempt += 1
                if attempt >= self._policy.requests or not (error.retryable or part.file is None):
                    raise
                self._report("trouble", str(error))
                await self._pause(attempt, error)
        self._job.note("created", part, batch=made.id, doubtful=doubtful)
        self._job.upload_file(part.id).unlink(missing_ok=True)

    async def _ask_for_batch(self, part: BatchPart) -> Batch:
        """Asks for the batch; notes that none was made where that is certain.

        Raises:
            CallError: there is no batch, or it is not known whether there is one.
        """
        await self._secure(part)
        await self._upload(part)
        self._job.note("creating", part, at=time.time())
        if not await asyncio.to_thread(self._leases.assign_to_batch, part):
            self._job.note("rejected", part)
            raise _TakenOver
        url = f"/v1{PATHS[self._targets[part.target].model.id.api]}"
        try:
            return await self._targets[part.target].api.create(part.file or "", url=url, part=part.id)
        except ModelError as error:
            if error.status is not None and error.status < 500 and error.status not in _UNSURE:
                self._job.note("rejected", part)
                await self._secure(part)
                if isinstance(error, BadRequest) and "file" in error.message.lower():
                    # The file has been deleted, or the endpoint does not find it yet.
                    self._job.note("uploaded", part, file=None)
            raise
        finally:
            self._unsure[part.id] = time.monotonic()

    async def _find_batch(self, part: BatchPart) -> Batch | None:
        """The batch whose creation got no answer; None where there was none, or it would have appeared by now."""
        api = self._targets[part.target].api
        # How long ago another process asked is not known.
        until = self._unsure.get(part.id, time.monotonic()) + self._policy.grace
        while part.creating is not None:
            made = await self.with_retries(lambda: api.find_batches(part.id))
            if made:
                first = made[-1]  # the latest is named first
                await self._cancel_others(part, made, first.id)
                return first
            left = until - time.monotonic()
            if left <= 0:
                break
            await asyncio.sleep(min(left, self._policy.first_poll))
        return None

    async def _cancel_others(self, part: BatchPart, made: Sequence[Batch], running: str) -> None:
        """Cancels the batches that were `made` of a part, except the one `running` and those that have ended."""
        for other in made:
            if other.id != running and not other.ended:
                with suppress(CallError):
                    await self.with_retries(lambda other=other: self._targets[part.target].api.cancel(other.id))

    async def _await_end(self, part: BatchPart) -> Batch:
        """The batch once it has ended; an endpoint that cannot be reached is asked again without end."""
        api, wait = self._targets[part.target].api, self._policy.first_poll
        shown = time.monotonic() + self._policy.grace
        while True:
            try:
                batch = await api.get(part.batch or "")
                if part.may_be_double and (batch.ended or time.monotonic() >= shown):
                    await self._cancel_others(part, await api.find_batches(part.id), batch.id)
                    self._job.note("alone", part)
            except CallError as error:
                if not error.retryable:
                    raise self._lookup_error(part, error) from error
                self._report("trouble", str(error))
            else:
                self.done[part.id] = min(batch.done or 0, part.count)
                if batch.ended:
                    return batch
                self._report("waiting", "")
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, self._policy.poll)

    async def _settle(self, part: BatchPart, batch: Batch) -> None:
        """Records the answers of the batch, and notes the failures of its other calls."""
        target = self._targets[part.target]
        results = await asyncio.to_thread(
            PartResults,
            self._job.calls_file(part.id),
            target.api.context,
            target.model.id.api,
            target.put,
            lambda details: target.learn(part, details),
            target.cost,
        )
        if batch.status == "failed" and not batch.output:
            failures = self._failures_of_rejected(part, batch, results)
        else:
            await self._download(part, batch, results)
            failures = await asyncio.to_thread(results.failures, batch)
        if results.unknown:
            _log.warning("The batch %s holds %d lines about no call of it.", part.batch, results.unknown)
        self._job.note(
            "settled",
            part,
            answered=len(results.answered),
            spent=None if part.worst is None else form_of(results.spent),
            endings=[failure.canonical() for failure in failures],
        )
        if self._budget is not None:
            await self._budget.settle(part)
        await self._clear(part)

    async def _clear(self, part: BatchPart) -> None:
        """Removes what a settled part leaves."""
        await asyncio.to_thread(self._leases.release_batch, part)
        self._job.upload_file(part.id).unlink(missing_ok=True)
        if part.file is not None:
            with suppress(CallError):  # it holds pictures, and nobody needs it any more
                await self._targets[part.target].api.delete_file(part.file)

    async def _secure(self, part: BatchPart) -> None:
        """Makes sure that no other run asks for a call of a part, or has asked.

        Raises:
            _TakenOver: one does.
        """
        if not await asyncio.to_thread(self._leases.secure, part):
            raise _TakenOver

    async def _give_up(self, part: BatchPart) -> None:
        """Settles a part that has no batch; all of its calls are queued again."""
        left = CallFailure(
            error="CallError",
            message="Another run asks for the call.",
            keys=tuple(self._job.keys(part.id)),
            again=True,
            counts=False,
        )
        spent = None if part.worst is None else form_of(NOTHING)
        self._job.note("settled", part, answered=0, spent=spent, endings=[left.canonical()])
        if self._budget is not None:
            await self._budget.settle(part)
        await self._clear(part)

    async def _download(self, part: BatchPart, batch: Batch, results: PartResults) -> None:
        """Downloads and reads the batch's files; downloads them again where lines are missing."""
        api = self._targets[part.target].api
        target = self._job.folder / f"{part.id}.answers"
        for attempt in range(self._policy.tries):
            if attempt:
                await asyncio.sleep(min(2.0**attempt, self._policy.poll))
            results.unknown = 0
            for file in (batch.output, batch.errors):
                if file is not None:
                    async with self._transfers:
                        await self.with_retries(lambda file=file: api.download(file, target))
                        await asyncio.to_thread(results.read, target)
            target.unlink(missing_ok=True)
            if results.lines >= min(batch.done or 0, part.count):
                return

    def _failures_of_rejected(self, part: BatchPart, batch: Batch, results: PartResults) -> Sequence[CallFailure]:
        if not any(code in NO_ROOM for code, _, _ in batch.complaints):
            return results.rejected(batch)
        taking_turns = part.target in self._job.call_limits
        most = max(1, part.count // 2) if taking_turns else part.count
        self._job.note("narrowed", target=part.target, most=most)
        return results.postponed(counts=taking_turns and part.count == 1)

    def _lookup_error(self, part: BatchPart, error: CallError) -> AskanceError:
        """The error where a batch cannot be looked up."""
        if not isinstance(error, ModelError) or error.status != 404:
            return error
        return UsageError(
            f"{self._targets[part.target].api.context.where} does not know the batch {part.batch!r}.",
            hint="Use the API key that began it. To give up its answers and begin anew, remove the folder "
            f"{str(self._job.folder)!r}.",
        )

    async def with_retries(self, make: Callable[[], Awaitable[T]]) -> T:
        """The result of `make()`, tried again after errors that may pass.

        Raises:
            CallError: the last try failed too.
        """
        attempt = 0
        while True:
            try:
                return await make()
            except CallError as error:
                attempt += 1
                if not error.retryable or attempt >= self._policy.requests:
                    raise
                self._report("trouble", str(error))
                await self._pause(attempt, error)

    async def _pause(self, attempt: int, error: CallError) -> None:
        retry_after = error.retry_after if isinstance(error, ModelError) else None
        await asyncio.sleep(min(max(retry_after or 0.0, 0.5 * 2.0**attempt), self._policy.max_wait))
