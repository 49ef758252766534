"""What vendors raise, as askance's own errors: translated once, at the boundary."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

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
    RateLimited,
    Refused,
    ServerFault,
    Truncated,
    UnknownFinish,
    Unreachable,
)
from askance.models.complaints import Complaint, headers_of, read, refined
from askance.models.pacing.allowance import limit_headers
from askance.models.secrets import Secrets, shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who was asked for what: all that a message needs."""

    where: str
    """The endpoint as a person knows it; never with a key in it."""
    model: str
    images: bool = False
    """Whether the request holds pictures."""
    key_variable: str | None = None
    """Name of the variable that the key is read from; None where no key is sent."""
    secrets: Secrets = field(default_factory=Secrets)
    """What is sent to be let in, and stands in no message."""

    @property
    def local(self) -> bool:
        """Whether the endpoint is on this machine."""
        return urlsplit(self.where).hostname in {"localhost", "127.0.0.1", "::1", "0.0.0.0"}


MESSAGES: dict[type[CallError], tuple[str, str | None]] = {
    AuthError: ("{where} does not accept the key.", "Check the key in {key_variable}."),
    BadRequest: ("{where} rejects the request{status}{said}", None),
    CallTimeout: ("{where} gave no answer in time.", "Raise the time limit, or ask less at once."),
    ContextExceeded: (
        "The request is longer than the model {model!r} can read{said}",
        "Shorten the prompt or the options, lower the token limit, or serve the model with a longer context.",
    ),
    Filtered: ("A content filter of {where} stopped the call{said}", None),
    ImagesRejected: ("The model {model!r} takes no images.", "Choose a vision-language model for --vlm."),
    MalformedReply: ("{where} sent a reply that cannot be read{said}", None),
    ModelError: ("{where} gives no answer{status}{said}", None),
    ModelNotFound: ("{where} does not know the model {model!r}.", "Check the model's name."),
    RateLimited: ("{where} asks to slow down{said}", "Ask less at once, or wait."),
    Refused: ("The model {model!r} declined to answer{said}", None),
    ServerFault: ("{where} failed{status}{said}", "Try again later; the server's log may say more."),
    Truncated: ("{where} cut the answer off at the token limit.", "Raise the token limit."),
    UnknownFinish: ("{where} sent a reply of which nobody can tell whether it is whole{said}", None),
    Unreachable: ("{where} cannot be reached{said}", "Check the address, the network and any proxy."),
}
"""A sentence and the way out for each kind of error."""


@contextmanager
def translated(asked: Asked) -> Generator[None]:
    """Turns what a vendor raises inside into a `CallError`, with the cause chained; anything unknown passes through.

    Raises:
        CallError: what the vendor's exception stands for.
    """
    try:
        yield
    except AskanceError:
        raise
    except Exception as cause:
        complaint = read(cause, clear=asked.secrets.cleared)
        if complaint is None:
            raise
        error = error_of(complaint, asked)
        error.headers = asked.secrets.cleared(limit_headers(headers_of(cause)))
        if not isinstance(error, AuthError) and not shows(cause, asked.secrets, frames=False):
            raise error from cause
        # A server may repeat the key that it rejects: its words go no further.
        try:
            raise error from None
        finally:
            error.__context__ = None


def error_of(complaint: Complaint, asked: Asked) -> CallError:
    """The error that `complaint` stands for, with a message for a person and the way out."""
    kind = refined(complaint, images=asked.images)
    sentence, hint = MESSAGES[kind]
    hint = _special_hint(kind, complaint, asked) or hint
    words = {
        "where": asked.where,
        "model": asked.model,
        "key_variable": asked.key_variable,
        "status": f" (status {complaint.status})" if complaint.status else "",
        "said": _said(complaint.words),
    }
    if kind is AuthError and asked.key_variable is None:
        sentence = "{where} asks for a key."
    message, way_out = sentence.format(**words), hint and hint.format(**words)
    if not issubclass(kind, ModelError):
        return kind(message, hint=way_out)
    return kind(message, hint=way_out, status=complaint.status, retry_after=complaint.retry_after)


def _special_hint(kind: type[CallError], complaint: Complaint, asked: Asked) -> str | None:
    """A better way out than the usual one, where the circumstances tell it."""
    if kind is Unreachable and asked.local:
        return "Start the server, or check the address."
    if kind is AuthError and asked.key_variable is None:
        return "Name the environment variable that holds it as `key_variable` in the model's settings."
    if kind is BadRequest and complaint.status in range(300, 400):
        return "Give the address itself: requests and keys are sent to no other."
    if kind is BadRequest and complaint.status in {404, 405}:
        return "Check the address: that of most servers ends in /v1."
    if kind is ModelError and complaint.status == 429:
        return "Add credit, or choose another model."
    return None


def _said(words: str) -> str:
    """The server's own words as the end of a sentence."""
    if not words:
        return "."
    return f": {words}" if words.endswith((".", "!", "?", "…")) else f": {words}."


def shown(address: str) -> str:
    """An address without the user, the password and the query that may be in it."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
