"""The scope of calls: what holds for all requests that are made inside a `with` block.

Between a chain and its calls stand a user's own Runnables, which pass no arguments on. So the scope is a context
variable. Whatever else belongs to one call is passed along with it; see `call.py`.

A scope has observers, which hear of every request before it is looked up and may refuse it, and which hear how it
ended; those of outer blocks hear of it too. It may have a tracer, which also hears of the work around the requests:
runs, samples, chains, links, tools. It has a policy for calls that are not on record. And it has the draw, which is no
observer's: it is part of a request, and of its key, from the moment that the request is made.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from typing_extensions import override

from askance.errors import CallError, OverLimit, Skipped
from askance.models.budget import check_price, cost_of, may_be_billed, worst_of
from askance.models.prices import price_of
from askance.replay import NOTHING, Budget, Cost

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse
    from askance.models.settings import ModelSettings, Price


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

    def asked(self, request: ChatRequest, settings: ModelSettings) -> None:
        """The chat model of `settings` is asked, or weighs a text. What this raises refuses the request."""

    def received(self, request: ChatRequest, settings: ModelSettings, response: ChatResponse) -> None:
        """A request that was let through is answered, from the records or by the endpoint."""

    def failed(self, request: ChatRequest, settings: ModelSettings, error: BaseException) -> None:
        """A request that was let through ended without an answer."""

    def answered_by(self, request: ChatRequest, key: str) -> None:
        """`request` was answered by the record `key`, which is not its own."""

    def looked_up(self, keys: Iterable[str]) -> None:
        """Vectors, scores or searches are wanted, which have these keys."""


WorkKind: TypeAlias = Literal["run", "sample", "chain", "link", "tool"]
"""What stands around requests, from the outside to the inside."""

Facts: TypeAlias = Mapping[str, "str | int | None"]
"""What is known of a piece of work, by name."""


class Tracer(RequestObserver):
    """Hears of the work around requests as well, each piece as it begins and as it ends."""

    @abstractmethod
    def span(self, kind: WorkKind, name: str, facts: Facts) -> AbstractContextManager[Callable[..., object]]:
        """The context of a piece of work; what is known at its end is given to what the context gives, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """What holds for the requests that are made inside the scope."""

    draw: int = 0
    """Draw of requests that are made without one."""
    observers: tuple[RequestObserver, ...] = ()
    """Hear of requests: first those that may refuse, the innermost block's before others; then collectors of keys."""
    on_miss: MissPolicy | None = None
    """What is done with calls that are not on record; None makes them."""
    tracer: Tracer | None = None
    """One of the observers, if it hears of the work around requests, too."""


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


@contextmanager
def use_tracer(tracer: Tracer) -> Generator[None]:
    """Has `tracer` hear of everything inside the block, in the place of the tracer of a block around it."""
    scope = current_scope()
    others = tuple(each for each in scope.observers if each is not scope.tracer)
    with _within(replace(scope, observers=(tracer, *others), tracer=tracer)):
        yield


def _ended(**_: object) -> None:
    """What nobody hears of."""


_UNTRACED: AbstractContextManager[Callable[..., object]] = nullcontext(_ended)


def span(kind: WorkKind, name: str, **facts: str | int | None) -> AbstractContextManager[Callable[..., object]]:
    """A context in which a piece of work is done that the tracer hears of, if there is one.

    ```python
    with span("link", "narration") as ended:
        result = await ask()
        ended(outcome=result.outcome)
    ```

    Args:
        kind: what it is.
        name: what it is called.
        facts: what is known of it beforehand.
    """
    tracer = current_scope().tracer
    return _UNTRACED if tracer is None else tracer.span(kind, name, facts)


@dataclass(frozen=True, slots=True)
class _KeyCollector(RequestObserver):
    keys: list[str] = field(default_factory=list[str])

    @override
    def asked(self, request: ChatRequest, settings: ModelSettings) -> None:
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


