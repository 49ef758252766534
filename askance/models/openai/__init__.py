"""OpenAI's protocol, on the official client: `openai_model` is the backend, the other modules its parts.

`chat` and `responses` are the two interfaces as pure functions, `batch_api` the third; `client` makes the client from
settings, and `transport` is what it sends with. Whoever needs a part imports its module.
"""

from __future__ import annotations

__all__: list[str] = []
