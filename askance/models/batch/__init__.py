"""Half price: calls wait in a `queue`, a `carrier` takes them to the provider, a `harvest` puts them on record.

`batches` is what a run holds; `jobs` is what is on disk, so that a run can be killed at any instant.
"""

from __future__ import annotations

__all__: list[str] = []
