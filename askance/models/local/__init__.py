"""Models on this machine, run by transformers: `hf:FOLDER`, or `hf:NAME` of a model that was downloaded before.

`hf` is the backend, `loaded` what transformers has loaded, `runner` batches and rows, `drawing` how tokens are chosen.
Everything that needs torch is imported when the first answer is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.models.backend import load as _load

if TYPE_CHECKING:
    from askance.models.counters import Counters
    from askance.models.local.hf import HFModel
    from askance.models.local.loaded import Loaded

_LAZY = {
    "Counters": "askance.models.counters:Counters",
    "HFModel": "askance.models.local.hf:HFModel",
    "Loaded": "askance.models.local.loaded:Loaded",
}

__all__ = ["Counters", "HFModel", "Loaded"]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return _load(_LAZY[name])
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
