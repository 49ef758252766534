"""Retrieval: the texts of an index that fit a picture or a text best, and llama-index's components from and to ours."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
