"""Retry: what may succeed when asked again is asked again, within bounds that are data."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from askance.chat import CallMeta
from askance.errors import AskanceError, CallError, ModelError, RateLimited
from askance.models.attempt import Journal, journal

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

    from askance.chat import ChatRequest, ChatResponse
    from askance.models.seam import ChatModel


DEADLINE = 600.0
"""Seconds that a call and all its tries may take, unless one try may take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds of one call. Waits are drawn evenly from nothing up to a bound that doubles (full jitter)."""

    tries: int = 5
    first_wait: float = 0.5
    """Upper bound of the first wait, in seconds."""
    max_wait: float = 30.0
    """Upper bound of any wait, in seconds."""
    outage_wait: float = 5.0
    """Upper bound where the endpoint answers nobody: a call should find it soon after its return."""
    deadline: float | None = DEADLINE
    """Seconds from the first try within which the call has ended; None is without end."""

    def within(self, timeout: float) -> RetryPolicy:
        """This policy where one try may take `timeout` seconds: the default deadline cuts no first try short."""
        return replace(self, deadline=max(DEADLINE, timeout)) if self.deadline == DEADLINE else self

    def retrying(self, notes: Journal) -> AsyncRetrying:
        """The policy as tenacity takes it, for the call that `notes` belongs to."""
        import tenacity

        jitter = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.max_wait)

        def wait(state: RetryCallState) -> float:
            asked = _asked_wait(state)
            drawn = min(jitter(state), self.outage_wait) if notes.free else jitter(state)
            return drawn if asked is None else min(max(drawn, asked), self.max_wait)

        return tenacity.AsyncRetrying(
            stop=lambda state: state.attempt_number - notes.free >= self.tries or notes.late(state.upcoming_sleep),
            wait=wait,
            retry=tenacity.retry_if_exception(may_be_asked_again),
            reraise=True,
        )


def may_be_asked_again(error: BaseException) -> bool:
    """Whether another try may succeed. A rate limit has had its waits already, at the endpoint's shared pace."""
    return isinstance(error, AskanceError) and error.retryable and not isinstance(error, RateLimited)


def _asked_wait(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome is not None else None
    return error.retry_after if isinstance(error, ModelError) else None


class Retrying:
    """Asks again after faults that may pass; the answer's `meta` and a final error's `tries` tell of every attempt."""

    def __init__(self, wrapped: ChatModel, policy: RetryPolicy) -> None:
        self._wrapped = wrapped
        self._policy = policy

    async def generate(self, request: ChatRequest) -> ChatResponse:
        notes = Journal(self._policy.deadline)
        token = journal.set(notes)
        start = time.monotonic()
        try:
            response = await self._tried(request, notes)
        except CallError as error:
            error.key, error.tries = request.key, tuple(notes.tries)
            raise
        finally:
            journal.reset(token)
        return replace(response, meta=CallMeta(tries=tuple(notes.tries), seconds=time.monotonic() - start))

    async def _tried(self, request: ChatRequest, notes: Journal) -> ChatResponse:
        # Most calls need one try, and tenacity's bookkeeping costs more than all other wrappers together: it is told of
        # the first try once that has failed.
        try:
            return await self._wrapped.generate(request)
        except AskanceError as error:
            if not may_be_asked_again(error):
                raise
            first = [error]

        async def attempt() -> ChatResponse:
            if first:
                raise first.pop()
            return await self._wrapped.generate(request)

        return await self._policy.retrying(notes)(attempt)
