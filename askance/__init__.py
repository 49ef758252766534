"""askance: agents that reason over verbalized images.

The names here are those that most programs begin with; each is loaded when it is first used. Everything else is in the
packages: `askance.chains` first, then as the README lists them.
"""

from __future__ import annotations

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
