"""Counting the calls of a run, and saying the counts in words."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from askance.errors import CallError, OverBudget

if TYPE_CHECKING:
    from askance.models import CallEvent

NO_PRICE = "cost not known (no price is set)"


class Tally:
    """Counts calls as an observer of the engine; steps come from several threads."""

    def __init__(self) -> None:
        self.made = self.replayed = self.shared = self.failed = self.probes = self.tokens = 0
        self.cost = 0.0
        self.unpriced: set[str] = set()
        """Models that were asked and have no price."""
        self._lock = threading.Lock()

    def __call__(self, event: CallEvent) -> None:
        with self._lock:
            if event.phase == "replayed":
                self.replayed += 1
            elif event.phase == "shared":
                self.shared += 1
            elif event.phase in {"answered", "probed"}:
                self._spent(event)
            elif event.phase == "failed" and _was_made(event.error):
                self.failed += 1

    def _spent(self, event: CallEvent) -> None:
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
        """The counts as a progress bar has room for."""
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
        parts = [_calls(self.made, "made"), f"{self.replayed:,} replayed"]
        if self.shared:
            parts.append(f"{self.shared:,} shared")
        if self.probes:
            parts.append(f"{self.probes} more to see what the endpoint can do")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        if self.made or self.probes:
            parts.append(f"{self.tokens:,} tokens")
            parts.append(NO_PRICE if self.unpriced else f"${self.cost:.4f}")
        return " · ".join(parts)


def _was_made(error: BaseException | None) -> bool:
    """Whether a call that failed with `error` was made at all."""
    return isinstance(error, CallError) and not isinstance(error, OverBudget)


def _calls(count: int, done: str) -> str:
    return f"{count:,} {'call' if count == 1 else 'calls'} {done}"


def _thousands(count: int) -> str:
    return f"{count}" if count < 1000 else f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"
