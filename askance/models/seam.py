"""The seam: one required method on plain values.

A backend turns a `ChatRequest` into what its vendor takes and the vendor's reply into a `ChatResponse`, or raises one
of the `CallError`s. Everything else that happens to a call is in `call.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse


@runtime_checkable
class ChatModel(Protocol):
    """Whatever answers chat requests.

    It is used from many tasks of one event loop at a time. It may have more:

    - `async aclose()` lets go of connections;
    - `id`, a `ModelId` or a name, tells its answers from another model's, unless `stored` is False: then they are
      neither recorded nor replayed;
    - `capabilities`, a `Capabilities`, spares asking what it can do;
    - `async counted()`, a `Counters`, says what it computed and spared since it was made, closed meanwhile or not;
    - `doing`, a text, says what it does just now, for those who wait: `loads its weights`; empty is nothing to tell;
    - `noticed`, a mapping, says what it learnt from the endpoint's complaints (`token_field`, `without`).
    """

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer to `request`.

        Raises:
            CallError: the call ended without an answer.
        """
        ...


async def close(model: object) -> None:
    """Calls `model.aclose()`, where there is one."""
    aclose = getattr(model, "aclose", None)
    if aclose is not None:
        await aclose()
