"""The result of a node: an answer, or a named outcome with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast

from askance.amounts import shortened
from askance.chat import CallMeta, Outcome, Usage
from askance.errors import CallError, Filtered, InvalidOutput, ModelError, Refused, Skipped, Truncated, UserCodeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.chat import Try
    from askance.errors import AskanceError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_ERRORS: Mapping[Outcome, type[CallError]] = {
    "invalid": InvalidOutput,
    "refused": Refused,
    "filtered": Filtered,
    "truncated": Truncated,
    "failed": ModelError,
    "skipped": Skipped,
}

Rung = Literal["schema", "declared", "whole", "extracted"]
"""Which rung of the ladder read an answer: a schema that was sent, a declared answer, a short whole reply, or a call
that extracted it."""

_SHOWN = 2000
"""Characters of a value that a notebook shows."""


class Unreadable(Exception):
    """A reply that a parser cannot read; the model is told the message when it is asked again."""

    def __init__(self, message: str = "", *, reply: str | None = None) -> None:
        super().__init__(message)
        self.reply = reply
        """What could not be read, where the ladder gave up on it: another rung may ask about it."""


class Read(NamedTuple, Generic[T]):
    """A value that was read in a reply."""

    value: T
    rung: Rung | None = None
    """Which rung of the ladder read it; None for a reply that is no choice, such as a description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One recorded (or recordable) request that a node made."""

    key: str
    """Key of the record that holds request and answer."""
    model: str
    kind: str = "chat"
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    """US dollars at the configured price, or else the list price; None for a recorded answer or an unknown price."""
    meta: CallMeta = field(default_factory=CallMeta, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A call that was tried and ended without an answer."""

    key: str
    """Key of its request; nothing is on record."""
    tries: tuple[Try, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[T_co]):
    """The outcome of a node for one input; `value` is there exactly when the outcome is `answered`."""

    outcome: Outcome
    value: T_co | None = None
    reason: str | None = None
    """Why there is no answer, in words for a person."""
    error: str | None = None
    """Name of the error's class, where a call failed."""
    raw: str | None = None
    """What the model wrote, where it could not be used."""
    calls: tuple[Call, ...] = field(default=(), repr=False)
    failure: Failure | None = field(default=None, compare=False, repr=False)
    """The call that ended this without an answer, where it was tried."""
    output_mode: str | None = None
    """Output form that was asked for: `json_schema`, `json_object`, `prompted` or `paper`."""
    rung: Rung | None = None
    """Which rung of the ladder read the answer; None where there is none, and for a plain text."""
    given: bool = False
    """Whether the caller gave the value, so that no model was asked."""
    absent: bool = False
    """For `skipped`: there was nothing to ask, and the links that depend on this one go on without it."""
    trace: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """How the answer came about, as JSON; empty where one question was asked."""

    @property
    def answered(self) -> bool:
        """Whether there is a value."""
        return self.outcome == "answered"

    def _repr_html_(self) -> str:
        from html import escape  # for notebooks alone: replays do without its tables

        text = str(self.value) if self.answered else self.reason or ""
        shown = shortened(text, _SHOWN)
        return f"<p><code>{escape(self.outcome)}</code> <bdi>{escape(shown)}</bdi></p>"

    def unwrap(self) -> T_co:
        """The value.

        Raises:
            CallError: of the class that `error` names, else of the one that stands for the outcome, where there is
                none.
        """
        if self.outcome == "answered":
            return self.value  # pyright: ignore[reportReturnType]  # answered means that a value is there
        kind = _call_errors().get(self.error or "", _ERRORS[self.outcome])
        error = kind(self.reason or f"no answer: {self.outcome}", raw=self.raw)
        if self.failure is not None:
            error.key, error.tries = self.failure.key, self.failure.tries
        raise error


def _call_errors() -> Mapping[str, type[CallError]]:
    """By name, the package's own classes of `CallError`."""
    found: dict[str, type[CallError]] = {}
    waiting = [CallError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("askance."):
            found[kind.__name__] = kind
    return found


def given(value: T_co) -> Result[T_co]:
    """A result that the caller gives, as if a node had answered it."""
    return Result(outcome="answered", value=value, given=True)


def no_answer(error: AskanceError, *, calls: Sequence[Call] = (), output_mode: str | None = None) -> Result[Any]:
    """The result for an error, with the tries of the call that it ended."""
    ended = error if isinstance(error, CallError) else None
    cause = error.__cause__ if isinstance(error, UserCodeError) else None
    return Result(
        outcome="failed" if ended is None else cast("Outcome", ended.outcome),
        reason=str(error),
        error=type(cause or error).__name__,
        raw=ended and ended.raw,
        calls=tuple(calls),
        failure=ended and _failure(ended),
        output_mode=output_mode,
    )


def _failure(error: CallError) -> Failure | None:
    if error.key is None or not error.tries:
        return None
    return Failure(key=error.key, tries=cast("tuple[Try, ...]", error.tries))


def skipped(reason: str, *, absent: bool = False) -> Result[Any]:
    """A result for which no model was asked."""
    return Result(outcome="skipped", reason=reason, absent=absent)
