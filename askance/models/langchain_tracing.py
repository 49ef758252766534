"""Tracing of LangSmith that the environment switches on: off in `replay`, which opens no connection; else announced."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

_TRACING_SWITCHES = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
_log = logging.getLogger("askance")
_announced: set[str] = set()


def tracing_asked() -> bool:
    """Whether the environment switches LangSmith tracing on."""
    return any(os.environ.get(name, "").lower() in {"true", "1"} for name in _TRACING_SWITCHES)


def quiet(mode: str) -> AbstractContextManager[None]:
    """Around a run: in `replay` tracing from the environment is off; elsewhere it is announced once."""
    if not tracing_asked():
        return nullcontext()
    if mode == "replay":
        return _without_tracing()
    if "tracing" not in _announced:
        _announced.add("tracing")
        _log.warning(
            "LangSmith tracing is switched on in the environment: prompts and answers leave this machine "
            "(pictures as digests only). Unset %s to keep them here.",
            ", ".join(name for name in _TRACING_SWITCHES if os.environ.get(name)),
        )
    return nullcontext()


@contextmanager
def _without_tracing() -> Generator[None]:
    from langsmith.run_helpers import tracing_context  # pyright: ignore[reportUnknownVariableType]

    with tracing_context(enabled=False):
        yield
