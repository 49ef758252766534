"""What a vendor's exception says about a call: its kind, its status and the server's own words.

The vendors' clients name their classes alike (`APITimeoutError`, `RateLimitError`, …), so one table by name serves them
all and imports none. Of the names in an exception's ancestry the most specific one decides; status and words refine it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from askance.errors import (
    AuthError,
    BadRequest,
    CallError,
    CallTimeout,
    ContextExceeded,
    Filtered,
    ImagesRejected,
    MalformedReply,
    ModelError,
    ModelNotFound,
    RateLimited,
    Refused,
    ServerFault,
    Truncated,
    Unreachable,
)
from askance.models.pacing.moments import http_date, seconds_until

if TYPE_CHECKING:
    from askance.chat import JsonObject

WORDS_LIMIT = 300
"""Characters of the server's own words that a message quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What a vendor's exception says about a call."""

    kind: type[CallError]
    status: int | None = None
    words: str = ""
    """The server's own, or those of what broke the connection; one clean line."""
    code: str = ""
    param: str = ""
    retry_after: float | None = None


CLASSES: dict[str, type[CallError]] = {
    # openai, anthropic, groq and the other clients made the same way; langchain-openai's are subclasses of these
    "APIError": ModelError,
    "APIStatusError": BadRequest,
    "APIConnectionError": Unreachable,
    "APITimeoutError": CallTimeout,
    "APIResponseValidationError": MalformedReply,
    "AuthenticationError": AuthError,
    "BadRequestError": BadRequest,
    "ConflictError": ServerFault,
    "ContentFilterFinishReasonError": Filtered,
    "InternalServerError": ServerFault,
    "LengthFinishReasonError": Truncated,
    "NotFoundError": ModelNotFound,
    "OAuthError": AuthError,
    "OpenAIError": ModelError,
    "OpenAIRefusalError": Refused,
    "OverloadedError": ServerFault,
    "PermissionDeniedError": AuthError,
    "RateLimitError": RateLimited,
    "RequestTooLargeError": BadRequest,
    "ServiceUnavailableError": ServerFault,
    "SubjectTokenProviderError": AuthError,
    "UnprocessableEntityError": BadRequest,
    "WebSocketConnectionClosedError": Unreachable,
    "WebSocketQueueFullError": Unreachable,
    # langchain_core
    "ContextOverflowError": ContextExceeded,
    "ModelAPIError": ServerFault,
    "ModelAuthenticationError": AuthError,
    "ModelConnectionError": Unreachable,
    "ModelInvalidRequestError": BadRequest,
    "ModelNotFoundError": ModelNotFound,
    "ModelPermissionDeniedError": AuthError,
    "ModelRateLimitError": RateLimited,
    "ModelTimeoutError": CallTimeout,
    "OutputParserException": MalformedReply,
    # httpx, httpx2, requests, aiohttp, botocore
    "ClientConnectionError": Unreachable,
    "ClientConnectorError": Unreachable,
    "ConnectTimeout": CallTimeout,
    "ConnectionClosedError": Unreachable,
    "DecodingError": MalformedReply,
    "EndpointConnectionError": Unreachable,
    "HTTPError": Unreachable,
    "ReadTimeoutError": CallTimeout,
    "RequestError": Unreachable,
    "RequestException": Unreachable,
    "ServerTimeoutError": CallTimeout,
    "ThrottlingException": RateLimited,
    "TimeoutException": CallTimeout,
    # google.api_core and google.genai
    "DeadlineExceeded": CallTimeout,
    "InvalidArgument": BadRequest,
    "NotFound": ModelNotFound,
    "PermissionDenied": AuthError,
    "ResourceExhausted": RateLimited,
    "ServerError": ServerFault,
    "ServiceUnavailable": ServerFault,
    "Unauthenticated": AuthError,
    # Python's own
    "ConnectionError": Unreachable,
    "JSONDecodeError": MalformedReply,
    "SSLError": Unreachable,
    "TimeoutError": CallTimeout,
}
"""Error by the name of a vendor's class."""

_GENERIC = {BadRequest, ModelError, Unreachable}
"""Kinds that a status tells better than the class does."""

