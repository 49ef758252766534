"""The scope of calls: what holds for all requests that are made inside a `with` block.

Between a chain and its calls stand a user's own Runnables, which pass no arguments on. So the scope is a context
variable. Whatever else belongs to one call is passed along with it; see `call.py`.
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
    """The call is not on record yet. What needs it has no result, and is run again later."""


class MissPolicy(Protocol):
    """What is done with calls that are not on record, instead of making them: a plan counts them, a batch queues them.

    The chain and its nodes do not know the policy. For them such a call ended without an answer, and links that do not
    need the answer go on.
    """

    reports_hits: bool
    """Whether observers get events of answers on record; a later pass of a batch meets the same ones again."""

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:
        """Notes a call that is not on record, and gives the error that stands for it.

        It may run on any loop. After `Pending` the call is requested again later; any other error is its outcome.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """What holds for the requests that are made inside the scope."""

    draw: int = 0
    """Draw of requests that are made without one."""
    keys: list[str] | None = None
    """A list that takes the keys of requests; None collects none."""
    on_miss: MissPolicy | None = None
    """What is done with calls that are not on record; None makes them."""


_NO_SCOPE = CallScope()
_scope: ContextVar[CallScope] = ContextVar("scope", default=_NO_SCOPE)


def current_scope() -> CallScope:
    """The scope of the current task."""
    return _scope.get()


@contextmanager
def _within(inner: CallScope) -> Generator[None]:
    token = _scope.set(inner)
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def use_draw(index: int) -> Generator[None]:
    """Gives every request inside the block the draw `index`. Equal requests of two draws have an answer on record each.

    ```python
    with use_draw(2):
        chain("ad.png")
    ```
    """
    with _within(replace(current_scope(), draw=index)):
        yield


@contextmanager
def collect_keys() -> Generator[list[str]]:
    """Gives a list that takes the keys of the requests made inside the block, in their order."""
    keys: list[str] = []
    with _within(replace(current_scope(), keys=keys)):
        yield keys


@contextmanager
def on_miss(policy: MissPolicy) -> Generator[None]:
    """Makes no call inside the block: `policy` is given those that are not on record."""
    with _within(replace(current_scope(), on_miss=policy)):
        yield
