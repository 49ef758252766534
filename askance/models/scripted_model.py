"""A model that answers from a script: for tests, demonstrations and dry runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from askance.chat import ChatResponse, ModelId
from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.models.capabilities import Capabilities

Reply: TypeAlias = "str | ChatResponse | BaseException"
"""A text stands for an answer of that text; an exception is raised."""


class ScriptedModel:
    """Answers by a function of the request, or from a queue in the order of the calls.

    Args:
        replies: a function of the request, or the replies in order.
        identity: the name that its answers are filed under; None neither records nor replays them, for nothing tells
            them from those of another script.
        capabilities: what it is said to do; None lets it be probed like any endpoint.
    """

    def __init__(
        self,
        replies: Callable[[ChatRequest], Reply] | Iterable[Reply],
        *,
        identity: str | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        self.id = ModelId("scripted", identity or "scripted", name=identity)
        self.stored = identity is not None
        """Whether its answers are recorded and replayed."""
        self.capabilities = capabilities
        self.requests: list[ChatRequest] = []
        """What it was asked, in order."""
        self._reply = replies if callable(replies) else _queue(replies, self.id.model)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The next reply.

        Raises:
            UsageError: the queue of replies has run out.
        """
        self.requests.append(request)
        reply = self._reply(request)
        if isinstance(reply, BaseException):
            raise reply
        return ChatResponse(text=reply) if isinstance(reply, str) else reply

    def __repr__(self) -> str:
        return f"ScriptedModel(identity={self.id.name!r}, asked={len(self.requests)})"


def _queue(replies: Iterable[Reply], identity: str) -> Callable[[ChatRequest], Reply]:
    left = deque(replies)
    total = len(left)

    def next_reply(request: ChatRequest) -> Reply:
        if not left:
            raise UsageError(
                f"The scripted model {identity!r} has {total} replies and was asked once more: "
                f"{request.messages[-1].text[:80]!r}.",
                hint="Give it more replies, or a function of the request.",
            )
        return left.popleft()

    return next_reply
