"""A call, from its request to its answer.

Two functions, each read from top to bottom. `CallPath.answer` runs on the caller's loop: it tells the scope's
observers, which may refuse the request, and looks it up in the records. On a miss it refuses the call (`replay`), gives
it to the scope's policy (a plan, a batch), or makes it. `CallPath._shared` and what it calls run on the live loop: an
equal call under way is joined; a lease between processes is taken, and the records are looked at again; then the call
is tried, within the bounds of retry, of the budget, of the endpoint's limits and of the timeout; its answer is
recorded, and its place at the endpoint is freed.

- Recording stands inside the single flight: an answer is on record before an equal request could be made again.
- The budget stands inside retry: a try that hung, or whose reply was broken, may be billed and counts at its worst
  case. It stands outside the limits: a call that waits for its turn has its share of the budget reserved.
- A 429 is about the endpoint, not about the call: it slows all calls down and uses up no try.
- The timeout stands inside the limits: waiting for a turn costs a call no time.
- The place at the endpoint is freed once the answer is on record: a process that is killed loses no more paid answers
  than it may have calls at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from askance.chat import CallMeta, Try, Usage
from askance.errors import CallError, CallTimeout, ModelError, RateLimited
from askance.models.budget import check_price, cost_of, may_be_billed, worst_of
from askance.models.call_scope import CallScope, RequestObserver, current_scope
from askance.models.events import CallEvent, notify
from askance.models.live_call import LiveCall
from askance.models.loop import SingleFlight, live
from askance.models.prices import price_of
from askance.models.settings import DEFAULT_TIMEOUT
from askance.replay import NOTHING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from askance.chat import ChatRequest, ChatResponse
    from askance.models.backend import Backend
    from askance.models.engine import Engine
    from askance.models.events import Phase
    from askance.models.limits import EndpointLimits
    from askance.models.settings import ModelSettings, Price

_log = logging.getLogger("askance")

T = TypeVar("T")

_NO_USAGE = Usage()


class CallPath:
    """The path of the calls of one model, from request to answer.

    Args:
        settings: the model's, settled by `engine`.
        backend: what answers.
        engine: shared by the models of a run.

    Raises:
        UsageError: the budget is in dollars, and what the model costs is not known.
    """

    def __init__(self, settings: ModelSettings, backend: Backend, engine: Engine) -> None:
        if engine.budget is not None:
            check_price(settings, engine.budget.ledger.budget.dollars)
        engine.add_backend(backend)
        self._settings = settings
        self._backend = backend
        self._records = engine.recorder
        self._budget = engine.budget
        self._observers = engine.observers
        self._check_counts = engine.check_counts
        self._endpoint = engine.limits(settings.id)
        self._timeout = settings.timeout or DEFAULT_TIMEOUT
        self._retry = engine.policy.within(self._timeout)
        # A model without an identity shares no calls: nothing tells its requests from another model's.
        self._single_flight = engine.single_flight if settings.stored else SingleFlight()

    @cached_property
    def price(self) -> Price | None:
        """The configured price, else the list price; None where neither is known."""
        return price_of(self._settings)

    # ---- on the caller's loop ------------------------------------------------------------------------------------

    async def answer(self, request: ChatRequest, *, again: bool = False) -> ChatResponse:
        """The answer, from the records or from the endpoint; `again` ignores a recorded one, once a run.

        Raises:
            ReplayMiss: the mode is `replay` and the answer is not on record.
            Pending: the scope's policy has noted the call.
            CallError: the call ended without an answer, or an observer of the scope refused it.
        """
        scope = current_scope()
        asked = list[RequestObserver]()
        try:
            for observer in scope.observers:
                observer.asked(request, self._settings)
                asked.append(observer)
            response = await self._answer(request, scope, again=again)
        except BaseException as error:
            for observer in asked:
                observer.failed(request, self._settings, error)
            raise
        for observer in asked:
            observer.received(request, self._settings, response)
        return response

    async def _answer(self, request: ChatRequest, scope: CallScope, *, again: bool) -> ChatResponse:
        policy = scope.on_miss
        if self._settings.stored:
            recorded = await self._recorded(request, again=again)
            if recorded is not None:
                if recorded.meta.key is not None:
                    for observer in scope.observers:
                        observer.answered_by(request, recorded.meta.key)
                if policy is None or policy.reports_hits:
                    self.notify("replayed", request.key, usage=recorded.usage)
                return recorded
            if self._records.mode == "replay":
                raise self._records.miss(request)
        if policy is not None:
            raise await policy.missing(request, self._settings)
        return await self.on_live_loop(lambda: self._shared(request))

    async def _recorded(self, request: ChatRequest, *, again: bool) -> ChatResponse | None:
        if again:
            await self._records.off_loop(lambda: self._records.ask_again(request.key))
        response = await self._records.afind(request.key, request.canonical_text)
        if response is not None or again:
            return response
        # Answers recorded before nodes had a token limit of their own.
        before = request.without_default_limit()
        response = None if before is None else await self._records.afind(before.key, before.canonical_text)
        if before is None or response is None:
            return None
        return replace(response, meta=replace(response.meta, key=before.key))

    async def on_live_loop(self, make: Callable[[], Awaitable[T]]) -> T:
        """The result of `make()` on the live loop.

        Where costs are counted the price list is loaded here, so that no call under way waits for that.
        """
        if self._budget is not None or self._observers:
            _ = self.price
        return await live(make)

    # ---- on the live loop ----------------------------------------------------------------------------------------

    async def unrecorded(self, request: ChatRequest) -> ChatResponse:
        """What the endpoint answers, without the records: for calls such as a probe, whose answers are not kept."""
        call = LiveCall(request, self._retry.deadline)
        try:
            return await self._retried(call)
        finally:
            call.free_place()

    async def _shared(self, request: ChatRequest) -> ChatResponse:
        response, joined = await self._single_flight.share(request.key, lambda: self._made(request))
        if not joined:
            return response
        self.notify("shared", request.key, usage=response.usage)
        return replace(response, meta=replace(response.meta, shared=True))

    async def _made(self, request: ChatRequest) -> ChatResponse:
        """The answer to a call; no equal call is under way."""
        self.notify("started", request.key)
        start = time.monotonic()
        try:
            response = await (self._kept(request) if self._settings.stored else self.unrecorded(request))
        except BaseException as error:
            self.notify("failed", request.key, seconds=time.monotonic() - start, error=error)
            raise
        if response.meta.replayed:
            self.notify("replayed", request.key, usage=response.usage)
        else:
            self.notify("answered", request.key, seconds=time.monotonic() - start, usage=response.usage)
        return response

    async def _kept(self, request: ChatRequest) -> ChatResponse:
        """The answer, on record when this returns; a failed call leaves no record."""
        records = self._records
        old = await records.off_loop(lambda: records.superseded(request.key))
        async with records.leased(request.key, old=old):
            # An equal call may have ended since this one looked at the records, here or in another process.
            meanwhile = await records.off_loop(lambda: records.answered_meanwhile(request.key, old))
            if meanwhile is not None:
                return meanwhile
            call = LiveCall(request, self._retry.deadline)
            try:
                response = await records.keep(request, await self._retried(call))
            finally:
                # Freed only now: a process that is killed loses no more answers than it may have calls at once.
                call.free_place()
            if not response.meta.stored and not records.has_left(request.key):
                self.notify("unrecorded", request.key)
            return response

    async def _retried(self, call: LiveCall) -> ChatResponse:
        async def once() -> ChatResponse:
            return await self._tried(call)

        start = time.monotonic()
        try:
            response: ChatResponse = await self._retry.retrying(call)(once)
        except CallError as error:
            error.key, error.tries = call.request.key, tuple(call.tries)
            raise
        return replace(response, meta=CallMeta(tries=tuple(call.tries), seconds=time.monotonic() - start))

    async def _tried(self, call: LiveCall) -> ChatResponse:
        """One try, where its worst case fits into the budget."""
        guard = self._budget
        if guard is None:
            return await self._placed(call)
        what, price = f"the next call of {self._settings.id}", self.price
        reservation, worst = await guard.reserve(lambda: worst_of(call.request, price), what=what)
        actual = worst
        try:
            response = await self._placed(call)
            actual = cost_of(response.usage, price) or worst
        except BaseException as error:
            if not may_be_billed(error, under_way=call.under_way):
                actual = NOTHING
            raise
        finally:
            guard.settle_soon(reservation, actual)
        return response

    async def _placed(self, call: LiveCall) -> ChatResponse:
        """One try, with a place at the endpoint; an answered call keeps the place until its answer is on record."""
        endpoint = self._endpoint()
        await endpoint.concurrency.enter()
        try:
            response = await self._paced(call, endpoint)
        except BaseException:
            endpoint.concurrency.leave()
            raise
        call.keep_place(endpoint.concurrency.leave)
        return response

    async def _paced(self, call: LiveCall, endpoint: EndpointLimits) -> ChatResponse:
        """One try, repeated at the shared pace while the endpoint asks to slow down.

        Raises:
            RateLimited: the endpoint, or a limit of the run, asks for a longer pause than the call's deadline leaves.
        """
        while True:
            sent = await endpoint.wait_for_turn(call)
            try:
                response = await self._sent(call)
            except RateLimited as error:
                endpoint.learn(error.headers)
                if not endpoint.rejected(sent, error, call):
                    raise
            except ModelError as error:
                endpoint.learn(error.headers)
                call.uncounted += endpoint.failed(sent, error)
                raise
            else:
                endpoint.learn(response.meta.headers)
                endpoint.answered(sent, response)
                return response

    async def _sent(self, call: LiveCall) -> ChatResponse:
        """What the backend answers.

        Raises:
            CallTimeout: there was no answer within the timeout.
        """
        request, left = call.request, call.time_left()
        limit = self._timeout if left is None else min(self._timeout, max(left, 0.0))
        call.begin()
        at, start = time.time(), time.monotonic()
        try:
            response = await self._answered_within(limit, request)
        except Exception as error:
            note = Try(at, time.monotonic() - start, f"{type(error).__name__}: {error}")
            call.end(note)
            _log.debug("%s: try %d, %.1f s: %s", request.model, len(call.tries), note.seconds, note.error)
            self.notify("tried", request.key, seconds=note.seconds, error=error)
            raise
        call.end(Try(at, time.monotonic() - start))
        self._check_counts(self._settings.id, response.usage)
        return response

    async def _answered_within(self, limit: float, request: ChatRequest) -> ChatResponse:
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                return await self._backend.generate(request)
        except TimeoutError as error:
            if not clock.expired():
                raise CallTimeout(f"{request.model} gave no answer in time: {error}.") from error
            if limit < self._timeout:
                raise CallTimeout(f"{request.model} gave no answer before the deadline of the call.") from None
            raise CallTimeout(
                f"{request.model} gave no answer within {limit:g} s.", hint="Raise `timeout` if it needs longer."
            ) from None

    def notify(
        self,
        phase: Phase,
        key: str,
        *,
        seconds: float = 0.0,
        usage: Usage = _NO_USAGE,
        error: BaseException | None = None,
    ) -> None:
        """Tells the observers, if there are any, of one step of the call with this key."""
        if not self._observers:
            return
        # The price list is not loaded for what costs nothing.
        price = self._settings.price if phase == "replayed" else self.price
        cost = None if price is None else price.cost(usage)
        model = self._settings.id
        event = CallEvent(phase=phase, key=key, model=model, seconds=seconds, usage=usage, cost=cost, error=error)
        notify(self._observers, event)
