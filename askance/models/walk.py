"""A walk: a chain is taken as far as the records carry it, and what is not on record is asked of nobody.

Whoever walks says what becomes of a missing call: it is put into a queue, or only counted. The chain and its nodes do
not know of it: to them such a call has ended without an answer, so that every link that needs none of it goes on.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from askance.errors import CallError

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse
    from askance.models.seam import ChatModel
    from askance.models.settings import ModelSettings


class Pending(CallError):
    """The call is not on record yet; the reading that met it is no result and is read again later."""


class Walk(Protocol):
    """What becomes of the calls that a walk misses."""

    told: bool
    """Whether observers hear of the answers that it finds on record; a later walk finds the same ones again."""

    async def missing(self, request: ChatRequest, settings: ModelSettings) -> CallError:
        """Takes note of a call that is not on record; the error that stands for it.

        It may run on any loop. `Pending` sets the call's reading aside, any other error is the call's outcome.
        """
        ...


current_walk: ContextVar[Walk | None] = ContextVar("walk", default=None)
"""The walk that the current task is part of; outside of any, calls are made."""


class Walkable:
    """Stands between the records and the calls, and keeps a walk from making any."""

    def __init__(self, wrapped: ChatModel, settings: ModelSettings) -> None:
        self._wrapped = wrapped
        self._settings = settings

    async def generate(self, request: ChatRequest, *, again: bool = False) -> ChatResponse:  # noqa: ARG002
        """The answer, outside of walks; nothing is on record here, so `again` changes nothing.

        Raises:
            Pending: a walk has noted the call.
            CallError: the walk knows how the call ended.
        """
        walk = current_walk.get()
        if walk is None:
            return await self._wrapped.generate(request)
        raise await walk.missing(request, self._settings)
