"""Models on this machine, run by transformers: `hf:FOLDER`, or `hf:NAME` of a model that was downloaded before.

`hf` is the backend. A request becomes a row (`inputs`); rows that come at the same time are collected (`collector`) and
go in batches (`generator`) through a loaded model (`transformers_model`); `sampler` chooses each token. Torch is
imported when the first answer is generated.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
