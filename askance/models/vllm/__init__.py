"""Models that vLLM runs: `vllm:FOLDER` in a server of its own or in process, `vllm:NAME@http://…` where one runs.

`model` is the backend; `server` and `in_process` are the two ways to the engine; `engine_args` says how it is set up,
and `log` why it does not start. Everything that needs vLLM itself is imported when the first answer is written.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
