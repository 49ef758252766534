"""Who listens to a run: callback handlers of LangChain, and what they get to see.

When nobody listens a node takes a straight path. When somebody does, handlers see every node by name and every chat
call with its tokens; pictures reach them as digests. In `replay` no tracer may open a connection, so tracing that the
environment switches on is off for the length of the run; in other modes it is announced once.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config

from askance.chat import ImagePart, Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextlib import AbstractContextManager

    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.runnables import RunnableConfig

    from askance.chat import ChatRequest, ChatResponse

    Chat = Callable[[ChatRequest], Awaitable[ChatResponse]]

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


async def traced_chat(request: ChatRequest, chat: Chat, *, manager: AsyncCallbackManager, name: str) -> ChatResponse:
    """Runs `chat(request)` between the events of a chat model."""
    invocation = {"model": name, "key": request.key, **request.sampling.canonical()}
    messages = [_visible(message) for message in request.messages]
    (run,) = await manager.on_chat_model_start({"name": name}, [messages], invocation_params=invocation, name=name)
    try:
        response = await chat(request)
    except BaseException as error:
        await run.on_llm_error(error)
        raise
    await run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=_answer(response))]]))
    return response


def _visible(message: Message) -> BaseMessage:
    text = "".join(
        f"[image sha256:{part.image.sha256}]\n" if isinstance(part, ImagePart) else part.text for part in message.parts
    )
    if message.role == "system":
        return SystemMessage(text)
    if message.role == "assistant":
        return AIMessage(text)
    if message.role == "tool":
        return ToolMessage(text, tool_call_id=message.tool_call_id or "")
    return HumanMessage(text)


def _answer(response: ChatResponse) -> AIMessage:
    usage: dict[str, Any] | None = None
    if response.usage.input is not None and response.usage.output is not None:
        usage = {
            "input_tokens": response.usage.input,
            "output_tokens": response.usage.output,
            "total_tokens": response.usage.input + response.usage.output,
        }
    metadata = {"finish_reason": response.finish, "model_name": response.model, "replayed": response.meta.replayed}
    return AIMessage(response.text, usage_metadata=usage, response_metadata=metadata)
