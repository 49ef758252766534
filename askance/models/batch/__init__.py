"""Calls at half price: they wait in a `queue`, a `worker` sends them in batches and puts the `results` on record.

`batches` is what a run holds; `job` is what is on disk, so that a run can be killed at any instant. A *part* is the
calls of one batch, a *target* the model and the endpoint that it is for.
"""

from __future__ import annotations

__all__: list[str] = []
