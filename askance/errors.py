"""Every error that askance raises, as one tree.

```
AskanceError
├── UsageError                what was asked for cannot be done: mend the call, the file or the setting
│   ├── ConfigError           a model name, a spec or a settings file
│   ├── PromptError           a prompt file, its variables or its name
│   │   └── PromptTooLong     the values of one sample make a prompt too long (outcome `failed`)
│   ├── BadImage              a picture that cannot be used
│   ├── BadOptions            the options to choose from
│   ├── BadData               the folder or a file of a data set
│   └── MissingExtra          an optional package is not installed
├── StoreError                the record store cannot be opened, read or written
│   ├── CassetteError         a cassette line that is no record
│   └── DamagedRecord         one record that cannot be read; the others can
├── ReplayMiss                replay was asked for and the answer is not on record
└── CallError                 one call ended without an answer
    ├── ModelError            the call itself failed (outcome `failed`)
    │   ├── Unreachable       no connection, or it broke
    │   ├── CallTimeout       no answer within the time limit
    │   ├── AuthError         no key, or a wrong one
    │   ├── ModelNotFound     the endpoint does not know the model
    │   ├── RateLimited       the endpoint asks to slow down
    │   ├── ServerFault       the endpoint failed (5xx)
    │   ├── OutOfMemory       the machine has not the memory for one call alone
    │   ├── NoLogprobs        the endpoint gives no log-probabilities, and the answer is made of them
    │   ├── MalformedReply    a reply of the wrong shape
    │   │   ├── NotHttp           what answers sends no HTTP, or a head beyond all limits
    │   │   └── UnknownFinish     it ended for a reason that nobody here knows
    │   └── BadRequest        the endpoint rejects the request
    │       ├── ContextExceeded   longer than the model can read
    │       └── ImagesRejected    the model takes no images
    ├── BadRecord             what is on record for the call cannot be read (outcome `failed`)
    ├── UserCodeError         a function or a solver of the user's own raised an error (outcome `failed`)
    ├── Refused               the model declined (outcome `refused`)
    ├── Filtered              a content filter stopped it (outcome `filtered`)
    ├── Truncated             cut off at the token limit (outcome `truncated`)
    ├── InvalidOutput         a reply that cannot be read as what was asked (outcome `invalid`)
    └── Skipped               a link that it needs has no answer (outcome `skipped`)
        ├── OverBudget        the budget has less left than the call may cost
        └── OverLimit         a limit of the caller has less left than the call may take
```

A `UsageError` is for the caller to correct, a `StoreError` is a matter of the machine, and a `CallError` is the outcome
of one sample and never stops the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
"""The memory address of an object in a message of another package: it means nothing and differs from run to run."""


class AskanceError(Exception):
    """The root of all errors; `message` says what is wrong, `hint` what to do, and `str(error)` is both."""

    retryable: ClassVar[bool] = False
    """Whether the same call may succeed when it is repeated."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = _ADDRESS.sub("", message)
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is rebuilt from its message alone, without the other arguments of its class.
        return _rebuild, (type(self), self.args), self.__dict__


class UsageError(AskanceError):
    """What was asked for cannot be done: correct the call, the file or the setting."""


class ConfigError(UsageError):
    """A model name, a spec or a settings file that cannot be used."""


class PromptError(UsageError):
    """A prompt file, one of its variables, or its name."""


class PromptTooLong(PromptError):
    """The values of one sample, which a model may have written, make a prompt longer than any may be."""


class BadImage(UsageError):
    """A picture that cannot be used; the message names the file and the reason."""


class BadOptions(UsageError):
    """Options that cannot be chosen from: none, one, or repeated."""


class BadData(UsageError):
    """A data set's folder or file that cannot be used; the message has file, place and what was expected."""


class MissingExtra(UsageError):
    """An optional package is not installed; the hint says which extra brings it."""


def optional_library(
    name: str, extra: str = "", *, lacking: str = "{} is not installed.", hint: str | None = None
) -> Any:
    """An optional library, or a module of one.

    Args:
        name: of the module.
        extra: of askance, which brings it.
        lacking: what is said where it is not installed; `{}` stands for the library.
        hint: what is said to do then, if it is more than to install the extra.

    Raises:
        MissingExtra: it is not installed.
    """
    library = name.partition(".")[0]
    try:
        import_module(library)
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(lacking.format(library), hint=hint or f"pip install 'askance[{extra}]'") from error


class StoreError(AskanceError):
    """The record store cannot be opened, read or written."""


class CassetteError(StoreError):
    """A cassette line that is no record; the message has file and line number."""


class DamagedRecord(StoreError):
    """One record that cannot be read, or is not what it claims to be; the others can be read."""


