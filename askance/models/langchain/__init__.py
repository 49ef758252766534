"""LangChain, both ways: `model` has its chat models as a backend, `chat_model` a model of askance as one of its own.

Whoever needs a part imports its module; only here is LangChain known to the models.
"""

from __future__ import annotations

__all__: list[str] = []
