"""The demo's data: pictures, a hand-written table of options and answers, and the cassette made from it."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
