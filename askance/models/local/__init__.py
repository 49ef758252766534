"""Models on this machine, run by transformers: `hf:FOLDER`, or `hf:NAME` of a model that was downloaded before.

`hf` is the backend. A request becomes a row (`inputs`), rows go in batches (`generator`) through a loaded model
(`transformers_model`), and `sampler` chooses each token. Torch is imported when the first answer is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.models.backend import load as _load

if TYPE_CHECKING:
    from askance.models.counters import Counters
    from askance.models.local.hf import HFModel

_LAZY = {
    "Counters": "askance.models.counters:Counters",
    "HFModel": "askance.models.local.hf:HFModel",
}

__all__ = ["Counters", "HFModel"]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return _load(_LAZY[name])
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
