"""Prompts: one file each, the package's or the user's own, checked when they are read, rendered in a sandbox."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
