"""Reports: runs and comparisons of runs as pages that open from a disk, with no network and nothing else."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
