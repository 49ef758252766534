"""Pictures: read when they are needed, immutable, and identified by the digest of their bytes."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