_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|maximum model length|prompt is too long|input is too long"
    r"|too many (input )?tokens|input tokens exceed|input token count.*exceeds"
    r"|exceeds? the (maximum|available) (number of tokens|context)",
    re.IGNORECASE,
)
_NO_IMAGES = re.compile(
    r"not a multimodal model|at most 0 image|image input is not supported|image_url is only supported"
    r"|unknown variant `?image_url|missing data required for image input|no endpoints found that support image"
    r"|(does not|doesn't|do not|cannot|can't) (support|accept|take|process)"
    r".{0,30}\b(images?\b(?! (format|type|size))|vision|multi-?modal)"
    r"|\b(images?|vision|multi-?modal).{0,30}(not |n't |un)supported (by|for|in|with) (this|the) (model|deployment)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"\bmodel\b.{0,200}\b(does not exist|doesn't exist|not found|not exist|is not available)"
    r"|unknown model|no such model",
    re.IGNORECASE,
)


def read(cause: BaseException, *, clear: Callable[[str], str] = str) -> Complaint | None:
    """What `cause` says, or None where neither its class nor a status tells.

    Args:
        cause: what a vendor's client raised.
        clear: takes out of its words what may not be repeated, before they are cut.
    """
    if (elsewhere := _redirected(cause, clear)) is not None:
        return elsewhere
    status = status_of(cause)
    named = next((CLASSES[kind.__name__] for kind in type(cause).__mro__ if kind.__name__ in CLASSES), None)
    if named is None and status is None:
        return None
    kind = named or ModelError
    if status is not None and kind in _GENERIC:
        kind = kind_of_status(status)
    if kind is CallTimeout and type(cause.__cause__ or cause).__name__ == "ConnectTimeout":
        kind = Unreachable
    body = _error_object(getattr(cause, "body", None))
    return Complaint(
        kind=kind,
        status=status,
        words=_root(cause, clear) if issubclass(kind, Unreachable) else _words(cause, body, clear),
        code=clear(str(body.get("code") or body.get("type") or "")),
        param=clear(str(body.get("param") or "")),
        retry_after=retry_after(headers_of(cause)),
    )


def read_body(body: Mapping[str, Any]) -> Complaint | None:
    """What a reply of status 200 complains about, as routers send it for a fault of the server behind them."""
    if not body.get("error"):
        return None
    error = _error_object(body)
    code = error.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    words = clean(str(error.get("message") or ""))
    return Complaint(
        kind=kind_of_status(status) if status else MalformedReply, status=status, words=words, code=str(code)
    )


def kind_of_status(status: int) -> type[ModelError]:
    """The error that an HTTP status stands for when nothing else is known."""
    if status in {401, 403}:
        return AuthError
    if status == 404:
        return ModelNotFound
    if status == 429:
        return RateLimited
    return ServerFault if status in {408, 409, 425} or status >= 500 else BadRequest


def refined(complaint: Complaint, *, images: bool) -> type[CallError]:
    """The most specific error that the server's own words allow."""
    kind, words = complaint.kind, complaint.words
    if complaint.code in {"model_not_found", "DeploymentNotFound"}:
        return ModelNotFound
    if complaint.code in {"content_filter", "content_policy_violation", "moderation_blocked"}:
        return Filtered
    if complaint.code in {"insufficient_quota", "billing_hard_limit_reached"}:
        return ModelError
    if images and _NO_IMAGES.search(words):
        return ImagesRejected
    if not issubclass(kind, (BadRequest, ModelNotFound)):
        return kind
    if complaint.code == "context_length_exceeded" or _TOO_LONG.search(words):
        return ContextExceeded
    if issubclass(kind, ModelNotFound) or complaint.status == 405:
        return ModelNotFound if _NO_MODEL.search(words) else BadRequest
    return ModelNotFound if _NO_MODEL.search(words) and not complaint.param else kind


def clean(text: str, *, limit: int = WORDS_LIMIT) -> str:
    """One line of `text` for a message: blanks folded, control characters escaped, cut to `limit` characters."""
    line = " ".join(text.split())
    line = "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in line[: limit + 1])
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def status_of(cause: BaseException) -> int | None:
    """The HTTP status in a vendor's exception, wherever it keeps it."""
    response = getattr(cause, "response", None)
    places = (getattr(cause, "status_code", None), getattr(response, "status_code", None), getattr(cause, "code", None))
    # A generic status of 0 or -1 stands for none.
    return next((place for place in places if isinstance(place, int) and 400 <= place < 600), None)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers of a reply ask to wait, from `retry-after-ms` or either form of `retry-after`."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    return seconds_until(http_date(headers.get("retry-after")), headers)


def _redirected(cause: BaseException, clear: Callable[[str], str]) -> Complaint | None:
    """What an endpoint says that sends the request on to another address, which nobody follows."""
    status: object = getattr(getattr(cause, "response", None), "status_code", None)
    if not isinstance(status, int) or not 300 <= status < 400:
        return None
    target = clear(headers_of(cause).get("location", ""))
    return Complaint(
        kind=BadRequest, status=status, words=f"it sends us on to {clean(target)!r}, which is not followed"
    )


def headers_of(cause: BaseException) -> Mapping[str, str]:
    """The headers of the reply in a vendor's exception, names in lower case; empty where there is none."""
    headers: Any = getattr(getattr(cause, "response", None), "headers", None)
    return {str(name).lower(): str(value) for name, value in headers.items()} if hasattr(headers, "items") else {}


def _error_object(body: object) -> Mapping[str, Any]:
    """The part of an error reply that describes the error, in any of its usual shapes."""
    if not isinstance(body, Mapping):
        return {}
    form = cast("Mapping[str, Any]", body)
    inner = form.get("error")
    if isinstance(inner, Mapping):
        return cast("Mapping[str, Any]", inner)
    return {"message": inner} if isinstance(inner, str) else form


def _words(cause: BaseException, error: Mapping[str, Any], clear: Callable[[str], str]) -> str:
    """The server's own words, without HTML."""
    said: object = error.get("message") or error.get("detail")
    if isinstance(said, list):
        said = "; ".join(map(_item, cast("list[Any]", said)))
    if not said:
        body: object = getattr(cause, "body", None)
        said = body if isinstance(body, str) else "" if body is not None else str(cause)
    text = clear(str(said)).strip()
    return "" if text.startswith("<") else clean(text)


def _item(item: Any) -> str:
    """One of several complaints about a request, as FastAPI lists them."""
    return str(cast("JsonObject", item).get("msg", item)) if isinstance(item, dict) else str(item)


def _root(cause: BaseException, clear: Callable[[str], str]) -> str:
    """What broke the connection, from the innermost exception that says it."""
    said, link = "", cause
    while link is not None:
        if isinstance(link, ConnectionError) and link.errno:
            return os.strerror(link.errno)
        said = (link.strerror if isinstance(link, OSError) else None) or str(link) or said
        link = link.__cause__ or link.__context__
    return clean(clear(said)).rstrip(".")
