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

A thread of its own writes records; those that wait at the same time are written together. Where the records lie behind
a network, another one reads them so, and no event loop waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from askance import replay
from askance.chat import CallMeta, ChatResponse, Outcome
from askance.errors import BadImage, BadRecord, DamagedRecord
from askance.replay import DAMAGED_HINT, Mode, Record
from askance.replay.block_queue import BlockQueue
from askance.replay.record import BLOCK, plain_object, record_time

if TYPE_CHECKING:
    from askance.chat import ChatRequest, JsonObject
    from askance.replay import Leases, Records

T = TypeVar("T")

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
        self._first: dict[str, Record] = {}
        """By key: another answer that was on record when this run's was to be written."""
        self._left: set[str] = set()
        """Keys of records that `live` found and did not replace."""
        self._warned = False
        self._opening = Lock()
        self._writes = BlockQueue(self._write_block, name="askance-records")
        self._fetches = BlockQueue(self._fetch_block, name="askance-look-up", most=BLOCK)
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

    async def afind(self, key: str, canonical_text: str) -> ChatResponse | None:
        """Like `find`; where reading waits for a network, look-ups that wait at the same time are one."""
        if not self.records.remote:
            return self.find(key, canonical_text)
        if not self._reads or key in self._asking_again:
            return None
        near = self.records.near(key, canonical_text)
        if near is None:
            if not await self._fetches.do(key):
                return None
            near = self.records.near(key, canonical_text)
        if near is None or self._retry:  # damaged, or to be looked at as a whole
            return await self.off_loop(lambda: self.find(key))
        return self._response(key, near)

    async def off_loop(self, read: Callable[[], T]) -> T:
        """The result of `read()`, which reads records: in a thread where that waits for a network."""
        return await asyncio.to_thread(read) if self.records.remote else read()

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
        return None if record is None else self._usable(record)

    def _usable(self, record: Record) -> ChatResponse | None:
        """The answer in a record; None where it is asked again."""
        response = self._response(record.key, record.response)
        if self._retry and response.outcome in self._retry and self._set_aside(record.key, record):
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

    def _fetch_block(self, keys: Sequence[str]) -> list[bool]:
        """For each key whether it is on record; what is, can be read without waiting from now on."""
        there = self.records.fetch(keys)
        return [key in there for key in keys]

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

    async def keep(self, request: ChatRequest, response: ChatResponse) -> ChatResponse:
        """Records an answer and gives it, with `stored` saying whether it stands in the records.

        Where another process has recorded one first, as it may if this one was stopped for longer than a lease lasts,
        that answer is given: all runs use one.
        """
        written = await self.write(lambda: self._record(request, response))
        if self.mode == "refresh" or request.key in self._asking_again:
            self.renewed(request.key)
        first = self._first.pop(request.key, None)
        if first is not None:
            with suppress(BadRecord):
                response = replace(self._response(request.key, first.response), meta=response.meta)
        return replace(response, meta=replace(response.meta, stored=written))

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
        return await self._writes.do(make)

    def write_soon(self, make: Callable[[], Record]) -> None:
        """Like `write`, without waiting for it."""
        self._writes.do_soon(make)

    def flush(self) -> None:
        """Waits until everything is written."""
        self._writes.flush()
        self._fetches.flush()
        if self._leases is not None:
            self._leases.close()

    def _write_block(self, makers: Sequence[Callable[[], Record]]) -> list[bool]:
        """Writes several records together; for each, whether it is on record now."""
        made = [self._made(make) for make in makers]
        going = [record for record in made if record is not None]
        if len(going) > 1:
            try:
                self._keep_all(going)
            except Exception:  # noqa: BLE001  # written one by one, the bad one shows
                return [self._kept(record) for record in made]
            return [record is not None and record.key not in self._left for record in made]
        return [self._kept(record) for record in made]

    def _made(self, make: Callable[[], Record]) -> Record | None:
        """The record to write; None where it cannot be made."""
        try:
            # Looked up once, since it takes several system calls; a later change shows when a record is written.
            self._writable = self._writable or self.records.writable
            if not self._writable:
                self._warn(f"the store {self.records.name} is read-only")
                return None
            return make()
        except Exception as error:  # noqa: BLE001
            self._warn(error)
            return None

    def _kept(self, record: Record | None) -> bool:
        if record is None:
            return False
        try:
            self._keep_all([record])
        except Exception as error:  # noqa: BLE001
            self._warn(error)
            return False
        return record.key not in self._left

    def _keep_all(self, records: Sequence[Record]) -> None:
        """Writes records: an answer that is on record by now stays, unless this run is to replace it."""
        new = {record.key: record for record in records}
        replacing = [record for record in records if self._replaces(record)]
        adding = [record for record in records if not self._replaces(record)]
        if replacing:
            self.records.put_all(replacing)
        there = self.records.add_all(adding) if adding else {}
        if self.mode == "live":
            self._left.update(there)
        else:
            others = {key for key, record in there.items() if record.response != new[key].response}
            self._first |= {key: there[key] for key in others if new[key].kind == "chat"}

    def _replaces(self, record: Record) -> bool:
        """Whether this run is to replace what is on record: an answer that it asks again, or facts of its own."""
        return self.mode == "refresh" or record.key in self._asking_again or record.kind not in {"chat", "score"}

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
