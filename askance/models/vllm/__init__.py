"""Models that vLLM runs: `vllm:FOLDER` in a server of its own or in process, `vllm:NAME@http://…` where one runs.

`vllm_model` is the backend; `server` and `in_process` are the two ways to run the engine; `engine_args` sets it up, and
`log` explains why it does not start. vLLM itself is imported when the first answer is generated.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
