from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import tracing_v2_enabled
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from PIL import Image as Pillow
from pydantic import PrivateAttr

from askance.chat import (
    ChatRequest,
    ChatResponse,
    ImagePart,
    Message,
    ModelId,
    ResponseFormat,
    Sampling,
    TextPart,
    ToolCall,
    ToolSpec,
)
from askance.errors import (
    AskanceError,
    AuthError,
    BadRequest,
    CallError,
    ConfigError,
    MissingExtra,
    ModelError,
    ModelNotFound,
    ServerFault,
    Unreachable,
)
from askance.images import Image, Shown
from askance.models import Engine, get_model
from askance.models.langchain.langchain_model import LangChainModel, from_settings, identity_of
from askance.models.settings import ModelSettings
from askance.replay import MemoryStore
from tests import replies
from tests.servers import SENTENCE, FakeEndpoint, chat_body, tool_call

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}


class Own(BaseChatModel):
    """A chat model of the user's that answers, or raises, what it was given, and keeps what it was called with."""

    answer: Any = "A cup."
    _calls: list[dict[str, Any]] = PrivateAttr(default_factory=list[dict[str, Any]])

    @property
    def _llm_type(self) -> str:
        return "own"

    @property
    def calls(self) -> list[dict[str, Any]]:
        return self._calls

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self._calls.append({"messages": messages, "stop": stop, "handlers": run_manager.handlers, **kwargs})
        if isinstance(self.answer, Exception):
            raise self.answer
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.answer))])


def hello(**fields: Any) -> ChatRequest:
    message = Message("user", (TextPart("Hello?"),))
    return ChatRequest(model=ModelId("langchain", "m"), messages=(message,), **fields)


def with_picture() -> ChatRequest:
    picture = ImagePart(Shown(Image.from_pil(Pillow.new("RGB", (2, 2)))))
    return ChatRequest(model=ModelId("langchain", "m"), messages=(Message("user", (picture, TextPart("What?"))),))


def chat_openai(endpoint: FakeEndpoint, **fields: Any) -> ChatOpenAI:
    return ChatOpenAI(model="fake-model", base_url=endpoint.url, api_key="-", max_retries=0, **fields)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as served:
        yield served


# Any chat model -------------------------------------------------------------------------------------------------------


async def test_an_answer_of_a_model_of_ones_own() -> None:
    assert await LangChainModel(Own()).generate(hello()) == ChatResponse(text="A cup.")


async def test_stop_and_extras_reach_the_model() -> None:
    own = Own()
    await LangChainModel(own).generate(hello(sampling=Sampling(stop=("END",)), extra={"reasoning_effort": "low"}))
    assert (own.calls[0]["stop"], own.calls[0]["reasoning_effort"]) == (["END"], "low")


async def test_nothing_of_the_callers_listens_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    own = Own()

    async def ask(text: str) -> ChatResponse:
        return await LangChainModel(own).generate(hello())

    with tracing_v2_enabled(client=object()):  # pyright: ignore[reportArgumentType]
        await RunnableLambda(ask).with_config(callbacks=[BaseCallbackHandler()]).ainvoke("?", {"callbacks": []})
    assert own.calls[0]["handlers"] == []


async def test_the_cache_of_langchain_does_not_answer() -> None:
    own = FakeListChatModel(responses=["first", "second"])
    set_llm_cache(InMemoryCache())
    try:
        model = LangChainModel(own)
        texts = [(await model.generate(hello())).text for _ in range(2)]
    finally:
        set_llm_cache(None)
    assert (texts, own.cache) == (["first", "second"], None)


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        pytest.param(hello(sampling=Sampling(seed=1)), "seed", id="seed"),
        pytest.param(hello(sampling=Sampling(top_p=0.5)), "top p", id="top_p"),
        pytest.param(hello(sampling=Sampling(logprobs=0)), "log-probabilities", id="logprobs"),
        pytest.param(hello(response=ResponseFormat("json_schema", "a", SCHEMA)), "a response format", id="schema"),
        pytest.param(hello(tools=(ToolSpec("look", "", {"type": "object"}),)), "tools", id="tools"),
    ],
)
async def test_what_a_class_does_not_take_is_said(request_: ChatRequest, what: str) -> None:
    own = Own()
    with pytest.raises(BadRequest) as caught:
        await LangChainModel(own).generate(request_)
    assert (str(caught.value), own.calls) == (f"Own takes no {what}.", [])


