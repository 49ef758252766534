"""askance: agents that reason over verbalized images.

Begin at `askance.chains`; the README lists the rooms in reading order.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
