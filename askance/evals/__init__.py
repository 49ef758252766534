"""Runs on disk; evaluations stand on them."""

from __future__ import annotations

from askance.evals.run_folder import RunFolder

__all__ = ["RunFolder"]
