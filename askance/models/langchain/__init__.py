"""LangChain, both ways: its chat models as a backend, and a model of askance as one of its chat models.

`langchain_model` is the backend, `chat_model` the other way. `messages` translates for both, and `tracing` decides what
LangSmith is sent. No other part of the models imports LangChain.
"""

from __future__ import annotations

__all__: list[str] = []
