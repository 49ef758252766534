"""OpenAI's protocol, on the official client: `model` is the backend, the other modules its parts.

`chat` and `responses` are the two interfaces as pure functions, `batches` the third; `lanes`, `wire` and `again` are
the transport below the client. Whoever needs a part imports its module.
"""

from __future__ import annotations

__all__: list[str] = []
