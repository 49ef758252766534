"""Trace events of calls, for observers: enough for a progress bar, a ledger or a log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.chat import ModelId, Usage

if TYPE_CHECKING:
    from askance.models.settings import ModelSettings, Price

_log = logging.getLogger("askance")

_NO_USAGE = Usage()

Phase = Literal["replayed", "started", "tried", "answered", "unrecorded", "shared", "failed", "probed"]
"""In this order: answered from the records; sent for the first time; one try failed; the endpoint answered; its answer
could not be recorded; the answer of an equal call was used; no answer; the endpoint was asked what it can do."""


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
    """US dollars for `usage`; None where no price is known. At `replayed` only a configured price counts."""
    error: BaseException | None = None


Observer: TypeAlias = Callable[[CallEvent], None]
"""Called on the thread of the step; it must be quick and must not raise."""


def notify(
    observers: Sequence[Observer],
    phase: Phase,
    key: str,
    *,
    settings: ModelSettings,
    price: Price | None,
    seconds: float = 0.0,
    usage: Usage = _NO_USAGE,
    error: BaseException | None = None,
) -> None:
    """Tells `observers` of one step of a call of the model with these settings; one that raises harms no call."""
    cost = price.cost(usage) if price is not None else None
    event = CallEvent(phase=phase, key=key, model=settings.id, seconds=seconds, usage=usage, cost=cost, error=error)
    for observer in observers:
        try:
            observer(event)
        except Exception:  # noqa: BLE001  # an answer is worth more than the news of it
            _log.exception("An observer of calls failed.")
