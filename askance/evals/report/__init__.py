"""Reports: runs and comparisons of runs as pages that open from a disk, with no network and nothing else.

A page is made from values and asks no model. `run_report`, `comparison`, `card_page`, `preference_page` and `readings`
are the pages; `run_part`, `blame_part` and `published_part` are parts of them. The modules hold values and no markup;
the templates hold markup and count nothing.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
