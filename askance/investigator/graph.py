"""The loop of an investigation as a graph of LangGraph, built by LangChain's `create_agent`.

This module alone imports either. The graph is compiled once; what belongs to one investigation is the runtime context.
Its middleware wraps calls of the model and of tools, and nothing else, so that the graph has two nodes. It is run
asynchronously: `await graph.ainvoke({"messages": […]}, context=investigation)`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from askance.errors import MissingExtra
from askance.investigator.investigation import ANSWER, Investigation, Turn, answer_schema
from askance.models.langchain.chat_model import AskanceChatModel
from askance.models.langchain.messages import from_langchain, from_response

try:
    from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ToolCallRequest
    from langchain.agents.structured_output import ToolStrategy
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.errors import GraphRecursionError
except ModuleNotFoundError as error:
    raise MissingExtra(f"{error.name} is not installed.", hint="pip install 'askance[agent]'") from error

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

    from askance.chat import JsonObject, Message, Part, ToolSpec
    from askance.images import RegionView
    from askance.models import Model

    Graph = Runnable[Any, Any]
    """A `CompiledStateGraph` of LangGraph."""

_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)
"""The turn that is under way in the current task."""


class TurnModel(AskanceChatModel):
    """The model of an investigation; within a turn it is asked with the request of that turn."""

    @override
    async def _answer(self, turns: list[Message], stop: Sequence[str] | None, bound: JsonObject) -> ChatResult:
        turn = _turn.get()
        if turn is None:
            return await super()._answer(turns, stop, bound)
        turn.response = await self.model.generate(turn.request, again=turn.again)
        return ChatResult(generations=[ChatGeneration(message=from_response(turn.response))])


class LookAround(AgentMiddleware[Any, Investigation]):
    """Holds the graph to the rules of an investigation."""

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Investigation], handler: Callable[[ModelRequest[Investigation]], Awaitable[Any]]
    ) -> ModelResponse[JsonObject]:
        """Asks for the next turn; one in which no tool is called is followed by another at once."""
        investigation = request.runtime.context
        said: list[Any] = []
        while True:
            messages = cast("list[AnyMessage]", [*request.messages, *said])
            turn = investigation.turn(_history(investigation, messages[1:]))
            token = _turn.set(turn)
            try:
                await handler(
                    request.override(
                        system_message=SystemMessage(investigation.opening[0].text),
                        messages=messages,
                        tools=[_form(tool) for tool in turn.tools],
                        tool_choice="any",
                        response_format=None,
                    )
                )
            finally:
                _turn.reset(token)
            heard = investigation.heard(turn)
            if investigation.result is not None:
                answered = investigation.answered or None
                return ModelResponse(result=[*said, AIMessage(heard.text)], structured_response=answered)
            calls = [ToolCall(id=each.id, name=each.name, args=each.arguments) for each in heard.calls]
            said.append(AIMessage(heard.text, tool_calls=calls))
            if calls:
                told = {each.id: each.told for each in heard.calls if each.told is not None}
                answers = [_told(call, told[call["id"] or ""]) for call in calls if call["id"] in told]
                return ModelResponse(result=[*said, *answers])
            said.append(HumanMessage(heard.problem))

    @override
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> ToolMessage:
        """Has a tool look."""
        investigation = cast("Investigation", cast("Any", request).runtime.context)
        told, views = await investigation.look(request.tool_call["id"] or "")
        return _told(request.tool_call, told, views)


def compiled(model: Model, value: JsonObject, *, name: str) -> Graph:
    """The graph of investigations by `model`.

    Args:
        model: calls the tools.
        value: JSON Schema of the answers' values, as far as it is that of every question.
        name: how the graph shows up in traces.
    """
    schema = {**answer_schema(value), "title": ANSWER, "description": "Ends with the answer."}
    return create_agent(
        TurnModel(model=model),
        middleware=[LookAround()],
        response_format=ToolStrategy(cast("Any", schema)),
        context_schema=Investigation,
        checkpointer=False,
        name=name,
    )


async def run(graph: Graph, investigation: Investigation, *, steps: int, config: RunnableConfig | None) -> None:
    """Investigates until there is a result.

    Args:
        graph: what `compiled` gave.
        investigation: is given its result.
        steps: of the graph at most; two for each turn whose tools look.
        config: whose handlers listen.
    """
    messages: list[BaseMessage] = [HumanMessage(investigation.opening[-1].text)]
    own: Any = {**(config or {}), "recursion_limit": steps}
    try:
        await graph.ainvoke({"messages": messages}, own, context=investigation)
    except GraphRecursionError:
        investigation.give_up(f"it took more than {steps} steps of the graph")


def _history(investigation: Investigation, messages: Sequence[BaseMessage]) -> Sequence[Message]:
    """The turns behind the question; what tools found stands in the order in which they were called."""
    turns: list[Message] = []
    for message in _in_call_order(messages):
        turn = from_langchain(message, investigation.model.image)
        if isinstance(message, ToolMessage) and investigation.eyes:
            views: tuple[RegionView, ...] = message.artifact or ()
            parts: tuple[Part, ...] = (*turn.parts, *(investigation.shown(view) for view in views))
            turn = replace(turn, parts=parts)
        turns.append(turn)
    return turns


def _in_call_order(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """`messages` with those of the tools of each turn by their id, which counts the steps."""
    ordered: list[BaseMessage] = []
    for message in messages:
        place = len(ordered)
        while isinstance(message, ToolMessage) and place and _stands_behind(ordered[place - 1], message):
            place -= 1
        ordered.insert(place, message)
    return ordered


def _stands_behind(other: BaseMessage, message: ToolMessage) -> bool:
    return isinstance(other, ToolMessage) and other.tool_call_id > message.tool_call_id


def _told(call: ToolCall, told: str, views: tuple[RegionView, ...] = ()) -> ToolMessage:
    """The message of a tool; one of the tool `answer` that is no error would end the graph."""
    status = "error" if call["name"] == ANSWER else "success"
    return ToolMessage(told, name=call["name"], tool_call_id=call["id"] or "", status=status, artifact=views or None)


def _form(tool: ToolSpec) -> JsonObject:
    """A tool in OpenAI's form, for handlers that listen."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
    }
