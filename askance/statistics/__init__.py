"""Intervals, paired tests, agreement, and figures of classification, as functions of numbers.

NumPy and SciPy are loaded by the first call that needs them.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
