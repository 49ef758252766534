"""How fast an endpoint is asked: `room` is how many calls at once, `pace` when the next may start, `limits` both."""

from __future__ import annotations

__all__: list[str] = []
