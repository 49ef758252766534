"""Translates what vendors' clients raise into askance's own errors.

The clients name their classes alike (`APITimeoutError`, `RateLimitError`, …). So one table by name,
`vendor_errors.yaml`, serves them all, and no vendor's package is imported. The most specific class of an exception
decides; status and message refine it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import TracebackException
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from askance import errors
from askance.amounts import shortened
from askance.documents import read_yaml
from askance.errors import (
    AskanceError,
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
    NotHttp,
    RateLimited,
    Refused,
    ServerFault,
    Truncated,
    UnknownFinish,
    Unreachable,
)
from askance.models.headers import headers_of, limit_headers, retry_after
from askance.models.secrets import Secrets

if TYPE_CHECKING:
    from askance.chat import JsonObject

WORDS_LIMIT = 300
"""Characters of the server's own words that a message quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDetails:
    """What a vendor's exception tells about a call."""

    kind: type[CallError]
    status: int | None = None
    words: str = ""
    """The server's message, or that of the broken connection, on one line."""
    code: str = ""
    param: str = ""
    retry_after: float | None = None


CLASSES: Mapping[str, type[CallError]] = {
    name: getattr(errors, kind)
    for name, kind in read_yaml(Path(__file__).with_name("vendor_errors.yaml"), what="errors").items()
}
"""Error by the name of a vendor's class."""

_GENERIC = {BadRequest, ModelError, Unreachable}
"""Errors that are replaced by what the status stands for."""

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


def error_details(cause: BaseException, *, clear: Callable[[str], str] = str) -> ErrorDetails | None:
    """The details of `cause`; None where neither its class nor its status is known.

    Args:
        cause: what a vendor's client raised.
        clear: takes secrets out of its words, before they are cut.
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
    broke = type(cause.__cause__ or cause).__name__
    if kind is CallTimeout and broke == "ConnectTimeout":
        kind = Unreachable
    if broke == "UnreadableReply":
        kind = NotHttp
    body = _error_object(getattr(cause, "body", None))
    return ErrorDetails(
        kind=kind,
        status=status,
        words=_root(cause, clear) if issubclass(kind, (NotHttp, Unreachable)) else _words(cause, body, clear),
        code=clear(str(body.get("code") or body.get("type") or "")),
        param=clear(str(body.get("param") or "")),
        retry_after=retry_after(headers_of(cause)),
    )


def body_error(body: Mapping[str, Any]) -> ErrorDetails | None:
    """The error in a reply of status 200, as routers send it for a fault of the server behind them."""
    if not body.get("error"):
        return None
    error = _error_object(body)
    code = error.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    words = one_line(str(error.get("message") or ""))
    return ErrorDetails(
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


def specific_kind(details: ErrorDetails, *, images: bool) -> type[CallError]:
    """The most specific error that the server's own words allow."""
    kind, words = details.kind, details.words
    if details.code in {"model_not_found", "DeploymentNotFound"}:
        return ModelNotFound
    if details.code in {"content_filter", "content_policy_violation", "moderation_blocked"}:
        return Filtered
    if details.code in {"insufficient_quota", "billing_hard_limit_reached"}:
        return ModelError
    if images and _NO_IMAGES.search(words):
        return ImagesRejected
    if not issubclass(kind, (BadRequest, ModelNotFound)):
        return kind
    if details.code == "context_length_exceeded" or _TOO_LONG.search(words):
        return ContextExceeded
    if issubclass(kind, ModelNotFound) or details.status == 405:
        return ModelNotFound if _NO_MODEL.search(words) else BadRequest
    return ModelNotFound if _NO_MODEL.search(words) and not details.param else kind


def one_line(text: str, *, limit: int = WORDS_LIMIT) -> str:
    """One line of `text` for a message: blanks folded, control characters escaped, cut to `limit` characters."""
    line = " ".join(text.split())
    line = "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in line[: limit + 1])
    return shortened(line, limit)


