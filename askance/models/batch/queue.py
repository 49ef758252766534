"""The queue of one pass: its missing calls, written into files that are uploaded as batches."""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING
from uuid import uuid4

from askance.errors import BadRequest, CallError, OverBudget, Refused, StoreError, UsageError
from askance.models.batch.batch_job import BatchJob, BatchPart, form_of
from askance.models.batch.target import line_of, target_of
from askance.models.budget import worst_of
from askance.models.call_scope import Pending
from askance.models.prices import price_of
from askance.models.recorder import sent_images

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject
    from askance.models.batch.reservations import BatchBudget, JobLeases
    from askance.models.openai.dialect import Dialect
    from askance.models.settings import ModelSettings
    from askance.replay import Cost

MAX_CALLS = 50_000
"""Calls that a batch may hold."""

MAX_BYTES = 200_000_000
"""Bytes that a batch's file may have."""


@dataclass(slots=True)
class _OpenPart:
    """A part that is being written."""

    part: BatchPart
    body: IO[bytes]
    calls: IO[bytes]
    keys: list[str] = field(default_factory=list[str])
    """Of its calls."""

    def close(self) -> None:
        for file in (self.body, self.calls):
            file.flush()
            os.fsync(file.fileno())
            file.close()


class CallQueue:
    """Takes the calls of one pass that are not on record: each request once, and none that has failed for good.

    Args:
        job: where the parts go.
        dialects: by target, the form of its requests.
        leases: of the calls; a call that another run asks for is left to it.
        most_calls: that a part may hold.
        most_bytes: that a part may have.
        reports_hits: see `MissPolicy`.
        budget: holds what the calls can cost; None is no budget.
        closed: the queue takes no calls: in the last pass nothing is missing but what the budget does not allow.
    """

    def __init__(
        self,
        job: BatchJob,
        dialects: Mapping[str, Dialect],
        *,
        leases: JobLeases,
        most_calls: int = MAX_CALLS,
        most_bytes: int = MAX_BYTES,
        reports_hits: bool = False,
        budget: BatchBudget | None = None,
        closed: bool = False,
    ) -> None:
        self.reports_hits = reports_hits
        self.count = 0
        """Calls in the queue."""
        self.asked_elsewhere: list[str] = []
        """Keys of the calls that another run asks for, or has recorded meanwhile."""
        self.complete_parts: deque[BatchPart] = deque()
        """Parts that are ready to be sent."""
        self.error: StoreError | None = None
        """Why the queue takes no more; the pass is to end."""
        self._job = job
        self._dialects = dialects
        self._leases = leases
        self._most_calls = most_calls
        self._most_bytes = most_bytes
        self.over_budget: OverBudget | None = None
        """Why calls were not taken: what is left of the budget does not allow them."""
        self._budget = budget
        self._closed = closed
        self._ended = False
        self._open: dict[str, _OpenPart] = {}
        # Half a digest tells calls apart and takes half the memory.
        self._seen: set[bytes] = set()
        self._lock = Lock()

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:
        """Puts a call into the queue; returns `Pending`, or the error of a call that has failed for good.

        Raises:
            UsageError: the model has no batch interface that is known here.
            BadImage: a picture cannot be used.
            BadRequest: the call is larger than a batch may be.
        """
        if request.given is not None:
            return Refused("a batch weighs no given text")
        failure = self._job.failure(request.key)
        if failure is not None:
            return failure.to_error()
        dialect = self._dialects.get(target_of(settings))
        if dialect is None or not settings.stored:
            raise UsageError(f"Calls of {str(settings.id)!r} cannot be put into a batch.", hint="Leave out `--batch`.")
        try:
            return await asyncio.to_thread(self._take, request, settings, dialect)
        except OSError as error:
            self.error = self._job.unwritten(error)
        except StoreError as error:
            self.error = error
        return Pending(str(self.error))

    def finish(self) -> None:
        """Closes the parts that are being written; they are then ready to be sent.

        Raises:
            StoreError: they cannot be written.
        """
        with self._lock:
            for target in list(self._open):
                try:
                    self._close(target)
                except OSError as error:
                    raise self._job.unwritten(error) from error

    def abandon(self) -> None:
        """Drops the parts that are being written; the next pass begins them anew."""
        with self._lock:
            for each in self._open.values():
                for file in (each.body, each.calls):
                    with suppress(OSError):  # what a full disk does not take is not wanted any more
                        file.close()
                self._leases.release(each.keys)
                if self._budget is not None:
                    self._budget.abandon(each.part.id)
            self._open.clear()
            # A call that is being taken on another thread comes too late.
            self._ended = True

    def _take(self, request: ChatRequest, settings: ModelSettings, dialect: Dialect) -> CallError:
        if self._closed:
            self._batch_line(request, settings, dialect)
            return _same_refusal(self.over_budget) or Pending(
                "The chain asks something else each time that it reads the same picture.",
                hint="Ask without `--batch`, or have what it asks depend on nothing but the pictures.",
            )
        known = bytes.fromhex(request.key[:32])
        waits = Pending("The call waits for its batch.")
        with self._lock:
            if known in self._seen:
                return waits
            self._seen.add(known)
        try:
            line = self._batch_line(request, settings, dialect)
            if not self._leases.take(request.key):
                self.asked_elsewhere.append(request.key)
                return Pending("The call waits for another run that asks for it.")
            self._put(request, settings, line)
        except BaseException:
            with self._lock:
                self._seen.discard(known)
            raise
        return waits

    def _put(self, request: ChatRequest, settings: ModelSettings, line: bytes) -> None:
        """Writes a call that this process holds the lease of.

        Raises:
            OverBudget: the budget has nothing left for it.
            OSError: it cannot be written.
        """
        try:
            worst = self._worst(request, settings)
            call: JsonObject = {
                "key": request.key,
                "request": request.canonical(),
                "images": sent_images(request),
            }
            if worst is not None:
                call["worst"] = form_of(worst)
            form = json.dumps(call, separators=(",", ":")).encode() + b"\n"
            with self._lock:
                if self._ended:
                    raise Pending("The pass has ended.")
                self._write(target_of(settings), line, form, key=request.key, worst=worst)
        except BaseException:
            self._leases.release([request.key])
            raise

    def _batch_line(self, request: ChatRequest, settings: ModelSettings, dialect: Dialect) -> bytes:
        line = line_of(request, settings, dialect)
        if len(line) > self._most_bytes:
            raise BadRequest(
                f"The request has {len(line):,} bytes, and a batch takes no more than {self._most_bytes:,}.",
                hint="Ask without `--batch`, or send smaller pictures.",
            )
        return line

    def _worst(self, request: ChatRequest, settings: ModelSettings) -> Cost | None:
        """What the call can cost; None without a budget.

        Raises:
            OverBudget: the budget had nothing left for an earlier call, or that is not known.
        """
        if self._budget is None:
            return None
        if (over := _same_refusal(self.over_budget)) is not None:
            raise over
        price = price_of(settings)
        return worst_of(request, price, share=1.0 if price is None or price.batch is None else price.batch)

    def _write(self, target: str, line: bytes, call: bytes, *, key: str, worst: Cost | None) -> None:
        if target in self._open and self._open[target].part.size + len(line) > self._most_bytes:
            self._close(target)
        writing = self._open.get(target)
        if writing is None:
            part = BatchPart(uuid4().hex, target, 0, 0)
            body, calls = _new(self._job.upload_file(part.id)), _new(self._job.calls_file(part.id))
            writing = self._open[target] = _OpenPart(part, body, calls)
        if worst is not None:
            self._hold(writing.part, worst)
        writing.body.write(line)
        writing.calls.write(call)
        part = writing.part
        part.count += 1
        part.size += len(line)
        writing.keys.append(key)
        self.count += 1
        if part.count >= min(self._most_calls, self._job.call_limits.get(target, self._most_calls)):
            self._close(target)

    def _hold(self, part: BatchPart, worst: Cost) -> None:
        """Reserves what a call can cost.

        Raises:
            OverBudget: it does not fit, or not before calls under way have ended; this pass then takes no more.
        """
        budget = self._budget
        if budget is None:
            return
        try:
            if budget.take(part.id, worst):
                return
            self.over_budget = OverBudget(budget.set_aside)
        except OverBudget as error:
            self.over_budget = error
        raise OverBudget(self.over_budget.message, hint=self.over_budget.hint)

    def _close(self, target: str) -> None:
        writing = self._open.pop(target)
        try:
            self._spool(target, writing)
        except BaseException:
            self._leases.release(writing.keys)
            raise

    def _spool(self, target: str, writing: _OpenPart) -> None:
        writing.close()
        if not writing.part.count:
            for file in (self._job.upload_file(writing.part.id), self._job.calls_file(writing.part.id)):
                file.unlink(missing_ok=True)
            return
        self._job.sync()
        part, dialect = writing.part, self._dialects[target]
        form = {"token_field": dialect.token_field, "without": sorted(dialect.without)}
        worst = None if self._budget is None else form_of(self._budget.spooled(part.id))
        self._job.note("spooled", part, target=target, count=part.count, size=part.size, worst=worst, form=form)
        self._leases.spooled(part.id)
        self.complete_parts.append(self._job.parts[part.id])


def _same_refusal(over: OverBudget | None) -> OverBudget | None:
    """The same refusal for another call."""
    return None if over is None else OverBudget(over.message, hint=over.hint)


def _new(path: Path) -> IO[bytes]:
    """A new file that no other user may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
