"""Tracing: what LangChain's callback handlers see of nodes, chains and chat calls.

Handlers see every node by its name, every chat call with its tokens, and pictures by their digests. While the callback
manager of a configuration has no handlers, nobody listens, and a node takes a straight path, which gives equal results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from askance.chat import ImagePart, Message
from askance.images.image import Image, image_digest
from askance.nodes.runnable import may_be_traced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_core.callbacks import AsyncCallbackManager
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.runnables import RunnableConfig

    from askance.chat import ChatRequest, ChatResponse

T = TypeVar("T")


def traced_config(config: RunnableConfig | None, mode: str) -> RunnableConfig | None:
    """The full configuration if a handler listens, else None; in `replay`, tracers that use a network do not listen."""
    if config is None and not may_be_traced():
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


async def traced_run(
    name: str, config: RunnableConfig, *, inputs: Any, work: Callable[[AsyncCallbackManager], Awaitable[T]]
) -> T:
    """Runs `work` and tells handlers of its start and its end, as of a chain's; it gets the manager of its children.

    Args:
        name: what handlers see, unless `config` names the run.
        config: whose handlers listen.
        inputs: the input as handlers may see it.
        work: its value is the output that handlers see, as `trace_value` shows it.
    """
    from langchain_core.runnables.config import get_async_callback_manager_for_config

    manager = get_async_callback_manager_for_config(config)
    run = await manager.on_chain_start(None, inputs, name=config.get("run_name") or name, run_id=config.get("run_id"))
    try:
        value = await work(run.get_child())
    except BaseException as error:
        await run.on_chain_error(error)
        raise
    await run.on_chain_end(trace_value(value))
    return value


def trace_value(value: Any) -> Any:
    """`value` as handlers may see it: pictures by name and digest, bytes and data URIs by their length."""
    from pydantic import BaseModel

    if isinstance(value, Image):
        return {"image": value.name, "sha256": image_digest(value)}
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes"
    if isinstance(value, str):
        return f"a data URI of {len(value)} characters" if value[:5].lower() == "data:" else value
    if isinstance(value, Mapping):
        return {str(name): trace_value(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [trace_value(each) for each in cast("Sequence[Any]", value)]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: trace_value(getattr(value, each.name)) for each in fields(value) if each.compare}
    if isinstance(value, BaseModel):
        return {name: trace_value(getattr(value, name)) for name in type(value).model_fields}
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


async def traced_chat(
    request: ChatRequest,
    chat: Callable[[ChatRequest], Awaitable[ChatResponse]],
    *,
    manager: AsyncCallbackManager,
    name: str,
) -> ChatResponse:
    """Runs `chat(request)` and tells handlers of its start and its end, as of a chat model's."""
    from langchain_core.outputs import ChatGeneration, LLMResult

    invocation = {"model": name, "key": request.key, **request.sampling.canonical()}
    messages = [_langchain_message(message) for message in request.messages]
    (run,) = await manager.on_chat_model_start({"name": name}, [messages], invocation_params=invocation, name=name)
    try:
        response = await chat(request)
    except BaseException as error:
        await run.on_llm_error(error)
        raise
    await run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=_answer(response))]]))
    return response


def _langchain_message(message: Message) -> BaseMessage:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    text = "".join(f"[image {part.shown}]\n" if isinstance(part, ImagePart) else part.text for part in message.parts)
    if message.role == "system":
        return SystemMessage(text)
    if message.role == "assistant":
        return AIMessage(text)
    if message.role == "tool":
        return ToolMessage(text, tool_call_id=message.tool_call_id or "")
    return HumanMessage(text)


def _answer(response: ChatResponse) -> AIMessage:
    from langchain_core.messages import AIMessage

    usage: dict[str, Any] | None = None
    if response.usage.input is not None and response.usage.output is not None:
        usage = {
            "input_tokens": response.usage.input,
            "output_tokens": response.usage.output,
            "total_tokens": response.usage.input + response.usage.output,
        }
    metadata = {"finish_reason": response.finish, "model_name": response.model, "replayed": response.meta.replayed}
    return AIMessage(response.text, usage_metadata=usage, response_metadata=metadata)
