"""Models: the protocol of a backend, the backends, and the path of a call.

`get_model` turns a spec, a configured name or an object into a `Model`; an `Engine` holds what the models of one run
share. `backend` has the protocol, `call` the path of a call with what it uses: `recorder`, `retry`, `budget`, `limits`
and `learnt_pace`. `config`, `spec` and `factory` make models of settings. `replies`, `vendor_errors`, `secrets` and
`image_data` serve all vendors. The packages `openai`, `langchain`, `local` and `vllm` are backends; `batch` asks at
half the price, and `encoders` has what gives vectors and scores.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
