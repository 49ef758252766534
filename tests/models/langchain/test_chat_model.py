from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain import agents
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel
from typing_extensions import TypedDict

from askance.chat import ChatRequest, ChatResponse, Message, ResponseFormat, TextPart, ToolCall, Usage
from askance.errors import CallError, ConfigError, Filtered, InvalidOutput, Refused, ServerFault, Truncated, UsageError
from askance.images import Image
from askance.models import Capabilities, Engine, Model, RetryPolicy, ScriptedModel, as_langchain, get_model, run_sync
from askance.models.capabilities import RED_SQUARE
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

NOT_OF_THE_FORM = "The answer is not of the form asked for"
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
    with pytest.raises(
        UsageError, match=r"^There is no tool 'leap' to choose\. Choose one of the tools that are bound\.$"
    ):
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


CUT_CALL = ToolCall("c1", "Seeing", '{"names": ["cup"], "od')
NO_ANSWERS: dict[str, tuple[ChatResponse, type[CallError], str]] = {
    "truncated": (
        ChatResponse(text='{"names": ["cup", "br', finish="length"),
        Truncated,
        "The answer was cut off at the token limit. Raise `max_tokens`.",
    ),
    "whole, but truncated": (
        ChatResponse(text=ANSWER.model_dump_json(), tool_calls=(CUT_CALL,), finish="length"),
        Truncated,
        "The answer was cut off at the token limit. Raise `max_tokens`.",
    ),
    "refused": (ChatResponse(refusal="I will not."), Refused, "The model declined to answer: I will not."),
    "refused without a word": (ChatResponse(finish="refusal"), Refused, "The model declined to answer."),
    "filtered": (
        ChatResponse(finish="content_filter"),
        Filtered,
        "A content filter of the endpoint stopped the answer.",
    ),
}


@pytest.mark.parametrize("schema", [Seeing, SeeingDict])
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize(("reply", "kind", "message"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_structured_output_of_what_is_no_answer(
    reply: ChatResponse, kind: type[CallError], message: str, method: Any, schema: type
) -> None:
    _, model = scripted(reply, schema="enforced")
    chat_model = as_langchain(model)
    with pytest.raises(kind) as caught:
        chat_model.with_structured_output(schema, method=method).invoke("What?")
    assert str(caught.value) == message
    got: Any = chat_model.with_structured_output(schema, method=method, include_raw=True).invoke("What?")
    assert (got["raw"].text, got["parsed"], type(got["parsing_error"])) == (reply.text, None, kind)


@pytest.mark.parametrize(
    ("reply", "finish", "beside"),
    [
        pytest.param(ChatResponse(refusal="No."), "refusal", {"refusal": "No."}, id="refused"),
        pytest.param(ChatResponse(finish="content_filter"), "content_filter", {}, id="filtered"),
        pytest.param(ChatResponse(text="A cup, br", finish="length"), "length", {}, id="truncated"),
    ],
)
def test_a_message_says_that_it_is_no_answer(reply: ChatResponse, finish: str, beside: dict[str, str]) -> None:
    _, model = scripted(reply)
    message = as_langchain(model).invoke("What?")
    assert (message.response_metadata["finish_reason"], message.additional_kwargs) == (finish, beside)


@pytest.mark.parametrize(
    ("schema", "text", "why"),
    [
        pytest.param(Seeing, '{"names": ["cup", "br', "The answer is no JSON text.", id="half"),
        pytest.param(Seeing, '{"names": []} or so', "The answer is no JSON text.", id="words behind"),
        pytest.param(SeeingDict, '{"names": [NaN]}', "The answer is no JSON text.", id="no number"),
        pytest.param(SeeingDict, "[]", f"{NOT_OF_THE_FORM}: it is no JSON object.", id="list"),
        pytest.param(SeeingDict, "{}", f"{NOT_OF_THE_FORM}: it lacks 'names'.", id="field missing"),
        pytest.param(
            Seeing,
            '{"names": "cup"}',
            f"{NOT_OF_THE_FORM}: names: Input should be a valid array; odd: Field required.",
            id="other fields",
        ),
    ],
)
async def test_structured_output_is_read_strictly(schema: type, text: str, why: str) -> None:
    _, model = scripted(text, schema="enforced")
    with pytest.raises(InvalidOutput) as caught:
        await as_langchain(model).with_structured_output(schema).ainvoke("What?")
    assert (str(caught.value), caught.value.raw) == (why, text)


def test_structured_output_in_a_code_fence() -> None:
    _, model = scripted(f"```json\n{ANSWER.model_dump_json()}\n```\n", schema="refused")
    assert as_langchain(model).with_structured_output(Seeing).invoke("What?") == ANSWER


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        pytest.param((), "it does not call 'Seeing'", id="no call"),
        pytest.param((CUT_CALL,), "the arguments of 'Seeing' are no JSON object", id="half a call"),
    ],
)
def test_structured_output_without_a_call_that_can_be_read(calls: tuple[ToolCall, ...], why: str) -> None:
    _, model = scripted(ChatResponse(text="Hm.", tool_calls=calls))
    with pytest.raises(InvalidOutput) as caught:
        as_langchain(model).with_structured_output(Seeing, method="function_calling").invoke("What?")
    assert str(caught.value) == f"{NOT_OF_THE_FORM}: {why}."


