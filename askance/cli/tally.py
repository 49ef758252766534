"""The counts of a run's calls, and the counts in words."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.errors import CallError, CallTimeout, MalformedReply, ModelError, OverBudget, RateLimited, Unreachable

if TYPE_CHECKING:
    from askance.models import CallEvent

NO_PRICE = "cost not known (no price is set)"

_FAULTS: tuple[tuple[type[ModelError], str], ...] = (
    (Unreachable, "no connection"),
    (CallTimeout, "no answer in time"),
    (MalformedReply, "unreadable"),
    (RateLimited, "asked to slow down"),
)
"""Names of failures that have no HTTP status."""


class Tally:
    """Counts calls as an observer of the engine; steps come from several threads."""

    def __init__(self) -> None:
        self.made = self.replayed = self.shared = self.failed = self.probes = self.tokens = self.unrecorded = 0
        self.cost = 0.0
        self.tries: Counter[str] = Counter()
        """Failed tries by what was wrong, without the last try of each call that `failed` counts."""
        self.unpriced: set[str] = set()
        """Models that were asked and have no price."""
        self.by_hand = False
        """Whether an answer comes from the demo, whose answers are hand-written."""
        self._last: dict[str, str] = {}
        """What was wrong with the last try of each call that is under way, by key."""
        self._lock = threading.Lock()

    def __call__(self, event: CallEvent) -> None:
        with self._lock:
            self.by_hand = self.by_hand or event.model.provider == "demo"
            if event.phase == "replayed":
                self.replayed += 1
            elif event.phase == "shared":
                self.shared += 1
            elif event.phase == "tried":
                self._tried(event)
            elif event.phase == "unrecorded":
                self.unrecorded += 1
            elif event.phase in {"answered", "probed"}:
                self._spent(event)
            elif event.phase == "failed":
                self._failed(event)

    def _tried(self, event: CallEvent) -> None:
        self._last.pop(event.key, None)
        # What no other try can mend ends the call, or is how an endpoint says what it cannot do.
        if isinstance(event.error, CallError) and event.error.retryable:
            self._last[event.key] = fault = _fault(event.error)
            self.tries[fault] += 1

    def _failed(self, event: CallEvent) -> None:
        fault = self._last.pop(event.key, None)
        if _was_made(event.error):
            self.failed += 1
            if fault is not None:
                self.tries[fault] -= 1

    def _spent(self, event: CallEvent) -> None:
        self._last.pop(event.key, None)
        if event.phase == "probed":
            self.probes += 1
        else:
            self.made += 1
        self.tokens += (event.usage.input or 0) + (event.usage.output or 0)
        if event.cost is None:
            self.unpriced.add(str(event.model))
        else:
            self.cost += event.cost

    @property
    def short(self) -> str:
        """The counts in short, for a progress bar."""
        parts = [f"{self.made} made", f"{self.replayed} replayed"]
        if self.shared:
            parts.append(f"{self.shared} shared")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.tokens:
            parts.append(f"{_thousands(self.tokens)} tokens")
        if self.cost:
            parts.append(f"${self.cost:.4f}")
        return " · ".join(parts)

    def __str__(self) -> str:
        parts = [f"{many(self.made, 'call')} made", f"{self.replayed:,} replayed"]
        if self.shared:
            parts.append(f"{self.shared:,} shared")
        if self.probes:
            parts.append(f"{self.probes} more to see what the endpoint can do")
        parts.extend(self._tries())
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.made or self.probes:
            parts.append(many(self.tokens, "token"))
            parts.append(NO_PRICE if self.unpriced else f"${self.cost:.4f}")
        if self.unrecorded:
            parts.append(f"{many(self.unrecorded, 'answer is', 'answers are')} not on record")
        if self.by_hand:
            parts.append("the answers of the demo are hand-written")
        return " · ".join(parts)

    def _tries(self) -> Iterator[str]:
        count = self.tries.total()
        if count:
            faults = ", ".join(f"{count:,} × {fault}" for fault, count in sorted(self.tries.items()) if count)
            yield f"{many(count, 'more try', 'more tries')} failed ({faults})"


def _fault(error: CallError) -> str:
    """What was wrong with a try, in a word or two."""
    status = error.status if isinstance(error, ModelError) else None
    return str(status) if status else next((name for kind, name in _FAULTS if isinstance(error, kind)), "server fault")


def _was_made(error: BaseException | None) -> bool:
    """Whether a call that failed with `error` was made at all."""
    return isinstance(error, CallError) and not isinstance(error, OverBudget)


def _thousands(count: int) -> str:
    return f"{count}" if count < 1000 else f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"
