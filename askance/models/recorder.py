"""The recorder: reads answers from the records and writes them, as far as the mode of a run allows.

| mode | reads | calls | writes |
|---|---|---|---|
| `live` | never | always | what was not on record yet |
| `auto` | first | on a miss | the answer |
| `replay` | only | never | never |
| `refresh` | never | always | the answer, over the recorded one |

When two processes need the same answer at once, the call is made once in `auto` and `refresh`: a lease makes the other
process wait, and a run uses an answer that another recorded since it began. `live` makes every call, whatever others
do.

A thread of its own writes records; those that wait at the same time are written together.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from askance import replay
from askance.chat import CallMeta, ChatResponse, Outcome
from askance.errors import BadImage, BadRecord, DamagedRecord
from askance.replay import DAMAGED_HINT, Mode, Record
from askance.replay.record import plain_object, record_time

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject
    from askance.replay import Leases, Records

_log = logging.getLogger("askance")

_REPLAYED = CallMeta(replayed=True, stored=True)


class Recorder:
    """The records as the mode of a run lets it use them.

    Args:
        opened: opens the records; called when they are first needed.
        mode: see the table above.
        retry: recorded outcomes that are asked again, each request once a run.
    """

    def __init__(self, opened: Callable[[], Records], *, mode: Mode, retry: frozenset[Outcome]) -> None:
        self.mode = mode
        self._opened = opened
        self._records: Records | None = None
        self._retry = retry
        self._reads = mode in {"auto", "replay"}
        self._began = record_time()
        self._asking_again: dict[str, Record | None] = {}
        """By key: the recorded answer that is not used, until there is a new one."""
        self._asked_again: set[str] = set()
        """Keys of answers that this run has replaced."""
        self._left: set[str] = set()
        """Keys of records that `live` found and did not replace."""
        self._warned = False
        self._opening = Lock()
        self._queue = WriteQueue(self._put_all)
        self._writable = False
        self._leases: Leases | None = None
        self._leases_known = False

    @property
    def records(self) -> Records:
        """The records, opened.

        Raises:
            StoreError: they cannot be.
        """
        if self._records is None:
            with self._opening:
                if self._records is None:
                    self._records = self._opened()
        return self._records

    def find(self, key: str, canonical_text: str | None = None) -> ChatResponse | None:
        """The recorded answer that this run may use.

        Args:
            key: of the request.
            canonical_text: the request's canonical JSON, if it is at hand: then the record need not be decoded whole.

        Raises:
            StoreError: the records cannot be read.
            BadRecord: this one holds no answer.
        """
        if not self._reads or key in self._asking_again:
            return None
        if canonical_text is not None and not self._retry:
            form = self._answer(key, canonical_text)
            return None if form is None else self._response(key, form)
        record = self.look_up(key)
        if record is None:
            return None
        response = self._response(key, record.response)
        if self._retry and response.outcome in self._retry and self._set_aside(key, record):
            return None
        return response

    def _response(self, key: str, form: JsonObject) -> ChatResponse:
        try:
            return ChatResponse.from_canonical(form, meta=_REPLAYED)
        except ValueError as error:
            raise BadRecord(
                f"The record {key[:12]!r} of {self.records.name!r} holds no answer: {error}.", hint=DAMAGED_HINT
            ) from error

    def _answer(self, key: str, canonical_text: str) -> JsonObject | None:
        try:
            return self.records.answer(key, canonical_text)
        except DamagedRecord as error:
            raise BadRecord(error.message, hint=error.hint) from error

    def look_up(self, key: str) -> Record | None:
        """The record with this key, or None.

        Raises:
            StoreError: the records cannot be read.
            BadRecord: this one is damaged.
        """
        try:
            return self.records.get(key)
        except DamagedRecord as error:
            raise BadRecord(error.message, hint=error.hint) from error

    def look_up_all(self, keys: Iterable[str]) -> dict[str, Record]:
        """By key, the records with these keys that are there.

        Raises:
            StoreError: the records cannot be read.
            BadRecord: one of them is damaged.
        """
        try:
            return self.records.get_all(keys)
        except DamagedRecord as error:
            raise BadRecord(error.message, hint=error.hint) from error

    def leased(self, key: str, *, old: Record | None = None) -> AbstractAsyncContextManager[None]:
        """The lease of `key`: no other process makes this call meanwhile; where one does, waits for its end.

        `old` is what is on record already; a newer record ends the wait.
        """
        leases = self.leases
        return nullcontext() if leases is None else leases.lease(key, lambda: self._now_held(key) not in (None, old))

    def superseded(self, key: str) -> Record | None:
        """The record that a call will replace, since it is asked again; None where there is none."""
        return self._now_held(key) if self.mode == "refresh" else self._asking_again.get(key)

    def answered_meanwhile(self, key: str, old: Record | None) -> ChatResponse | None:
        """The answer that was recorded while the call waited for its lease; None where there is none.

        An answer of another process counts if it was recorded since this run began.

        Raises:
            BadRecord: what is on record holds no answer.
        """
        if self.mode == "auto" and key not in self._asking_again:
            return self.find(key)
        if self.leases is None:
            return None
        held = self._now_held(key)
        if held is None or (held == old and not (self.mode == "refresh" and self._of_others(held))):
            return None
        if self.mode == "auto":
            self.renewed(key)
        return self._response(key, held.response)

    def _now_held(self, key: str) -> Record | None:
        """The record with this key; None where there is none, or it is damaged."""
        with suppress(DamagedRecord):
            return self.records.get(key)
        return None

    def _of_others(self, record: Record) -> bool:
        """Whether another process has made it since this run began; no record from the future counts."""
        return self._began < record.at <= record_time() and record.key not in self._asked_again

    @property
    def leases(self) -> Leases | None:
        """The leases of the records; None where no other process uses them, or this run does not wait for others."""
        if not self._leases_known:
            records = self.records
            with self._opening:
                if not self._leases_known:
                    self._leases = records.leases() if self.mode in {"auto", "refresh"} else None
                    self._leases_known = True
        return self._leases

    def ask_again(self, key: str) -> bool:
        """Ignores the recorded answer to `key` from now on, once a run; returns whether it will be asked again."""
        return self.mode == "auto" and key not in self._asked_again and self._set_aside(key, self.look_up(key))

    def _set_aside(self, key: str, record: Record | None) -> bool:
        if self.mode != "auto" or key in self._asked_again or (record is not None and self._of_others(record)):
            return False
        self._asking_again[key] = record
        return True

    def miss(self, request: ChatRequest) -> Exception:
        """The error of a miss, which explains what is on record instead."""
        return replay.explain_miss(request.canonical(), request.kind, self.records)

    async def keep(self, request: ChatRequest, response: ChatResponse) -> bool:
        """Records an answer; returns whether it stands in the records."""
        written = await self.write(lambda: self._record(request, response))
        if self.mode == "refresh" or request.key in self._asking_again:
            self.renewed(request.key)
        return written

    def has_left(self, key: str) -> bool:
        """Whether a record with this key was there already and was not replaced."""
        return key in self._left

    def renewed(self, key: str) -> None:
        """Notes that this run has a new answer to `key`, so that it is not asked again."""
        self._asking_again.pop(key, None)
        self._asked_again.add(key)

    async def write(self, make: Callable[[], Record]) -> bool:
        """Whether the record of `make()` has been written, in a thread: another process may hold the store for a while.

        A failure is logged once and raises nothing, since the answer can be used all the same.
        """
        return await self._queue.write(make)

    def write_soon(self, make: Callable[[], Record]) -> None:
        """Like `write`, without waiting for it."""
        self._queue.write_soon(make)

    def flush(self) -> None:
        """Waits until everything is written."""
        self._queue.flush()
        if self._leases is not None:
            self._leases.close()

    def _put_all(self, makers: Sequence[Callable[[], Record]]) -> list[bool]:
        """Writes several records together; for each, whether it is on record now."""
        made = [self._made(make) for make in makers]
        going = [record for record in made if record is not None]
        if len(going) > 1:
            try:
                self.records.put_all(going)
            except Exception:  # noqa: BLE001  # written one by one, the bad one shows
                return [record is not None and self._put(record) for record in made]
            return [record is not None for record in made]
        return [record is not None and self._put(record) for record in made]

    def _made(self, make: Callable[[], Record]) -> Record | None:
        """The record to write; None where it cannot be made or is not to be written."""
        try:
            # Looked up once, since it takes several system calls; a later change shows when a record is written.
            self._writable = self._writable or self.records.writable
            if not self._writable:
                self._warn(f"the store {self.records.name} is read-only")
                return None
            record = make()
            known = (
                self.mode == "live" and record.kind in {"chat", "score"} and self.records.get(record.key) is not None
            )
            if known:
                self._left.add(record.key)
        except Exception as error:  # noqa: BLE001
            self._warn(error)
            return None
        return None if known else record

    def _put(self, record: Record) -> bool:
        try:
            self.records.put(record)
        except Exception as error:  # noqa: BLE001
            self._warn(error)
            return False
        return True

    def _record(self, request: ChatRequest, response: ChatResponse) -> Record:
        # Not `Record.make`: the key is known, and is checked when the record is written.
        return Record(
            kind=request.kind,
            key=request.key,
            request=plain_object(request.canonical()),
            response=plain_object(response.canonical()),
            images=plain_object(sent_images(request)),
            at=record_time(),
        )

    def _warn(self, reason: object) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("Answers are not recorded: %s. The run goes on.", str(reason).rstrip("."))


def sent_images(request: ChatRequest) -> dict[str, JsonObject]:
    """By the key of each picture, or view of one, that was shown: what was sent of it."""
    facts: dict[str, JsonObject] = {}
    for shown in (part.shown for part in request.images):
        try:
            sent = shown.prepare()
        except BadImage:  # the model answered without looking
            continue
        key, source = shown.key, shown.image.sha256
        facts[key] = {
            "sent": sent.sha256,
            "media_type": sent.media_type,
            "width": sent.width,
            "height": sent.height,
            **({} if key == source else {"source": source}),
        }
    return facts


T = TypeVar("T")

TOGETHER = 64
"""Most records that are written at once: other processes wait meanwhile."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A caller that waits until something is written."""

    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[bool]


