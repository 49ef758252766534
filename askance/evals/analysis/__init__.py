"""What is done with runs that are there: compare, blame, score again, pack and check, tabulate, watch."""

from __future__ import annotations

__all__: list[str] = []
