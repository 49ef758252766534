"""Who listens to a run: the callback handlers of LangChain.

When nobody listens a node takes a straight path. In `replay` no tracer may open a connection, so tracing that the
environment switches on is off for the length of the run; in other modes it is announced once.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.runnables import RunnableConfig


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


def listened(config: RunnableConfig | None, mode: str) -> RunnableConfig | None:
    """The full configuration when a handler listens, else None."""
    full = ensure_config(config)
    manager = get_async_callback_manager_for_config(full)
    if mode == "replay":
        manager = _local_only(manager)
        full["callbacks"] = manager
    return full if manager.handlers else None


def _local_only(manager: AsyncCallbackManager) -> AsyncCallbackManager:
    """`manager` without handlers that send traces over a network."""
    for handler in [*manager.handlers]:
        if any(cls.__name__ == "LangChainTracer" for cls in type(handler).__mro__):
            manager.remove_handler(handler)
    return manager