class WriteQueue(Generic[T]):
    """Writes in a thread, in the order of the calls; items that wait at the same time are written together.

    Args:
        put: writes several; for each, whether it is on the disk. It raises nothing.
    """

    def __init__(self, put: Callable[[Sequence[T]], Sequence[bool]]) -> None:
        self._put = put
        self._queue: deque[tuple[T, _Waiting | None]] = deque()
        self._lock = Lock()
        self._at_work = False
        self._thread: tuple[int, ThreadPoolExecutor] | None = None

    async def write(self, what: T) -> bool:
        """Whether `what` is on the disk now; it is written even if this is cancelled."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(loop, loop.create_future())
        self._add(what, waiting)
        return await waiting.done

    def write_soon(self, what: T) -> None:
        """Like `write`, without waiting for it."""
        self._add(what, None)

    def flush(self) -> None:
        """Waits until everything is written."""
        thread, self._thread = self._thread, None
        if thread is not None and thread[0] == os.getpid():
            thread[1].shutdown()

    def _add(self, what: T, waiting: _Waiting | None) -> None:
        with self._lock:
            executor = self._executor()
            self._queue.append((what, waiting))
            if not self._at_work:
                self._at_work = True
                executor.submit(self._work)

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None or self._thread[0] != os.getpid():
            if self._thread is not None:  # after a fork: the parent writes these
                self._queue.clear()
                self._at_work = False
            self._thread = (os.getpid(), ThreadPoolExecutor(1, thread_name_prefix="askance-records"))
        return self._thread[1]

    def _work(self) -> None:
        while some := self._some():
            written = self._put([what for what, _ in some])
            _acknowledge([(waiting, done) for (_, waiting), done in zip(some, written, strict=True)])

    def _some(self) -> list[tuple[T, _Waiting | None]]:
        with self._lock:
            some = [self._queue.popleft() for _ in range(min(len(self._queue), TOGETHER))]
            self._at_work = bool(some)
            return some


def _acknowledge(written: Sequence[tuple[_Waiting | None, bool]]) -> None:
    """Answers those who wait; wakes each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[bool], bool]]] = defaultdict(list)
    for waiting, done in written:
        if waiting is not None:
            by_loop[waiting.loop].append((waiting.done, done))
    for loop, futures in by_loop.items():
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(_settle, futures)


def _settle(futures: Sequence[tuple[asyncio.Future[bool], bool]]) -> None:
    for future, done in futures:
        if not future.done():
            future.set_result(done)
