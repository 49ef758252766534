"""The results of a batch: its output and error files as records, and as failures of the calls without an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from askance.chat import ChatResponse
from askance.errors import BadRequest, CallError, Filtered, MalformedReply, ModelError, ServerFault, StoreError
from askance.models.batch.batch_job import CallFailure, cost_in
from askance.models.budget import may_be_billed
from askance.models.openai.dialect import from_body
from askance.models.replies import clean_text, mapping, parse_reply, part_of
from askance.models.vendor_errors import ErrorDetails, body_error, error_details, error_of, one_line
from askance.replay import NOTHING, Cost, Record

if TYPE_CHECKING:
    from askance.chat import Usage
    from askance.models.openai.batch_api import Batch
    from askance.models.openai.dialect import Api
    from askance.models.vendor_errors import ErrorContext

LARGEST_LINE = 50 * 2**20
"""Bytes of a line of an output or error file."""


# --- one line of a file ---

_ASK_AGAIN = "The same command asks again."


@dataclass(frozen=True, slots=True)
class LineResult:
    """A response, or an error with the details that it was read from."""

    response: ChatResponse | None = None
    error: CallError | None = None
    details: ErrorDetails | None = None


class _Rejected(Exception):
    """A call that was answered with another status than 200, as a client would raise it."""

    def __init__(self, status: int, body: object) -> None:
        super().__init__()
        self.status_code = status
        self.body = body


def call_of(data: bytes) -> tuple[str, Mapping[str, Any]]:
    """The key of the call that a line is about, and the line.

    Raises:
        MalformedReply: it is not such a line.
    """
    line = mapping(parse_reply(data), "line")
    return clean_text(line.get("custom_id")), line


def line_result(line: Mapping[str, Any], context: ErrorContext, *, api: Api) -> LineResult:
    """The response or error in a line; it is the one that the same call would have had online."""
    try:
        return _line_result(line, context, api)
    except MalformedReply as error:
        details = ErrorDetails(kind=type(error), words=error.message)
        return LineResult(error=error_of(details, context), details=details)
    except Filtered:
        return LineResult(ChatResponse(finish="content_filter"))


def _line_result(line: Mapping[str, Any], context: ErrorContext, api: Api) -> LineResult:
    response = line.get("response")
    if not response:
        return LineResult(error=_not_made(line.get("error"), context))
    status, body = part_of(response, "status_code"), part_of(response, "body")
    if isinstance(status, int) and status >= 400:
        details = error_details(_Rejected(status, body))
    else:
        details = body_error(mapping(body, "body"))
    if details is None:
        reply = mapping(body, "body")
        return LineResult(from_body(reply, api=api))
    error = error_of(details, context)
    if isinstance(error, Filtered):
        raise error
    return LineResult(error=error, details=details)


def _not_made(error: object, context: ErrorContext) -> CallError:
    """The error of a call that the batch did not make."""
    code, words = clean_text(part_of(error, "code")), one_line(clean_text(part_of(error, "message")))
    if code in {"batch_cancelled", "batch_expired"}:
        return _unanswered(code.removeprefix("batch_"), context)
    reason = f": {words.rstrip('.')}." if words else "."
    return ServerFault(f"{context.where} did not make the call{reason}", hint=_ASK_AGAIN)


def _unanswered(status: str, context: ErrorContext) -> CallError:
    """The error of a call that a batch of this `status` ended without."""
    if status == "cancelled":  # somebody wanted that, so the call is not sent again unasked
        return ModelError(f"The batch was cancelled at {context.where} before it came to this call.", hint=_ASK_AGAIN)
    if status == "expired":
        return ServerFault(f"{context.where} did not come to the call within the batch's 24 hours.", hint=_ASK_AGAIN)
    return MalformedReply(f"{context.where} ended the batch without a word about this call.", hint=_ASK_AGAIN)


# --- the files of one part ---


@dataclass
class PartResults:
    """The calls of one part, and the result of each.

    Args:
        calls: the file that lists them.
        context: names the endpoint and the model in errors.
        api: how their answers are read.
        put: records each answer; an error that it raises ends the reading.
        learn: takes the details of an error; returns whether the call is to be asked in another form.
        cost: what an answered call has cost; None where the endpoint did not count.
    """

    calls: Path
    context: ErrorContext
    api: Api
    put: Callable[[Record, Usage], None]
    learn: Callable[[ErrorDetails], bool]
    cost: Callable[[Usage], Cost | None]
    spent: Cost = NOTHING
    """What the calls have cost, as far as they were held to a budget: those that may be billed, at their worst."""
    answered: set[str] = field(default_factory=set[str])
    failed: dict[str, LineResult] = field(default_factory=dict[str, LineResult])
    """Calls that came back with an error, by key."""
    unknown: int = 0
    """Lines that are about no call of the part, or cannot be read."""

    def __post_init__(self) -> None:
        self._places = {key: place for place, key in _keys(self.calls)}

    @property
    def lines(self) -> int:
        """How many calls the files have a line about."""
        return len(self.answered) + len(self.failed)

    def read(self, file: Path) -> None:
        """Reads an output or error file; calls may come in any order, twice, or not at all.

        Raises:
            StoreError: an answer cannot be recorded.
        """
        with file.open("rb") as lines, self.calls.open("rb") as calls:
            for data in _reply_lines(lines):
                try:
                    key, line = call_of(data)
                except MalformedReply:
                    self.unknown += 1
                    continue
                if key not in self._places:
                    self.unknown += 1
                elif key not in self.answered:
                    calls.seek(self._places[key])
                    self._read(key, line, json.loads(calls.readline()))

    def _read(self, key: str, line: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        result = line_result(line, replace(self.context, images=bool(call["images"])), api=self.api)
        if result.response is None:
            self.failed[key] = result
            return
        record = _record(call, result.response)
        if record is None:
            error = MalformedReply(f"{self.context.where} sent an answer that cannot be kept.")
            self.failed[key] = LineResult(error=error, details=ErrorDetails(kind=MalformedReply, words=error.message))
            return
        self.put(record, result.response.usage)
        self.spent += self.cost(result.response.usage) or _worst(call)
        self.answered.add(key)
        self.failed.pop(key, None)

    def failures(self, batch: Batch) -> list[CallFailure]:
        """Why the calls without an answer failed; calls that failed alike stand in one entry."""
        left = [key for key in self._places if key not in self.answered]
        failures: dict[CallFailure, list[str]] = {}
        for key in left:
            result = self.failed.get(key)
            error = _unanswered(batch.status, self.context) if result is None or result.error is None else result.error
            if (result is None and isinstance(error, MalformedReply)) or _may_be_billed(result):
                self.spent += self._worst(key)
            details = None if result is None else result.details
            again = error.retryable or (details is not None and self.learn(details))
            failures.setdefault(failure_of(error, again=again), []).append(key)
        return [replace(failure, keys=tuple(keys)) for failure, keys in failures.items()]

    def _worst(self, key: str) -> Cost:
        with self.calls.open("rb") as calls:
            calls.seek(self._places[key])
            return _worst(json.loads(calls.readline()))

    def rejected(self, batch: Batch) -> list[CallFailure]:
        """The failures of a batch that was not begun: of the calls that its errors name, or else of all."""
        lines = {line: words for _, words, line in batch.complaints if line is not None}
        words = next((words for _, words, _ in batch.complaints if words), f"it is {batch.status}")
        error = _error(self.context, words)
        # Lines are counted from 1.
        named = {key: lines[place] for place, key in enumerate(self._places, start=1) if place in lines}
        if not named:
            return [replace(failure_of(error, again=False), keys=tuple(self._places))]
        others = tuple(key for key in self._places if key not in named)
        bad = [
            replace(failure_of(_error(self.context, words), again=False), keys=(key,)) for key, words in named.items()
        ]
        return [*bad, replace(failure_of(error, again=True), keys=others)] if others else bad

    def postponed(self, *, counts: bool) -> list[CallFailure]:
        """The failures of a batch that the endpoint has no room for: all of its calls are sent again."""
        error = _error(self.context, "too much is waiting there already")
        return [replace(failure_of(error, again=True), keys=tuple(self._places), counts=counts)]


def failure_of(error: CallError, *, again: bool) -> CallFailure:
    """`error` as the journal holds it."""
    return CallFailure(error=type(error).__name__, message=error.message, hint=error.hint, again=again)


def _error(context: ErrorContext, words: str) -> CallError:
    return BadRequest(
        f"{context.where} did not begin the batch: {words.rstrip('.')}.",
        hint="Correct what it names, or leave out `--batch`.",
    )


def _worst(call: Mapping[str, Any]) -> Cost:
    """The most that a call can cost; nothing where there was no budget."""
    return cost_in(call.get("worst")) or NOTHING


def _may_be_billed(result: LineResult | None) -> bool:
    """Whether a call that came back with an error was made, and may cost something."""
    return result is not None and result.details is not None and may_be_billed(result.error or CallError(""))


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


def _reply_lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file; of a line that is too long only the beginning, which is not JSON."""
    while line := file.readline(LARGEST_LINE):
        rest = line
        while not rest.endswith(b"\n") and (rest := file.readline(LARGEST_LINE)):
            line = line[:200]
        if line.strip():
            yield line