def test_structured_output_takes_nothing_that_it_would_drop() -> None:
    _, model = scripted("Hm.")
    with pytest.raises(UsageError, match=r"^'tools' cannot be asked of structured output\. Leave them out\.$"):
        as_langchain(model).with_structured_output(Seeing, strict=True, tools=[])


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
    with pytest.raises(
        UsageError,
        match=r"^'colour' cannot be bound to a model of askance\. "
        r"Set what belongs to the model where it is made: `get_model`\.$",
    ):
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


# Handlers and tracing -------------------------------------------------------------------------------------------------


class Listener(BaseCallbackHandler):
    """Keeps what handlers are told of a chat call."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **about: Any) -> None:
        self.told.append([message.content for message in messages[0]])


PICTURE = Image.from_bytes(RED_SQUARE)
BLOCK = {"type": "image", "base64": b64encode(RED_SQUARE).decode(), "mime_type": "image/png"}
QUESTION = HumanMessage(["Look: ", BLOCK, {"type": "text", "text": "What?"}])


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "batch", "stream"])
async def test_handlers_see_pictures_by_digest_and_the_model_sees_them(way: str) -> None:
    script, model = scripted("A red square.")
    listener = Listener()
    chat_model = as_langchain(model)
    config: Any = {"callbacks": [listener]}
    ways: dict[str, Callable[[], Any]] = {
        "invoke": lambda: chat_model.invoke([QUESTION], config),
        "ainvoke": lambda: asyncio.run(chat_model.ainvoke([QUESTION], config)),
        "batch": lambda: chat_model.batch([[QUESTION]], config),
        "stream": lambda: list(chat_model.stream([QUESTION], config)),
    }
    await asyncio.to_thread(ways[way])
    digest = {"type": "text", "text": f"[image sha256:{PICTURE.sha256}]"}
    assert listener.told == [[["Look: ", digest, {"type": "text", "text": "What?"}]]]
    asked = last_request(script).messages
    assert asked == (Message("user", (TextPart("Look: "), model.image(PICTURE), TextPart("What?"))),)


TRACED = """
import sys
from langchain_core.tracers import langchain as tracers
from askance.models import Capabilities, Engine, ScriptedModel, as_langchain, get_model, run_sync
from askance.replay import MemoryStore

class Collector:
    told, tracing_queue = 0, None
    def create_run(self, **run):
        self.told += 1
    def update_run(self, **run):
        pass

collector, records = Collector(), MemoryStore()
tracers.get_client = lambda: collector
script = ScriptedModel(lambda _: "A cup.", identity="seen", capabilities=Capabilities(schema="enforced"))
for mode in ("auto", "replay"):
    chat_model = as_langchain(get_model(script, engine=Engine(mode=mode, records=records)))
    chat_model.invoke("What?")
    run_sync(chat_model.ainvoke("What?"))
    tracers.wait_for_all_tracers()
    print(mode, collector.told, len(script.requests))
    collector.told = 0
"""


def test_tracing_from_the_environment_is_off_in_a_replay() -> None:
    env = {**os.environ, "LANGSMITH_TRACING": "true"}
    ran = subprocess.run([sys.executable, "-c", TRACED], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["auto 2 1", "replay 0 1"]


async def test_there_and_back_again(endpoint: FakeEndpoint, asked: Asked) -> None:
    inner = as_langchain(asked(endpoint))
    outer = as_langchain(get_model(inner, identity="twice", engine=Engine(mode="live", records=MemoryStore())))
    messages = await asyncio.gather(*(outer.ainvoke(f"{number}?") for number in range(3)))
    assert [message.text for message in messages] == [SENTENCE] * 3


def test_a_model_is_named_by_its_spec() -> None:
    assert as_langchain("demo").name is None

    with pytest.raises(ConfigError, match=r"^No model is called 'gpt-4o'"):
        as_langchain("gpt-4o")


def test_once_for_each_class_it_is_said_that_nothing_is_recorded(caplog: pytest.LogCaptureFixture) -> None:
    class Nameless(FakeListChatModel):
        pass

    for _ in range(2):
        get_model(Nameless(responses=["x"]))
    get_model(Nameless(responses=["x"]), identity="named")

    (message,) = [record.getMessage() for record in caplog.records]
    assert message == (
        "The answers of Nameless are not recorded: nothing tells them from another model's. "
        'Give it a name: `get_model(model, identity="…")`.'
    )
