"""Runs on disk; evaluations stand on them."""

from __future__ import annotations

from askance.evals.run_folder import RunFolder
from askance.evals.used import keys_used

__all__ = ["RunFolder", "keys_used"]