class ReplayMiss(AskanceError):
    """Replay was asked for and the answer is not on record."""

    def __init__(
        self, message: str, *, key: str, nearest: str | None = None, diff: str = "", hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.key = key
        self.nearest = nearest
        """Key of the nearest recorded request, if the store holds any of that kind."""
        self.diff = diff
        """Unified diff from the nearest recorded request to this one, first difference only."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.diff}" if self.diff else super().__str__()


class CallError(AskanceError):
    """One call ended without an answer."""

    outcome: ClassVar[str] = "failed"
    """The outcome that this error stands for; one of `askance.chat.OUTCOMES`."""

    def __init__(self, message: str, *, hint: str | None = None, raw: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.raw = raw
        """What the model wrote, where it wrote anything."""
        self.key: str | None = None
        """Key of the request, where an attempt was made."""
        self.tries: tuple[object, ...] = ()
        """The attempts at the call, each an `askance.chat.Try`, where any was made."""
        self.headers: Mapping[str, str] = {}
        """The rate-limit headers of the reply, and its `date`; empty where there was no readable reply."""


class ModelError(CallError):
    """The call itself failed."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        raw: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, raw=raw)
        self.status = status
        """HTTP status, where there was one."""
        self.retry_after = retry_after
        """Seconds that the endpoint asks to wait, where it said so."""


class Unreachable(ModelError):
    """No connection to the endpoint, or it broke."""

    retryable = True


class CallTimeout(ModelError):
    """No answer within the time limit."""

    retryable = True


class AuthError(ModelError):
    """No key, or one that the endpoint does not accept."""


class ModelNotFound(ModelError):
    """The endpoint does not know the model."""


class RateLimited(ModelError):
    """The endpoint asks to slow down (429)."""

    retryable = True


class ServerFault(ModelError):
    """The endpoint failed (408, 409, 425, 5xx)."""

    retryable = True


class OutOfMemory(ModelError):
    """The machine that runs the model lacks the memory for a single call; the message says what it needs."""


class NoLogprobs(ModelError):
    """The endpoint gives no log-probabilities, and the answer is made of them."""


class MalformedReply(ModelError):
    """A reply that is cut off, not JSON, or of the wrong shape."""

    retryable = True


class NotHttp(MalformedReply):
    """What answers sends no HTTP, or a head beyond all limits."""


class UnknownFinish(MalformedReply):
    """A reply with an unknown finish reason, so that nobody can tell whether it is complete."""

    retryable = False


class BadRequest(ModelError):
    """The endpoint rejects the request (4xx)."""


class ContextExceeded(BadRequest):
    """The request is longer than the model can read."""


class ImagesRejected(BadRequest):
    """The model takes no images and was given one."""


class BadRecord(CallError):
    """What is on record for the call cannot be read, so that it ends without an answer."""


class UserCodeError(CallError):
    """A function or a solver of the user's own raised an error that is none of these; that one is its cause."""


class Refused(CallError):
    """The model declined to answer."""

    outcome = "refused"


class Filtered(CallError):
    """A content filter stopped the answer."""

    outcome = "filtered"


class Truncated(CallError):
    """The answer was cut off at the token limit."""

    outcome = "truncated"


class InvalidOutput(CallError):
    """A reply that cannot be read as what was asked; `raw` keeps the text."""

    outcome = "invalid"


class Skipped(CallError):
    """A link that this one needs has no answer; the message says which."""

    outcome = "skipped"


class OverBudget(Skipped):
    """The budget has less left than the call may cost, so it was not made."""


class OverLimit(Skipped):
    """A limit that its caller set has less left than the call may take, so it was not made."""


@contextmanager
def boundary(
    becomes: Callable[[str], AskanceError], *, passes: type[AskanceError] | tuple[()] = AskanceError
) -> Generator[None]:
    """Runs code that is not this package's: whatever that raises becomes one of the errors above.

    Args:
        becomes: makes the error, of the words `ValueError: what it said`.
        passes: errors that go through as they are.
    """
    try:
        yield
    except passes:
        raise
    except Exception as error:
        raise becomes(f"{type(error).__name__}: {error}") from error


FATAL: Mapping[str, type[ModelError]] = {
    kind.__name__: kind for kind in (AuthError, ImagesRejected, ModelNotFound, NoLogprobs, NotHttp, Unreachable)
}
"""Errors, by name, that every further call of a model would raise too; a run stops if its first picture raises one."""


def _rebuild(kind: type[AskanceError], args: tuple[object, ...]) -> AskanceError:
    """An error of `kind` whose attributes are set afterwards."""
    return kind.__new__(kind, *args)
