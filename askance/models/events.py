"""Trace events of calls, for observers such as a progress bar or a log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from askance.chat import ModelId, Usage

_log = logging.getLogger("askance")

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


def notify(observers: Sequence[Observer], event: CallEvent) -> None:
    """Tells `observers` of `event`; one that raises harms no call."""
    for observer in observers:
        try:
            observer(event)
        except Exception:  # noqa: BLE001  # an answer is worth more than the news of it
            _log.exception("An observer of calls failed.")
