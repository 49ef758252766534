"""LangChain, both ways: its chat models as a backend, and a model of askance as one of its chat models.

`langchain_model` is the backend, `chat_model` the other way; `messages` translates for both, and `tracing` sees to what
LangSmith is sent. Whoever needs a part imports its module; only here is LangChain known to the models.
"""

from __future__ import annotations

__all__: list[str] = []