def status_of(cause: BaseException) -> int | None:
    """The HTTP status in a vendor's exception, wherever it keeps it."""
    response = getattr(cause, "response", None)
    places = (getattr(cause, "status_code", None), getattr(response, "status_code", None), getattr(cause, "code", None))
    # A generic status of 0 or -1 stands for none.
    return next((place for place in places if isinstance(place, int) and 400 <= place < 600), None)


def _redirected(cause: BaseException, clear: Callable[[str], str]) -> ErrorDetails | None:
    """The details of a redirect, which is not followed; None where `cause` is not one."""
    status: object = getattr(getattr(cause, "response", None), "status_code", None)
    if not isinstance(status, int) or not 300 <= status < 400:
        return None
    target = clear(headers_of(cause).get("location", ""))
    return ErrorDetails(
        kind=BadRequest, status=status, words=f"it redirects to {one_line(target)!r}, which is not followed"
    )


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
    message: object = error.get("message") or error.get("detail")
    if isinstance(message, list):
        message = "; ".join(map(_item, cast("list[Any]", message)))
    if not message:
        body: object = getattr(cause, "body", None)
        message = body if isinstance(body, str) else "" if body is not None else str(cause)
    text = clear(str(message)).strip()
    return "" if text.startswith("<") else one_line(text)


def _item(item: Any) -> str:
    """One of several complaints about a request, as FastAPI lists them."""
    return str(cast("JsonObject", item).get("msg", item)) if isinstance(item, dict) else str(item)


def _root(cause: BaseException, clear: Callable[[str], str]) -> str:
    """What broke the connection, from the innermost exception that says it."""
    words, link = "", cause
    while link is not None:
        if isinstance(link, ConnectionError) and link.errno:
            return os.strerror(link.errno)
        words = (link.strerror if isinstance(link, OSError) else None) or str(link) or words
        link = link.__cause__ or link.__context__
    return one_line(clear(words)).rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext:
    """What a message says about the call that failed."""

    where: str
    """The endpoint's address or name, without a key."""
    model: str
    images: bool = False
    """Whether the request holds pictures."""
    key_variable: str | None = None
    """Name of the variable that the key is read from; None where no key is sent."""
    secrets: Secrets = field(default_factory=Secrets)
    """Keys and secret headers, which no message repeats."""

    @property
    def local(self) -> bool:
        """Whether the endpoint is on this machine."""
        return urlsplit(self.where).hostname in {"localhost", "127.0.0.1", "::1", "0.0.0.0"}


MESSAGES: dict[type[CallError], tuple[str, str | None]] = {
    AuthError: ("{where} does not accept the key.", "Check the key in {key_variable}."),
    BadRequest: ("{where} rejects the request{status}{reason}", None),
    CallTimeout: ("{where} gave no answer in time.", "Raise the time limit, or ask less at once."),
    ContextExceeded: (
        "The request is longer than the model {model!r} can read{reason}",
        "Shorten the prompt or the options, lower the token limit, or serve the model with a longer context.",
    ),
    Filtered: ("A content filter of {where} stopped the call{reason}", None),
    ImagesRejected: ("The model {model!r} takes no images.", "Choose a vision-language model for --vlm."),
    MalformedReply: ("{where} sent a reply that cannot be read{reason}", "Check the server, and any proxy before it."),
    ModelError: ("{where} gives no answer{status}{reason}", None),
    ModelNotFound: ("{where} does not know the model {model!r}.", "Check the model's name."),
    NotHttp: (
        "{where} sent a reply that cannot be read{reason}",
        "Check the address, the server, and any proxy before it.",
    ),
    RateLimited: ("{where} asks to slow down{reason}", "Ask less at once, or wait."),
    Refused: ("The model {model!r} declined to answer{reason}", None),
    ServerFault: ("{where} failed{status}{reason}", "Try again later; the server's log may say more."),
    Truncated: ("{where} cut the answer off at the token limit.", "Raise the token limit."),
    UnknownFinish: ("{where} sent a reply that may not be whole{reason}", "Check the server, and any proxy before it."),
    Unreachable: ("{where} cannot be reached{reason}", "Check the address, the network and any proxy."),
}
"""For each kind of error, its message and its hint."""


