from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain import agents
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from askance.chat import ChatRequest, ChatResponse, ResponseFormat, ToolCall, Usage
from askance.errors import ServerFault, UsageError
from askance.models import Capabilities, Engine, Model, RetryPolicy, ScriptedModel, as_langchain, get_model, run_sync
from askance.replay import MemoryStore
from tests import replies
from tests.servers import SENTENCE, FakeEndpoint, Seen, chat_body, tool_call


class Seeing(BaseModel):
    """What is seen."""

    names: list[str]
    odd: bool


class SeeingDict(TypedDict):
    """What is seen."""

    names: list[str]


Asked = Callable[[FakeEndpoint], Model]

ANSWER = Seeing(names=["cup", "wall"], odd=True)


@tool
def look(place: str) -> str:
    """Looks at a place."""
    return f"There is a cup at the {place}."


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as served:
        yield served


@pytest.fixture
def asked() -> Iterator[Asked]:
    """The model of an endpoint, with records of its own; closed afterwards."""
    models: list[Model] = []

    def made(endpoint: FakeEndpoint) -> Model:
        engine = Engine(records=MemoryStore(), policy=RetryPolicy(tries=1))
        models.append(get_model(f"openai:fake-model@{endpoint.url}", engine=engine))
        return models[-1]

    yield made
    for model in models:
        run_sync(model.aclose())


def scripted(reply: Any, **can: Any) -> tuple[ScriptedModel, Model]:
    script = ScriptedModel([reply] * 9, capabilities=Capabilities(**can))
    return script, get_model(script, engine=Engine(mode="live", records=MemoryStore()))


def last_request(script: ScriptedModel) -> ChatRequest:
    return script.requests[-1]


