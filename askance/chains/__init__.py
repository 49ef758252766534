"""Compositions: a picture in; its verbalization, its atypicality statement, what it argues for out."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
