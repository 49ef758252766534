"""The `askance` command."""

from __future__ import annotations

from askance.cli.main import main

__all__ = ["main"]