@contextmanager
def translated_errors(context: ErrorContext) -> Generator[None]:
    """Raises what a vendor raises inside as a `CallError`, with the cause chained; anything unknown passes through.

    Raises:
        CallError: what the vendor's exception stands for.
    """
    try:
        yield
    except AskanceError:
        raise
    except Exception as cause:
        details = error_details(cause, clear=context.secrets.cleared)
        if details is None:
            raise
        error = error_of(details, context)
        error.headers = context.secrets.cleared(limit_headers(headers_of(cause)))
        if not isinstance(error, AuthError) and not shows(cause, context.secrets, frames=False):
            raise error from cause
        # A server may repeat the key that it rejects, so its words are not chained.
        try:
            raise error from None
        finally:
            error.__context__ = None


def error_of(details: ErrorDetails, context: ErrorContext) -> CallError:
    """The error that `details` describe, with a message and a hint for a person."""
    kind = specific_kind(details, images=context.images)
    sentence, hint = MESSAGES[kind]
    hint = _special_hint(kind, details, context) or hint
    words = {
        "where": context.where,
        "model": context.model,
        "key_variable": context.key_variable,
        "status": f" (status {details.status})" if details.status else "",
        "reason": _reason(details.words),
    }
    if kind is AuthError and context.key_variable is None:
        sentence = "{where} asks for a key."
    message, way_out = sentence.format(**words), hint and hint.format(**words)
    if not issubclass(kind, ModelError):
        return kind(message, hint=way_out)
    return kind(message, hint=way_out, status=details.status, retry_after=details.retry_after)


def _special_hint(kind: type[CallError], details: ErrorDetails, context: ErrorContext) -> str | None:
    """A hint for the case at hand, instead of the usual one; None where there is none."""
    if kind is Unreachable and context.local:
        return "Start the server, or check the address."
    if kind is AuthError and context.key_variable is None:
        return "Name the environment variable that holds it as `key_variable` in the model's settings."
    if kind is BadRequest and details.status in range(300, 400):
        return "Give the address itself: requests and keys are sent to no other."
    if kind is BadRequest and details.status in {404, 405}:
        return "Check the address: that of most servers ends in /v1."
    if kind is ModelError and details.status == 429:
        return "Add credit, or choose another model."
    return None


def _reason(words: str) -> str:
    """The server's own words as the end of a sentence."""
    if not words:
        return "."
    return f": {words}" if words.endswith((".", "!", "?", "…")) else f": {words}."


def public_address(address: str) -> str:
    """`address` without a user, a password and a query."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def shows(cause: BaseException, secrets: Secrets, *, frames: bool) -> bool:
    """Whether `cause`, or an exception that it is chained to, holds a secret.

    Args:
        cause: what was raised.
        secrets: what is looked for.
        frames: look at the variables of its frames as well.
    """
    if not secrets:
        return False
    try:
        texts = [text for link in _links(cause) for text in _texts_in(link)]
        if frames:
            texts += TracebackException.from_exception(cause, capture_locals=True).format()
    except Exception:  # noqa: BLE001  # what cannot be searched is not shown
        return True
    return any(map(secrets.are_in, texts))


def _links(cause: BaseException) -> list[BaseException]:
    """`cause` and all exceptions that it came from."""
    links: list[BaseException] = []
    pending: list[BaseException | None] = [cause]
    while pending:
        link = pending.pop()
        if link is not None and not any(link is known for known in links):
            links.append(link)
            pending += [link.__cause__, link.__context__]
    return links


def _texts_in(link: BaseException) -> Iterator[str]:
    """What an exception says and holds, with the reply that it stands for."""
    yield from (str(link), repr(link), repr(vars(link)))
    yield from headers_of(link).values()
    yield str(getattr(getattr(link, "response", None), "text", ""))
