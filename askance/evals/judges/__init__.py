"""Judges held against people: labels, cards, corrected rates, and scores that say who judged."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
