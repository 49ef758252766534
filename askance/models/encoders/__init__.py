"""Encoders: embedders make vectors of texts, scorers score texts against pictures; all results are recorded."""

from __future__ import annotations

__all__: list[str] = []
