"""Who listens to a run: the callback handlers of LangChain. When nobody does, a node takes a straight path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.nodes.runnable import somebody_may_listen

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.runnables import RunnableConfig


def listened(config: RunnableConfig | None, mode: str) -> RunnableConfig | None:
    """The full configuration when a handler listens, else None; in `replay` tracers that use a network do not."""
    if config is None and not somebody_may_listen():
        return None
    from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config

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
