"""The protocol of chat models, and the backend of a model, which is built at its first live call.

A chat model sends a `ChatRequest` in its vendor's form and turns the reply into a `ChatResponse`, or raises a
`CallError`. Everything else that happens to a call is in `call.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from askance.errors import UsageError
from askance.models.likelihood import not_offered
from askance.models.loop import PerLoop, close_at_exit, live
from askance.models.spec import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from askance.chat import ChatRequest, ChatResponse
    from askance.models.counters import Counters
    from askance.models.settings import ModelSettings


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers chat requests.

    It is used by many tasks of one event loop at a time. These members are optional:

    - `async aclose()` closes connections;
    - `id`, a `ModelId` or a name, tells its answers from another model's, unless `stored` is False: then they are
      neither recorded nor replayed;
    - `capabilities`, a `Capabilities`, spares asking what it can do;
    - `async likelihood(request)` weighs the text in `request.given`, see `askance.models.likelihood`; without it such
      requests are refused;
    - `async counted()`, a `Counters`, says what it computed and saved since it was made, also after `aclose`;
    - `doing`, a text, says what it does now: `loads its weights`; empty where there is nothing to say;
    - `noticed`, a mapping, holds what it learnt from the endpoint's error messages (`token_field`, `without`).
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


async def ask(model: ChatModel, request: ChatRequest) -> ChatResponse:
    """What `model` answers, or how likely it finds the text that is given to it.

    Raises:
        CallError: the call ended without an answer.
    """
    if request.given is None:
        return await model.generate(request)
    weigh: Callable[[ChatRequest], Awaitable[ChatResponse]] | None = getattr(model, "likelihood", None)
    return not_offered(f"{request.model} weighs no given text") if weigh is None else await weigh(request)


class Backend:
    """A chat model that is made at the first live call, so that a replay builds no client and needs no key.

    After a fork it is made anew.

    Args:
        make: makes the chat model.
        there: what `make` returns, where it has been made already.
    """

    def __init__(self, make: Callable[[], ChatModel], *, open_model: ChatModel | None = None) -> None:
        self._make = make
        self._made: PerLoop[ChatModel] = PerLoop(self._start)
        self._open: ChatModel | None = None
        self._counting: list[ChatModel] = [] if open_model is None else [open_model]
        """Every model that was made and counts its work; a closed one keeps its counts."""
        self.settings: ModelSettings | None = None
        """What the chat model is made of, where settings are enough for that."""

    @classmethod
    def of(cls, settings: ModelSettings) -> Backend:
        """The backend of the provider that `settings` names."""
        backend = cls(lambda: from_settings(settings))
        backend.settings = settings
        return backend

    @classmethod
    def nobody(cls) -> Backend:
        """The backend of a model of which only the answers on record are known."""
        return cls(_nobody)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Backend.nobody, ()) if self.settings is None else (Backend.of, (self.settings,))

    async def generate(self, request: ChatRequest) -> ChatResponse:
        return await ask(self._made(), request)

    @property
    def noticed(self) -> Mapping[str, Any]:
        """What the backend learnt from the endpoint's error messages; empty where it does not learn."""
        return getattr(self._open, "noticed", {})

    @property
    def doing(self) -> str:
        """What the backend does now; empty where it does not say."""
        return getattr(self._open, "doing", "")

    async def counted(self) -> Counters | None:
        """What the backend computed and saved since it was made; None where it does not count."""
        total: Counters | None = None
        for count in [getattr(model, "counted", None) for model in self._counting]:
            if count is not None:
                counts: Counters = await live(count)
                total = counts if total is None else total + counts
        return total

    async def aclose(self) -> None:
        """Closes the connections; the next call opens new ones."""
        if self._open is not None:
            await live(self._close)

    def _start(self) -> ChatModel:
        self._open = self._make()
        if hasattr(self._open, "counted") and not any(model is self._open for model in self._counting):
            self._counting.append(self._open)
        close_at_exit(self)
        return self._open

    async def _close(self) -> None:
        model, self._open = self._open, None
        self._made = PerLoop(self._start)
        await close(model)


def _nobody() -> ChatModel:
    raise UsageError(
        "This model is known from records alone, so that nobody can be asked.", hint="Use the mode `replay`."
    )


def from_settings(settings: ModelSettings) -> ChatModel:
    """The backend of the provider that `settings` names; loads the vendor's package.

    Raises:
        ConfigError: the settings are from a project's file, and the user has not consented to what they would do.
    """
    if settings.consent is not None:
        settings.consent.require()
    factory: Callable[[ModelSettings], ChatModel] = BACKENDS.load(settings.id.provider)
    return factory(settings)
