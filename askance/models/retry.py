"""Retry: which calls are asked again after a fault, how often and how soon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from askance.errors import AskanceError, ModelError, RateLimited

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

    from askance.models.live_call import LiveCall

DEADLINE = 600.0
"""Seconds that a call may take with all its tries, unless one try may take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds of one call. Waits are drawn evenly from nothing up to a bound that doubles (full jitter)."""

    tries: int = 5
    first_wait: float = 0.5
    """Upper bound of the first wait, in seconds."""
    max_wait: float = 30.0
    """Upper bound of any wait, in seconds."""
    outage_wait: float = 5.0
    """Upper bound of a wait while the endpoint answers nobody, in seconds, so that a call notices its return soon."""
    deadline: float | None = DEADLINE
    """Seconds from the first try within which the call must have ended; None is no deadline."""

    def within(self, timeout: float) -> RetryPolicy:
        """This policy for tries of up to `timeout` seconds: the default deadline never cuts the first one short."""
        return replace(self, deadline=max(DEADLINE, timeout)) if self.deadline == DEADLINE else self

    def retrying(self, call: LiveCall) -> AsyncRetrying:
        """The policy as tenacity takes it, for one call."""
        import tenacity

        jitter = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.max_wait)

        def wait(state: RetryCallState) -> float:
            requested = _asked_wait(state)
            drawn = min(jitter(state), self.outage_wait) if call.uncounted else jitter(state)
            return drawn if requested is None else min(max(drawn, requested), self.max_wait)

        def stop(state: RetryCallState) -> bool:
            return state.attempt_number - call.uncounted >= self.tries or call.is_late(state.upcoming_sleep)

        return tenacity.AsyncRetrying(
            stop=stop,
            wait=wait,
            retry=tenacity.retry_if_exception(may_be_asked_again),
            reraise=True,
        )


def may_be_asked_again(error: BaseException) -> bool:
    """Whether another try may succeed. A rate limit is no such error: the endpoint's pace has waited for it already."""
    return isinstance(error, AskanceError) and error.retryable and not isinstance(error, RateLimited)


def _asked_wait(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome is not None else None
    return error.retry_after if isinstance(error, ModelError) else None
