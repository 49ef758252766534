"""The lines of a batch's output and error file, as answers and errors. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from askance.chat import ChatResponse
from askance.errors import CallError, Filtered, MalformedReply, ModelError, ServerFault
from askance.models.openai.chat import from_chat
from askance.models.openai.responses import from_responses
from askance.models.replies import clean_text, mapping, part_of
from askance.models.vendor_errors import ErrorDetails, body_error, error_details, error_of, one_line

if TYPE_CHECKING:
    from askance.models.vendor_errors import ErrorContext

MOST_VALUES = 1_000_000
"""Values in a JSON text: a few bytes of it can make a hundred of memory."""

CANCELLED = "batch_cancelled"
EXPIRED = "batch_expired"

AGAIN = "The same command asks again."


@dataclass(frozen=True, slots=True)
class Answer:
    """What a line says of its call: a response, or an error with the details that it was read from."""

    response: ChatResponse | None = None
    error: CallError | None = None
    details: ErrorDetails | None = None


class _Rejected(Exception):
    """A call that was answered with another status than 200, as a client would raise it."""

    def __init__(self, status: int, body: object) -> None:
        super().__init__()
        self.status_code = status
        self.body = body


def parsed(data: bytes) -> object:
    """The JSON value in `data`.

    Raises:
        MalformedReply: it holds none, or one of too many values.
    """
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise MalformedReply(f"It holds more than {MOST_VALUES} values.")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        start = one_line(data[:160].decode("utf-8", "replace"), limit=40)
        raise MalformedReply(f"It is no JSON text: {start!r}." if data else "It is empty.") from error


def call_of(data: bytes) -> tuple[str, Mapping[str, Any]]:
    """The call that a line is about, by the name that it was given, and the line.

    Raises:
        MalformedReply: it is no such line.
    """
    line = mapping(parsed(data), "line")
    return clean_text(line.get("custom_id")), line


def answer_of(line: Mapping[str, Any], asked: ErrorContext, *, api: Literal["chat", "responses"]) -> Answer:
    """What a line says of its call: the very response or error that the same call would have had online."""
    try:
        return _answer(line, asked, api)
    except MalformedReply as error:
        details = ErrorDetails(kind=type(error), words=error.message)
        return Answer(error=error_of(details, asked), details=details)
    except Filtered:
        return Answer(ChatResponse(finish="content_filter"))


def _answer(line: Mapping[str, Any], asked: ErrorContext, api: Literal["chat", "responses"]) -> Answer:
    response = line.get("response")
    if not response:
        return Answer(error=_undone(line.get("error"), asked))
    status, body = part_of(response, "status_code"), part_of(response, "body")
    if isinstance(status, int) and status >= 400:
        details = error_details(_Rejected(status, body))
    else:
        details = body_error(mapping(body, "body"))
    if details is None:
        found = mapping(body, "body")
        return Answer(from_responses(found) if api == "responses" else from_chat(found))
    error = error_of(details, asked)
    if isinstance(error, Filtered):
        raise error
    return Answer(error=error, details=details)


def _undone(error: object, asked: ErrorContext) -> CallError:
    """The error of a call that the batch did not make."""
    code, words = clean_text(part_of(error, "code")), one_line(clean_text(part_of(error, "message")))
    if code == CANCELLED:
        return cancelled(asked)
    if code == EXPIRED:
        return expired(asked)
    said = f": {words.rstrip('.')}." if words else "."
    return ServerFault(f"{asked.where} did not make the call{said}", hint=AGAIN)


def cancelled(asked: ErrorContext) -> CallError:
    """The error of what a cancelled batch did not come to; it was someone's will, so it is not sent again unasked."""
    return ModelError(f"The batch was cancelled at {asked.where} before it came to this call.", hint=AGAIN)


def expired(asked: ErrorContext) -> CallError:
    """The error of what an expired batch did not come to."""
    return ServerFault(f"{asked.where} did not come to the call within the batch's 24 hours.", hint=AGAIN)


def missing(asked: ErrorContext) -> CallError:
    """The error of a call that a batch ended without a word about."""
    return MalformedReply(f"{asked.where} ended the batch without a word about this call.", hint=AGAIN)
