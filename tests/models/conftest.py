"""Requests and engines for the tests of models."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from askance.chat import ChatRequest, Message, ModelId, TextPart
from askance.models import CallEvent, Engine, RetryPolicy
from askance.replay import MemoryStore, Mode

Ask = Callable[..., ChatRequest]


@pytest.fixture
def ask() -> Ask:
    """Makes a request of one turn."""

    def make(text: str = "What is odd?", *, draw: int = 0) -> ChatRequest:
        model = ModelId("scripted", "scripted", name="scripted")
        return ChatRequest(model=model, messages=(Message("user", (TextPart(text),)),), draw=draw)

    return make


@pytest.fixture
def records() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def events() -> list[CallEvent]:
    return []


@pytest.fixture
def engine(records: MemoryStore, events: list[CallEvent]) -> Callable[..., Engine]:
    """Makes engines on one set of records, without waits between tries."""

    def make(mode: Mode = "auto", **settings: object) -> Engine:
        fields: dict[str, object] = {"records": records, "policy": RetryPolicy(first_wait=0), **settings}
        return Engine(mode=mode, observers=[events.append], **fields)  # pyright: ignore[reportArgumentType]

    return make