async def test_a_limit_of_tokens_is_left_out_where_there_is_none() -> None:
    assert (await LangChainModel(Own()).generate(hello(sampling=Sampling(max_tokens=9)))).text == "A cup."


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        pytest.param(ValueError("Oh no"), ModelError, "Own failed: ValueError: Oh no.", id="anything"),
        pytest.param(StopIteration(), ModelError, "Own failed: RuntimeError.", id="exhausted"),
        pytest.param(ConnectionRefusedError(111, "?"), Unreachable, "Own cannot be reached: Connection ref", id="down"),
    ],
)
async def test_whatever_a_model_raises_is_a_call_without_an_answer(
    raised: Exception, kind: type[CallError], message: str
) -> None:
    with pytest.raises(CallError) as caught:
        await LangChainModel(Own(answer=raised)).generate(hello())
    assert type(caught.value) is kind
    assert str(caught.value).startswith(message)


async def test_an_error_with_a_status_is_read_by_it() -> None:
    class ResponseError(Exception):
        status_code = 404

    error = ResponseError("model 'm' not found, try pulling it first")
    with pytest.raises(ModelNotFound):
        await LangChainModel(Own(answer=error)).generate(hello())


# ChatOpenAI against an endpoint ---------------------------------------------------------------------------------------


async def test_a_picture_arrives_as_a_data_address(endpoint: FakeEndpoint) -> None:
    await LangChainModel(chat_openai(endpoint)).generate(with_picture())
    url = endpoint.bodies[0]["messages"][0]["content"][0]["image_url"]["url"]
    assert url.startswith("data:image/png;base64,iVBORw0KGgo")


async def test_sampling_is_set_on_a_copy(endpoint: FakeEndpoint) -> None:
    chat_model = chat_openai(endpoint, temperature=0.9)
    sampling = Sampling(temperature=0, top_p=0.5, seed=7, max_tokens=9, stop=("END",), logprobs=2)
    await LangChainModel(chat_model).generate(hello(sampling=sampling))
    sent = {name: value for name, value in endpoint.bodies[0].items() if name not in {"messages", "model", "stream"}}
    assert sent == {
        "temperature": 0,
        "top_p": 0.5,
        "seed": 7,
        "max_completion_tokens": 9,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 2,
    }
    assert (chat_model.temperature, chat_model.max_tokens) == (0.9, None)


