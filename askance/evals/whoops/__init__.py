"""WHOOPS!: weird images, what people say of them, and tasks over both; in any layout of the data set."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
