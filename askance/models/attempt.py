"""One attempt at a call: held to the time limit and noted down."""

from __future__ import annotations

import asyncio
import logging
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from askance.chat import Try
from askance.errors import CallTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from askance.chat import ChatRequest, ChatResponse
    from askance.models.seam import ChatModel

_log = logging.getLogger("askance")


class Journal:
    """What happened to one call so far.

    The deadline runs from the first attempt: waiting for a turn costs a call nothing.
    """

    def __init__(self, deadline: float | None) -> None:
        self.tries: list[Try] = []
        self.begun = 0
        """Attempts that were begun; those that ended are `tries`."""
        self.free = 0
        """Those of `tries` that say something about the endpoint alone and use up none of the call's."""
        self.deadline = deadline
        """Seconds from the first attempt within which the call has ended; None is without end."""
        self._sent: float | None = None

    def sent(self) -> None:
        self.begun += 1
        if self._sent is None:
            self._sent = time.monotonic()

    def left(self) -> float | None:
        """Seconds up to the deadline; None is without end."""
        if self.deadline is None or self._sent is None:
            return self.deadline
        return self.deadline - (time.monotonic() - self._sent)

    def late(self, wait: float = 0.0) -> bool:
        """Whether the deadline will have passed `wait` seconds from now."""
        left = self.left()
        return left is not None and left <= wait


journal: ContextVar[Journal | None] = ContextVar("journal", default=None)
"""The journal of the call that the current task makes."""


class Attempt:
    """Cuts a hung call off and notes each attempt in the journal.

    Args:
        wrapped: what answers.
        timeout: seconds that one attempt may take.
        failed: told of each attempt that gave no answer.
    """

    def __init__(
        self, wrapped: ChatModel, *, timeout: float, failed: Callable[[ChatRequest, Try, Exception], None] | None = None
    ) -> None:
        self._wrapped = wrapped
        self._timeout = timeout
        self._failed = failed

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer.

        Raises:
            CallTimeout: there was none within the time limit.
        """
        notes = journal.get() or Journal(None)
        notes.sent()
        at, start = time.time(), time.monotonic()
        try:
            response = await self._in_time(request, notes.left())
        except Exception as error:
            note = Try(at, time.monotonic() - start, f"{type(error).__name__}: {error}")
            notes.tries.append(note)
            _log.debug("%s: try %d, %.1f s: %s", request.model, len(notes.tries), note.seconds, note.error)
            if self._failed is not None:
                self._failed(request, note, error)
            raise
        notes.tries.append(Try(at, time.monotonic() - start))
        return response

    async def _in_time(self, request: ChatRequest, left: float | None) -> ChatResponse:
        limit = self._timeout if left is None else min(self._timeout, max(left, 0.0))
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                return await self._wrapped.generate(request)
        except TimeoutError as error:
            if not clock.expired():
                raise CallTimeout(f"{request.model} gave no answer in time: {error}.") from error
            if limit < self._timeout:
                raise CallTimeout(f"{request.model} gave no answer before the deadline of the call.") from None
            raise CallTimeout(
                f"{request.model} gave no answer within {limit:g} s.", hint="Raise `timeout` if it needs longer."
            ) from None