async def test_a_schema_reaches_the_endpoint(endpoint: FakeEndpoint) -> None:
    form = ResponseFormat("json_schema", "a", SCHEMA)
    response = await LangChainModel(chat_openai(endpoint)).generate(hello(response=form))
    assert json.loads(response.text) == {"name": "cup"}
    assert endpoint.bodies[0]["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize(("finish", "outcome"), [("length", "truncated"), ("content_filter", "filtered")])
async def test_a_structured_answer_that_ends_early_is_an_outcome(finish: str, outcome: str) -> None:
    with FakeEndpoint([chat_body('{"na', finish=finish)]) as endpoint:
        model = LangChainModel(chat_openai(endpoint))
        response = await model.generate(hello(response=ResponseFormat("json_schema", "a", SCHEMA)))
    assert response.outcome == outcome


LOOK_CHOICE = {"type": "function", "function": {"name": "look"}}


@pytest.mark.parametrize(
    ("asks", "sends"),
    [(LOOK_CHOICE, LOOK_CHOICE), ("look", LOOK_CHOICE), ("required", "required"), ("auto", "auto")],
)
async def test_a_tool_call(endpoint: FakeEndpoint, asks: Any, sends: Any) -> None:
    asked = hello(tools=(ToolSpec("look", "Looks.", {"type": "object"}),), extra={"tool_choice": asks})
    with FakeEndpoint([chat_body(None, tool_calls=[tool_call("look", {"x": 1})], finish="tool_calls")]) as endpoint:
        response = await LangChainModel(chat_openai(endpoint)).generate(asked)
        choice = endpoint.bodies[0]["tool_choice"]
    assert (response.tool_calls, response.finish) == ((ToolCall("call-1", "look", '{"x": 1}'),), "tool_calls")
    assert choice == sends


async def test_a_class_that_takes_no_tools_is_found_to_call_none() -> None:
    words = FakeListChatModel(responses=["blue"])
    model = get_model(words, identity="fake", engine=Engine(records=MemoryStore()))
    assert (await model.calls_tools(), await model.output_mode()) == (False, "prompted")


async def test_a_picture_of_a_tool_follows_as_a_turn_of_the_user(endpoint: FakeEndpoint) -> None:
    picture = ImagePart(Shown(Image.from_pil(Pillow.new("RGB", (2, 2)))))
    called = Message("assistant", (), (ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")))
    results = (
        Message("tool", (TextPart("a cup"), picture), tool_call_id="c1"),
        Message("tool", (TextPart("a wall"),), tool_call_id="c2"),
    )
    turns = (Message("user", (TextPart("Hi"),)), called, *results)
    asked = ChatRequest(model=ModelId("langchain", "m"), messages=turns)
    await LangChainModel(chat_openai(endpoint)).generate(asked)
    [body] = endpoint.bodies
    sent = [(turn["role"], "image_url" in str(turn["content"])) for turn in body["messages"][-3:]]
    assert sent == [("tool", False), ("tool", False), ("user", True)]


# Identity -------------------------------------------------------------------------------------------------------------


def test_identities_of_known_classes() -> None:
    class Derived(ChatOpenAI): ...

    key: Any = "sk-secret"
    own = ChatOpenAI(model="gpt-4o", api_key=key)
    tuned = ChatOpenAI(model="gpt-4o", api_key=key, temperature=0.5, model_kwargs={"x": 1}, timeout=3, max_retries=0)
    local = ChatOpenAI(model="m", api_key=key, base_url="http://me:secret@localhost:8000/v1/")
    azure = AzureChatOpenAI(
        model="gpt-4o", api_key=key, azure_endpoint="https://r.openai.azure.com", api_version="1", azure_deployment="d"
    )
    assert [identity_of(each) for each in (own, tuned, local, azure, Derived(model="m", api_key=key), Own())] == [
        ModelId("langchain", "langchain_openai.ChatOpenAI:gpt-4o"),
        ModelId("langchain", 'langchain_openai.ChatOpenAI:gpt-4o {"model_kwargs":{"x":1},"temperature":0.5}'),
        ModelId("langchain", "langchain_openai.ChatOpenAI:m", "http://localhost:8000/v1"),
        ModelId(
            "langchain",
            'langchain_openai.AzureChatOpenAI:d {"openai_api_version":"1"}',
            "https://r.openai.azure.com/openai/deployments/d",
        ),
        None,
        None,
    ]


def test_a_name_given_stands_for_all() -> None:
    assert LangChainModel(Own(), identity="mine").id == ModelId("langchain", "mine", name="mine")


# From a spec ----------------------------------------------------------------------------------------------------------


def spec(model: str, endpoint: FakeEndpoint | None = None, **fields: Any) -> ModelSettings:
    return ModelSettings(id=ModelId("langchain", model, endpoint.url if endpoint else None), **fields)


async def test_a_spec_makes_the_model_and_keeps_its_key_to_itself(
    endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    model = from_settings(spec("openai:fake-model", endpoint, headers={"X-Own": "1"}))
    assert (await model.generate(hello())).text == SENTENCE
    headers = endpoint.requests[0].headers
    assert (headers["authorization"], headers["x-own"]) == ("Bearer none", "1")


async def test_a_spec_does_not_ask_again_by_itself() -> None:
    with FakeEndpoint([replies.OVERLOADED] * 3) as endpoint:
        with pytest.raises(ServerFault):
            await from_settings(spec("openai:fake-model", endpoint)).generate(hello())
        assert len(endpoint.requests) == 1


async def test_a_named_variable_holds_the_key(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-mine")
    await from_settings(spec("openai:fake-model", endpoint, key_variable="MY_KEY")).generate(hello())
    assert endpoint.requests[0].headers["authorization"] == "Bearer sk-mine"


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        pytest.param(
            spec("openai:gpt-4o", key_variable="MY_KEY"),
            AuthError,
            "There is no key for 'langchain:openai:gpt-4o'. Set MY_KEY.",
            id="named variable",
        ),
        pytest.param(
            spec("openai:gpt-4o"),
            AuthError,
            "There is no key for 'langchain:openai:gpt-4o'. Set the variable that its provider's package names.",
            id="no key",
        ),
        pytest.param(
            spec("anthropic:claude"),
            MissingExtra,
            "Initializing ChatAnthropic requires the langchain-anthropic package. "
            "Please install it with `pip install langchain-anthropic`.",
            id="provider not installed",
        ),
        pytest.param(
            spec("nobody:m"),
            ConfigError,
            "LangChain makes no model of 'langchain:nobody:m': Unable to infer model provider for model='nobody:m'.",
            id="unknown provider",
        ),
    ],
)
def test_a_spec_that_makes_no_model(settings: ModelSettings, kind: type[AskanceError], message: str) -> None:
    with pytest.raises(kind) as caught:
        from_settings(settings)
    assert str(caught.value).startswith(message)


def test_a_spec_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MissingExtra) as caught:
        from_settings(spec("openai:gpt-4o"))
    message = """LangChain's models need the package `langchain`. Install it: pip install "askance[langchain]"."""
    assert str(caught.value) == message
