"""How fast an endpoint is asked: `room` is how many calls at once, `pace` when the next may start, `limits` both.

What replies say about it is read by `allowance` (limits) and `moments` (points in time).
"""

from __future__ import annotations

__all__: list[str] = []
