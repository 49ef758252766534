"""What calls cost: `tokens` and `prices`, the `budget` of a run, and the `ledger` that its processes share."""

from __future__ import annotations

__all__: list[str] = []
