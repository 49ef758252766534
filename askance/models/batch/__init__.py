"""Calls through a batch interface, at half price: a `queue` takes them, a `worker` sends them, `results` records them.

`batches` is what a run holds, and `job` its state on disk, so that a run can be killed at any instant. A *part* is the
calls of one batch; its *target* is one model at one endpoint.
"""

from __future__ import annotations

__all__: list[str] = []
