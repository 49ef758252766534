"""What all tests with LangChain's clients need."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

import httpx2
import pytest


@pytest.fixture(autouse=True)
async def no_open_clients(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Closes what LangChain keeps open, and keeps by address, for as long as the process lives."""
    opened: list[httpx2.AsyncClient] = []
    start = httpx2.AsyncClient.__init__

    def record(self: httpx2.AsyncClient, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        opened.append(self)

    monkeypatch.setattr(httpx2.AsyncClient, "__init__", record)
    yield
    for client in opened:
        await client.aclose()
    import_module("langchain_openai.chat_models._client_utils")._cached_async_httpx_client.cache_clear()