class BudgetLimit(RequestObserver):
    """Holds the requests to chat models within a budget, and refuses those that may not fit.

    The worst case of a request is reserved when it is asked, and replaced by what it took when it ends: an answer takes
    what its usage says, on record or not, or its worst case where the endpoint did not count. Tries that failed before
    an answer are not on record, so they count for the budget of the run alone (`Engine.budget`).

    Requests under way at once stand at their worst case. So where tokens or dollars are limited, ask one after another
    if a replay is to end where the run did.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spent = NOTHING
        """What the requests that have ended took; a request that failed counts as a call."""
        self._reserved = NOTHING
        self._held_back = NOTHING
        self._lock = Lock()

    @property
    def left(self) -> Cost:
        """What may still be used, what is held back included; 0 in units that are not limited."""
        return _not_below_zero(self.budget.most - self.spent - self._reserved)

    def told(self) -> str:
        """What is left, in words: `5 calls`, `12,300 tokens`, `$0.0310`."""
        return self.budget.words(self.left)

    def fits(self, amount: Cost) -> bool:
        """Whether so much is left beside what is held back."""
        return self.budget.allows(self.spent + self._reserved + self._held_back + amount)

    @contextmanager
    def hold_back(self, amount: Cost) -> Generator[None]:
        """Keeps `amount` from all requests until the block ends, for a request after it."""
        with self._lock:
            self._held_back += amount
        try:
            yield
        finally:
            with self._lock:
                self._held_back -= amount

    def worst_case(self, request: ChatRequest, settings: ModelSettings) -> Cost:
        """The most that `request` to the model of `settings` can take, in the units that are limited.

        Raises:
            UsageError: dollars are limited, and what the model costs is not known.
            OverBudget: what the model costs is not known for so much input.
            BadImage: a picture that cannot be used.
        """
        if self.budget.tokens is None and self.budget.dollars is None:
            return Cost(calls=1)
        return worst_of(request, self._price(settings))

    @override
    def asked(self, request: ChatRequest, settings: ModelSettings) -> None:
        """Lets the request through, or refuses it.

        Raises:
            OverLimit: it may take more than is left.
            UsageError: dollars are limited, and what the model costs is not known.
        """
        worst = self.worst_case(request, settings)
        with self._lock:
            if not self.fits(worst):
                free = _not_below_zero(self.left - self._held_back)
                words = self.budget.words
                raise OverLimit(
                    f"The limit of {self.budget} leaves {words(free)}, and this call may take {words(worst)}, so it "
                    "was not made.",
                    hint="Raise the limit.",
                )
            self._reserved += worst

    @override
    def received(self, request: ChatRequest, settings: ModelSettings, response: ChatResponse) -> None:
        worst = self.worst_case(request, settings)
        self._settle(worst, cost_of(response.usage, self._price(settings)) or worst)

    @override
    def failed(self, request: ChatRequest, settings: ModelSettings, error: BaseException) -> None:
        worst = self.worst_case(request, settings)
        if isinstance(error, Skipped):  # another observer or the budget of the run refused it
            self._settle(worst, NOTHING)
        else:
            self._settle(worst, worst if may_be_billed(error) else Cost(calls=1))

    def _settle(self, worst: Cost, actual: Cost) -> None:
        with self._lock:
            self._reserved -= worst
            self.spent += actual

    def _price(self, settings: ModelSettings) -> Price | None:
        """The price by which dollars are counted; None where they are not limited."""
        check_price(settings, self.budget.dollars)
        return None if self.budget.dollars is None else price_of(settings)


def _not_below_zero(amount: Cost) -> Cost:
    return Cost(nanodollars=max(amount.nanodollars, 0), tokens=max(amount.tokens, 0), calls=max(amount.calls, 0))


@contextmanager
def limit_budget(budget: Budget | str) -> Generator[BudgetLimit]:
    """Lets requests to chat models through inside the block while they fit into `budget`; others end as `OverLimit`.

    Answers on record count as well, so that a replay ends where the run did. Vectors, scores and searches do not, nor
    what an endpoint is asked about itself.

    ```python
    with limit_budget("8 calls") as limit:
        chain("ad.png")
    print(limit.told())
    ```

    Args:
        budget: the most that may be used: `8 calls`, `20000 tokens`, `0.05` for US dollars.

    Raises:
        UsageError: `budget` is none.
    """
    limit = BudgetLimit(Budget.parse(budget) if isinstance(budget, str) else budget)
    with observe(limit):
        yield limit


@contextmanager
def on_miss(policy: MissPolicy) -> Generator[None]:
    """Makes no call inside the block: `policy` is given those that are not on record."""
    with _within(replace(current_scope(), on_miss=policy)):
        yield
