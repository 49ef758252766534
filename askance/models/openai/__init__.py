"""OpenAI's protocol, on the official client: `openai_model` is the backend, the other modules its parts.

`chat` and `responses` are two APIs as pure functions, and `dialect` chooses between them; `batch_api` is the third.
`client` makes the client from settings; `transport` sends its requests. Import each part from its module.
"""

from __future__ import annotations

__all__: list[str] = []
