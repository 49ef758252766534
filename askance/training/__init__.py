"""Training sets made of data sets and of recorded runs, and what is trained on them."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
