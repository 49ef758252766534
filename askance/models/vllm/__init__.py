"""Models that vLLM runs: `vllm:FOLDER` in a server of its own or in process, `vllm:NAME@http://…` where one runs.

`model` is the backend; `server` and `in_process` are the two ways to the engine; `engine_args` says how it is set up,
and `log` why it does not start. Everything that needs vLLM itself is imported when the first answer is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.models.backend import load as _load

if TYPE_CHECKING:
    from askance.models.vllm.model import VLLMModel

_LAZY = {"VLLMModel": "askance.models.vllm.model:VLLMModel"}

__all__ = ["VLLMModel"]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return _load(_LAZY[name])
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
