"""LangChain's `create_agent` alone: a model that calls a tool so often and then ends, and a tool that does nothing.

What `investigations.py` measures askance against: no program that is built on `create_agent` can take less.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool


class IdleModel(BaseChatModel):
    """Calls the tool so many times, then ends."""

    calls: int

    @property
    def _llm_type(self) -> str:
        return "idle"

    def bind_tools(self, tools: Any, **options: Any) -> IdleModel:  # noqa: ARG002
        """Itself, whatever the tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:  # noqa: ARG002
        called = sum(isinstance(message, ToolMessage) for message in messages)
        calls = [ToolCall(name="ask", args={"question": "Why?"}, id=str(called))] if called < self.calls else []
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        return self._generate(messages, **options)


@tool
async def ask(question: str) -> str:  # noqa: ARG001
    """Ask about the picture."""
    return "It is made of bricks."


def bare_graph(*, calls: int) -> Any:
    """The compiled graph of an agent that calls its tool so many times."""
    return create_agent(IdleModel(calls=calls), [ask], checkpointer=False)  # pyright: ignore[reportUnknownVariableType]
