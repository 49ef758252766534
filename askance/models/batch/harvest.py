"""What a batch brought, from its files into the records; what it left is named, call by call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from askance.errors import BadRequest, CallError, MalformedReply, StoreError
from askance.models.batch.answers import Answer, answer_of, call_of, cancelled, expired, missing
from askance.models.batch.jobs import Ending, amount_in
from askance.models.budget import NOTHING, Cost, may_be_billed
from askance.models.vendor_errors import ErrorDetails
from askance.replay import Record

if TYPE_CHECKING:
    from askance.chat import ChatResponse, Usage
    from askance.models.openai.batch_api import Batch
    from askance.models.vendor_errors import ErrorContext

LARGEST_LINE = 50 * 2**20
"""Bytes of a line of an output or error file."""


@dataclass
class Harvest:
    """The calls of one part, and what became of each.

    Args:
        calls: the file that lists them.
        asked: for messages.
        api: how their answers are read.
        put: takes each answer; what it raises ends the harvest.
        learn: told of complaints; whether the call is to be asked in another form.
        cost: what an answered call has cost; None where the endpoint did not count.
    """

    calls: Path
    asked: ErrorContext
    api: Literal["chat", "responses"]
    put: Callable[[Record, Usage], None]
    learn: Callable[[ErrorDetails], bool]
    cost: Callable[[Usage], Cost | None]
    spent: Cost = NOTHING
    """What the calls have cost, as far as they were held to a budget: those that may be billed, at their worst."""
    answered: set[str] = field(default_factory=set[str])
    failed: dict[str, Answer] = field(default_factory=dict[str, Answer])
    """Calls that came back with an error, by key."""
    unknown: int = 0
    """Lines that are about no call of the part, or cannot be read."""

    def __post_init__(self) -> None:
        self._places = {key: place for place, key in _keys(self.calls)}

    @property
    def lines(self) -> int:
        """Calls that the files had a word about."""
        return len(self.answered) + len(self.failed)

    def take(self, file: Path) -> None:
        """Reads an output or error file; calls may come in any order, twice, or not at all.

        Raises:
            StoreError: an answer cannot be recorded.
        """
        with file.open("rb") as lines, self.calls.open("rb") as calls:
            for data in _lines(lines):
                try:
                    key, line = call_of(data)
                except MalformedReply:
                    self.unknown += 1
                    continue
                if key not in self._places:
                    self.unknown += 1
                elif key not in self.answered:
                    calls.seek(self._places[key])
                    self._take(key, line, json.loads(calls.readline()))

    def _take(self, key: str, line: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        answer = answer_of(line, replace(self.asked, images=bool(call["images"])), api=self.api)
        if answer.response is None:
            self.failed[key] = answer
            return
        record = _record(call, answer.response)
        if record is None:
            error = MalformedReply(f"{self.asked.where} sent an answer that cannot be kept.")
            self.failed[key] = Answer(error=error, details=ErrorDetails(kind=MalformedReply, words=error.message))
            return
        self.put(record, answer.response.usage)
        self.spent += self.cost(answer.response.usage) or _worst(call)
        self.answered.add(key)
        self.failed.pop(key, None)

    def endings(self, batch: Batch) -> list[Ending]:
        """What became of the calls without an answer, those of one fate together."""
        left = [key for key in self._places if key not in self.answered]
        silent = _silent(batch, self.asked)
        fates: dict[Ending, list[str]] = {}
        for key in left:
            answer = self.failed.get(key)
            error = silent if answer is None or answer.error is None else answer.error
            if (answer is None and isinstance(error, MalformedReply)) or _may_be_billed(answer):
                self.spent += self._worst(key)
            again = error.retryable or (
                answer is not None and answer.details is not None and self.learn(answer.details)
            )
            fates.setdefault(ending_of(error, again=again), []).append(key)
        return [replace(fate, keys=tuple(keys)) for fate, keys in fates.items()]

    def _worst(self, key: str) -> Cost:
        with self.calls.open("rb") as calls:
            calls.seek(self._places[key])
            return _worst(json.loads(calls.readline()))

    def rejected(self, batch: Batch) -> list[Ending]:
        """What becomes of the calls of a batch that was not begun: those complained about fail, or else all."""
        lines = {line: words for _, words, line in batch.complaints if line is not None}
        words = next((words for _, words, _ in batch.complaints if words), f"it is {batch.status}")
        error = _error(self.asked, words)
        # Lines are counted from 1.
        named = {key: lines[place] for place, key in enumerate(self._places, start=1) if place in lines}
        if not named:
            return [replace(ending_of(error, again=False), keys=tuple(self._places))]
        others = tuple(key for key in self._places if key not in named)
        bad = [replace(ending_of(_error(self.asked, words), again=False), keys=(key,)) for key, words in named.items()]
        return [*bad, replace(ending_of(error, again=True), keys=others)] if others else bad

    def postponed(self, *, counts: bool) -> list[Ending]:
        """All calls of a batch that the endpoint has no room for; they are sent again."""
        error = _error(self.asked, "too much is waiting there already")
        return [replace(ending_of(error, again=True), keys=tuple(self._places), counts=counts)]


def ending_of(error: CallError, *, again: bool) -> Ending:
    """`error` as it is written down."""
    return Ending(error=type(error).__name__, message=error.message, hint=error.hint, again=again)


def _error(asked: ErrorContext, words: str) -> CallError:
    return BadRequest(
        f"{asked.where} did not begin the batch: {words.rstrip('.')}.",
        hint="Mend what it names, or ask without `--batch`.",
    )


def _silent(batch: Batch, asked: ErrorContext) -> CallError:
    """The error of a call that the batch's files say nothing about."""
    by_status = {"cancelled": cancelled, "expired": expired}
    return by_status.get(batch.status, missing)(asked)


def _worst(call: Mapping[str, Any]) -> Cost:
    """The most that a call can cost; nothing where there was no budget."""
    return amount_in(call.get("worst")) or NOTHING


def _may_be_billed(answer: Answer | None) -> bool:
    """Whether a call that came back with an error was made, and may cost something."""
    return answer is not None and answer.details is not None and may_be_billed(answer.error or CallError(""))


def _record(call: Mapping[str, Any], response: ChatResponse) -> Record | None:
    """The record of an answer; None where it holds what cannot be recorded."""
    try:
        record = Record.make("chat", call["request"], response.canonical(), images=call["images"])
    except (StoreError, TypeError, ValueError):
        return None
    return record if record.key == call["key"] else None


def _keys(calls: Path) -> Iterator[tuple[int, str]]:
    """Place and key of every call of a part."""
    with calls.open("rb") as lines:
        place = 0
        for line in lines:
            yield place, json.loads(line)["key"]
            place += len(line)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stranger's file; of one that is too long, its beginning, which is no JSON."""
    while line := file.readline(LARGEST_LINE):
        rest = line
        while not rest.endswith(b"\n") and (rest := file.readline(LARGEST_LINE)):
            line = line[:200]
        if line.strip():
            yield line
