"""The scope of calls: what holds for all requests that are made inside a `with` block.

Between a chain and its calls stand a user's own Runnables, which pass no arguments on. So the scope is a context
variable. Whatever else belongs to one call is passed along with it; see `call.py`.

A scope has observers, which hear of every request before it is looked up and may refuse it; those of outer blocks hear
of it too. It has a policy for calls that are not on record. And it has the draw, which is no observer's: it is part of
a request, and of its key, from the moment that the request is made.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from askance.amounts import many
from askance.errors import CallError, OverLimit, UsageError

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


class RequestObserver:
    """Hears of every request of its scope before it is looked up; a subclass overrides what it wants to hear."""

    def asked(self, request: ChatRequest) -> None:
        """A chat model is asked, or a text weighed by it. What this raises refuses the request."""

    def answered_by(self, request: ChatRequest, key: str) -> None:
        """`request` was answered by the record `key`, which is not its own."""

    def looked_up(self, keys: Iterable[str]) -> None:
        """Vectors, scores or searches are wanted, which have these keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """What holds for the requests that are made inside the scope."""

    draw: int = 0
    """Draw of requests that are made without one."""
    observers: tuple[RequestObserver, ...] = ()
    """Hear of requests: first those that may refuse, the innermost block's before others; then collectors of keys."""
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
def observe(observer: RequestObserver) -> Generator[None]:
    """Has `observer` hear of every request inside the block, before the observers of the blocks around it."""
    scope = current_scope()
    with _within(replace(scope, observers=(observer, *scope.observers))):
        yield


@dataclass(frozen=True, slots=True)
class _KeyCollector(RequestObserver):
    keys: list[str] = field(default_factory=list[str])

    @override
    def asked(self, request: ChatRequest) -> None:
        self.keys.append(request.key)

    @override
    def answered_by(self, request: ChatRequest, key: str) -> None:
        self.keys[self.keys.index(request.key)] = key

    @override
    def looked_up(self, keys: Iterable[str]) -> None:
        self.keys.extend(keys)


@contextmanager
def collect_keys() -> Generator[list[str]]:
    """Gives a list that takes the keys of the requests made inside the block, in their order.

    A block around this one that collects keys gets them too. A request that was refused has none.
    """
    scope, collector = current_scope(), _KeyCollector()
    with _within(replace(scope, observers=(*scope.observers, collector))):
        yield collector.keys


@contextmanager
def withhold_keys() -> Generator[None]:
    """Keeps the keys of requests inside the block from `collect_keys` around it: a record holds what they came to."""
    scope = current_scope()
    others = tuple(each for each in scope.observers if not isinstance(each, _KeyCollector))
    with _within(replace(scope, observers=others)):
        yield


class CallLimit(RequestObserver):
    """Counts the requests to chat models, and refuses those beyond a limit.

    Raises:
        UsageError: the limit is below 0.
    """

    def __init__(self, most: int) -> None:
        if most < 0:
            raise UsageError(f"A limit of calls cannot be {most}.", hint="Give 0 or more.")
        self.most = most
        self.made = 0
        """Requests that were let through, those that were on record included."""
        self._lock = Lock()

    @property
    def left(self) -> int:
        """Requests that will still be let through."""
        return self.most - self.made

    @override
    def asked(self, request: ChatRequest) -> None:
        """Lets the request through, or refuses it.

        Raises:
            OverLimit: the limit is reached.
        """
        with self._lock:
            if not self.left:
                raise OverLimit(
                    f"The limit of {many(self.most, 'call')} is reached, so this one was not made.",
                    hint="Raise the limit.",
                )
            self.made += 1


@contextmanager
def limit_calls(most: int) -> Generator[CallLimit]:
    """Lets at most `most` requests to chat models through inside the block; the next ends as `OverLimit`.

    Answers on record count as well, so that a replay ends where the run did. Vectors, scores and searches do not.

    ```python
    with limit_calls(8) as calls:
        chain("ad.png")
    print(calls.left)
    ```

    Raises:
        UsageError: `most` is below 0.
    """
    limit = CallLimit(most)
    with observe(limit):
        yield limit


@contextmanager
def on_miss(policy: MissPolicy) -> Generator[None]:
    """Makes no call inside the block: `policy` is given those that are not on record."""
    with _within(replace(current_scope(), on_miss=policy)):
        yield
