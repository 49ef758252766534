"""A corpus too large for one machine: what reading it takes, its shards, and the workers that read them."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
