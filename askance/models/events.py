"""What observers are told while calls run: enough for a progress bar, a ledger or a log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.chat import ModelId, Usage
from askance.models.walk import current_walk

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse, Try
    from askance.models.seam import ChatModel
    from askance.models.settings import ModelSettings

_log = logging.getLogger("askance")

_NO_USAGE = Usage()

Phase = Literal["replayed", "started", "tried", "answered", "unrecorded", "shared", "failed", "probed"]
"""From the record; sent for the first time; one try failed; the endpoint answered; its answer could not be put on
record; an equal call's answer was taken; no answer; the endpoint was asked what it can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent:
    """One step of one call."""

    phase: Phase
    key: str
    model: ModelId
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    """Tokens that the endpoint counted: spent at `answered` and `probed`, saved at `replayed` and `shared`."""
    cost: float | None = None
    """US dollars for `usage`; None where no price is known."""
    error: BaseException | None = None


Observer: TypeAlias = Callable[[CallEvent], None]
"""Called on whichever thread the step happens; it must be quick and must not raise."""


class Watch:
    """Tells observers of one model's calls; one that fails is logged and harms no call."""

    def __init__(self, settings: ModelSettings, observers: Sequence[Observer]) -> None:
        self._id = settings.id
        self._price = settings.price
        self._observers = observers

    def replayed(self, request: ChatRequest, response: ChatResponse) -> None:
        if self._observers and ((walk := current_walk.get()) is None or walk.told):
            self._tell("replayed", request.key, usage=response.usage)

    def shared(self, request: ChatRequest, response: ChatResponse) -> None:
        if self._observers:
            self._tell("shared", request.key, usage=response.usage)

    def started(self, request: ChatRequest) -> None:
        if self._observers:
            self._tell("started", request.key)

    def tried(self, request: ChatRequest, note: Try, error: Exception) -> None:
        if self._observers:
            self._tell("tried", request.key, seconds=note.seconds, error=error)

    def answered(self, request: ChatRequest, response: ChatResponse, seconds: float) -> None:
        if self._observers:
            self._tell("answered", request.key, seconds=seconds, usage=response.usage)

    def unrecorded(self, request: ChatRequest) -> None:
        if self._observers:
            self._tell("unrecorded", request.key)

    def failed(self, request: ChatRequest, error: BaseException, seconds: float) -> None:
        if self._observers:
            self._tell("failed", request.key, seconds=seconds, error=error)

    def probed(self, key: str, usage: Usage, seconds: float) -> None:
        if self._observers:
            self._tell("probed", key, seconds=seconds, usage=usage)

    def _tell(
        self,
        phase: Phase,
        key: str,
        *,
        seconds: float = 0.0,
        usage: Usage = _NO_USAGE,
        error: BaseException | None = None,
    ) -> None:
        cost = self._price.cost(usage) if self._price is not None else None
        event = CallEvent(phase=phase, key=key, model=self._id, seconds=seconds, usage=usage, cost=cost, error=error)
        for observer in self._observers:
            try:
                observer(event)
            except Exception:  # noqa: BLE001  # an answer is worth more than the news of it
                _log.exception("An observer of calls failed.")


class Watched:
    """Tells of the start and the end of each call that is not shared; the records may have got its answer meanwhile."""

    def __init__(self, wrapped: ChatModel, watch: Watch) -> None:
        self._wrapped = wrapped
        self._watch = watch

    async def generate(self, request: ChatRequest) -> ChatResponse:
        self._watch.started(request)
        start = time.monotonic()
        try:
            response = await self._wrapped.generate(request)
        except BaseException as error:
            self._watch.failed(request, error, time.monotonic() - start)
            raise
        if response.meta.replayed:
            self._watch.replayed(request, response)
        else:
            self._watch.answered(request, response, time.monotonic() - start)
        return response
