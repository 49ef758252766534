"""Sherlock: what a region of a picture lets people infer (Hessel, Hwang et al., ECCV 2022)."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
