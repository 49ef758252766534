"""One act of LLM reasoning each: combine, detect a statement, classify, choose, explain, write negatives, judge."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
