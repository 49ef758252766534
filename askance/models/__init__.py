"""Models: the seam, the backends behind it, and the way of a call.

`get_model` turns a spec, a configured name or an object into a `Model`; an `Engine` holds what the models of one run
share.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