def test_invoke(endpoint: FakeEndpoint, asked: Asked) -> None:
    message = as_langchain(asked(endpoint)).invoke("What?")
    assert message.content == SENTENCE
    assert message.usage_metadata == {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    assert message.response_metadata == {"finish_reason": "stop", "model_name": "fake-model", "replayed": False}


async def test_ainvoke_answers_from_the_records_the_second_time(endpoint: FakeEndpoint, asked: Asked) -> None:
    chat_model = as_langchain(asked(endpoint))
    messages = [await chat_model.ainvoke("What?") for _ in range(2)]
    assert [message.response_metadata["replayed"] for message in messages] == [False, True]
    assert len(endpoint.requests) == 1


def test_batch(endpoint: FakeEndpoint, asked: Asked) -> None:
    texts = [message.text for message in as_langchain(asked(endpoint)).batch(["One?", "Two?", "One?"])]
    assert texts == [SENTENCE] * 3
    assert len(endpoint.requests) == 2


async def test_a_synchronous_call_inside_a_running_loop(endpoint: FakeEndpoint, asked: Asked) -> None:
    assert as_langchain(asked(endpoint)).invoke("What?").text == SENTENCE


async def test_a_stream_is_one_piece(endpoint: FakeEndpoint, asked: Asked) -> None:
    chunks = [chunk.text async for chunk in as_langchain(asked(endpoint)).astream("What?")]
    assert chunks == [SENTENCE]


def test_an_agent_calls_its_tool_and_answers(asked: Asked) -> None:
    def play(seen: Seen) -> dict[str, Any]:
        if seen.json["messages"][-1]["role"] == "tool":
            return chat_body("A cup, it says.")
        return chat_body(None, tool_calls=[tool_call("look", {"place": "wall"})], finish="tool_calls")

    with FakeEndpoint(play) as endpoint:
        create_agent: Any = agents.create_agent  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        agent = create_agent(as_langchain(asked(endpoint)), [look])
        messages = agent.invoke({"messages": [HumanMessage("What is at the wall?")]})["messages"]
        sent = endpoint.bodies[1]["messages"][1:]
    assert [type(message) for message in messages] == [HumanMessage, AIMessage, ToolMessage, AIMessage]
    assert messages[-1].text == "A cup, it says."
    assert [turn["role"] for turn in sent] == ["assistant", "tool"]
    assert sent[1]["content"] == "There is a cup at the wall."


def test_tools_and_their_choice(endpoint: FakeEndpoint, asked: Asked) -> None:
    chat_model = as_langchain(asked(endpoint))
    for choice in (None, "any", "look", "none"):
        chat_model.bind_tools([look], tool_choice=choice).invoke(f"{choice}?")
    assert [body["tools"][0]["function"]["name"] for body in endpoint.bodies] == ["look"] * 4
    assert [body.get("tool_choice") for body in endpoint.bodies] == [
        None,
        "required",
        {"type": "function", "function": {"name": "look"}},
        "none",
    ]


def test_a_choice_that_is_no_tool(endpoint: FakeEndpoint, asked: Asked) -> None:
    with pytest.raises(UsageError, match=r"^There is no tool 'leap' to choose\.$"):
        as_langchain(asked(endpoint)).bind_tools([look], tool_choice="leap")


def test_structured_output_held_to_the_schema(endpoint: FakeEndpoint, asked: Asked) -> None:
    chat_model = as_langchain(asked(endpoint))
    assert chat_model.with_structured_output(Seeing).invoke("What?") == ANSWER
    assert chat_model.with_structured_output(SeeingDict).invoke("What?") == {"names": ["cup", "wall"]}
    assert endpoint.bodies[-1]["response_format"]["json_schema"]["name"] == "SeeingDict"


def test_structured_output_with_what_it_was_read_from(endpoint: FakeEndpoint, asked: Asked) -> None:
    got: Any = as_langchain(asked(endpoint)).with_structured_output(Seeing, include_raw=True).invoke("What?")
    assert (got["parsed"], got["parsing_error"]) == (ANSWER, None)
    assert got["raw"].text == '{"names": ["cup", "wall"], "odd": true}'


def test_structured_output_that_cannot_be_read() -> None:
    _, model = scripted("No idea.", schema="enforced")
    got: Any = as_langchain(model).with_structured_output(Seeing, include_raw=True).invoke("What?")
    assert (got["raw"].text, got["parsed"], got["parsing_error"] is None) == ("No idea.", None, False)


@pytest.mark.parametrize(
    ("can", "response"),
    [
        pytest.param({"schema": "ignored", "json_object": True}, ResponseFormat("json_object"), id="JSON object"),
        pytest.param({"schema": "refused"}, None, id="words alone"),
    ],
)
def test_structured_output_below_a_schema_asks_in_words(can: dict[str, Any], response: ResponseFormat | None) -> None:
    script, model = scripted(ANSWER.model_dump_json(), **can)
    assert as_langchain(model).with_structured_output(Seeing).invoke("What?") == ANSWER
    request = last_request(script)
    assert request.response == response
    assert request.messages[-1].text.startswith(
        "What?\n\nReply with JSON that satisfies this JSON Schema, and nothing else:\n{"
    )


def test_structured_output_by_a_tool_call() -> None:
    call = ToolCall("c1", "Seeing", ANSWER.model_dump_json())
    script, model = scripted(ChatResponse(tool_calls=(call,), finish="tool_calls"))
    chat_model = as_langchain(model).with_structured_output(Seeing, method="function_calling")
    assert chat_model.invoke("What?") == ANSWER
    assert last_request(script).extra == {"tool_choice": "required"}


def test_what_is_bound_enters_the_request() -> None:
    script, model = scripted("Hm.")
    as_langchain(model).bind(temperature=0.5, max_tokens=9, stop=["END"], draw=2).invoke("What?")
    request = last_request(script)
    assert (request.sampling.canonical(), request.draw) == ({"temperature": 0.5, "max_tokens": 9, "stop": ["END"]}, 2)


def test_what_cannot_be_bound() -> None:
    _, model = scripted("Hm.")
    with pytest.raises(UsageError, match=r"^'colour' cannot be bound to a model of askance\.$"):
        as_langchain(model).bind(colour="red").invoke("What?")


def test_thinking_and_refusals_stand_beside_the_text() -> None:
    usage = Usage(input=3, output=2, cached=1, thinking=1)
    _, model = scripted(ChatResponse(thinking="Hm.", refusal="I will not.", finish="refusal", usage=usage))
    message = as_langchain(model).invoke("What?")
    assert message.additional_kwargs == {"reasoning_content": "Hm.", "refusal": "I will not."}
    assert message.usage_metadata == {
        "input_tokens": 3,
        "output_tokens": 2,
        "total_tokens": 5,
        "input_token_details": {"cache_read": 1},
        "output_token_details": {"reasoning": 1},
    }


def test_an_error_stays_itself(asked: Asked) -> None:
    with FakeEndpoint([replies.OVERLOADED]) as endpoint, pytest.raises(ServerFault):
        as_langchain(asked(endpoint)).invoke("What?")


async def test_there_and_back_again(endpoint: FakeEndpoint, asked: Asked) -> None:
    inner = as_langchain(asked(endpoint))
    outer = as_langchain(get_model(inner, identity="twice", engine=Engine(mode="live", records=MemoryStore())))
    messages = await asyncio.gather(*(outer.ainvoke(f"{number}?") for number in range(3)))
    assert [message.text for message in messages] == [SENTENCE] * 3
