"""What answers below a model of vLLM's: a server or the engine in process, shared by the models that want the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse
    from askance.models.vllm.metrics import Hits

_NEARLY = 0.2
"""Seconds."""


class Speaker(Protocol):
    """Answers requests until it is closed."""

    async def generate(self, request: ChatRequest) -> ChatResponse: ...

    async def measured(self) -> Hits | None:
        """What its caches did since it began; None where nobody knows."""
        ...

    async def aclose(self) -> None: ...


@dataclass(eq=False)
class _Held:
    """A speaker that is there or on its way, how many use it, and what of its counts was told."""

    coming: asyncio.Task[Speaker]
    users: int = 0
    told: Hits | None = None


class Speakers:
    """Speakers by what they are made from: each is made once, for whoever asks first, and closed by the last.

    Each belongs to the event loop that it was made on.
    """

    def __init__(self) -> None:
        self._held: dict[Hashable, _Held] = {}

    async def take(self, key: Hashable, make: Callable[[], Awaitable[Speaker]]) -> Speaker:
        """The speaker of `key`; who takes it gives it back."""
        key = self._here(key)
        held = self._held.get(key)
        if held is None:

            async def come() -> Speaker:
                return await make()

            held = self._held[key] = _Held(asyncio.ensure_future(come()))
        held.users += 1
        # One who no longer waits leaves it to those who do.
        return await asyncio.shield(held.coming)

    async def give(self, key: Hashable) -> None:
        """Closes the speaker of `key` unless another uses it."""
        key = self._here(key)
        held = self._held.get(key)
        if held is None:
            return
        held.users -= 1
        if held.users > 0:
            return
        del self._held[key]
        # What is nearly there comes: a connection that is broken off while it is made leaves a socket behind.
        await asyncio.wait({held.coming}, timeout=_NEARLY)
        held.coming.cancel()
        found = (await asyncio.gather(held.coming, return_exceptions=True))[0]
        if not isinstance(found, BaseException):
            await found.aclose()

    async def fresh(self, key: Hashable) -> Hits | None:
        """What the caches of `key` did that nobody was told yet, so that all who use it tell the whole together."""
        held = self._held.get(self._here(key))
        if held is None or not held.coming.done() or held.coming.cancelled() or held.coming.exception() is not None:
            return None
        now = await held.coming.result().measured()
        if now is None:
            return None
        before, held.told = held.told, now
        return now if before is None else now.since(before)

    @staticmethod
    def _here(key: Hashable) -> Hashable:
        return id(asyncio.get_running_loop()), key


SPEAKERS = Speakers()
"""Those of this process."""
