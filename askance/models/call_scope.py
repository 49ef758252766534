"""The scope of a call: what holds for every request that is made within a stretch of code.

A user's own Runnables stand between a chain and its calls and hand no arguments on. So the scope is a context variable;
whatever else belongs to one call is passed along with it (see `call.py`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from askance.errors import CallError

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.models.settings import ModelSettings


class Pending(CallError):
    """The call is not on record yet. What needed it has no result, and is done again later."""


class MissPolicy(Protocol):
    """What becomes of calls that are not on record and are not made: a plan counts them, a batch queues them.

    The chain and its nodes do not know of it. To them such a call has ended without an answer, and links that do not
    need it go on.
    """

    reports_hits: bool
    """Whether observers are told of answers on record; a later round of a batch finds the same ones again."""

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:
        """Notes a call that is not on record, and gives the error that stands for it.

        It may run on any loop. After `Pending` the call is met again later; any other error is its outcome.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What holds for the requests that are made within it."""

    draw: int = 0
    """Index of the draw of requests that are not given one."""
    keys: list[str] | None = None
    """Collects the keys of requests; None does not."""
    on_miss: MissPolicy | None = None
    """What becomes of calls that are not on record; None makes them."""


_NO_SCOPE = Scope()
_scope: ContextVar[Scope] = ContextVar("scope", default=_NO_SCOPE)


def scope() -> Scope:
    """The scope of the current task."""
    return _scope.get()


@contextmanager
def _within(inner: Scope) -> Generator[None]:
    token = _scope.set(inner)
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def use_draw(index: int) -> Generator[None]:
    """Within it every request is of the draw `index`: equal requests of two draws have two answers, each on record.

    ```python
    with use_draw(2):
        chain("ad.png")
    ```
    """
    with _within(replace(scope(), draw=index)):
        yield


@contextmanager
def collect_keys() -> Generator[list[str]]:
    """Gives a list that fills with the keys of the requests made within it, in their order."""
    keys: list[str] = []
    with _within(replace(scope(), keys=keys)):
        yield keys


@contextmanager
def on_miss(policy: MissPolicy) -> Generator[None]:
    """Within it no call is made: `policy` says what becomes of those that are not on record."""
    with _within(replace(scope(), on_miss=policy)):
        yield
