from __future__ import annotations

import asyncio
import json
import logging
import socket
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI
from PIL import Image as Pillow

from askance.chat import (
    ChatRequest,
    ChatResponse,
    ImagePart,
    Message,
    ModelId,
    ResponseFormat,
    Sampling,
    TextPart,
    Usage,
)
from askance.errors import (
    AuthError,
    BadRequest,
    CallError,
    ConfigError,
    ContextExceeded,
    ImagesRejected,
    MalformedReply,
    ModelError,
    ModelNotFound,
    NotHttp,
    RateLimited,
    ServerFault,
    UnknownFinish,
    Unreachable,
)
from askance.images import Image, Shown
from askance.models import Engine, RetryPolicy, get_model
from askance.models.budget import may_be_billed
from askance.models.openai.client import build_client
from askance.models.openai.openai_model import OpenAIModel, from_settings
from askance.models.settings import Azure, ModelSettings
from askance.replay import MemoryStore
from tests import replies
from tests.servers import SENTENCE, FakeEndpoint, Reply, Seen, chat_body, error

KEY = "sk-very-secret-0123456789abcdef"


def hello(**fields: Any) -> ChatRequest:
    return ChatRequest(
        model=ModelId("openai", "fake-model"), messages=(Message("user", (TextPart("Hello?"),)),), **fields
    )


def with_picture() -> ChatRequest:
    picture = ImagePart(Shown(Image.from_pil(Pillow.new("RGB", (2, 2)))))
    return ChatRequest(model=ModelId("openai", "fake-model"), messages=(Message("user", (picture, TextPart("What?"))),))


def at(endpoint: FakeEndpoint | str, **fields: Any) -> ModelSettings:
    address = endpoint if isinstance(endpoint, str) else endpoint.url
    return ModelSettings(id=ModelId("openai", "fake-model", address, api=fields.pop("api", "chat")), **fields)


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as served:
        yield served


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., OpenAIModel]]:
    """Models from settings, closed afterwards."""
    models: list[OpenAIModel] = []

    def made(*args: Any, **fields: Any) -> OpenAIModel:
        models.append(from_settings(at(*args, **fields)))
        return models[-1]

    yield made
    for model in models:
        await model.aclose()


Make = Callable[..., OpenAIModel]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_an_answer(endpoint: FakeEndpoint, make: Make, api: str) -> None:
    response = await make(endpoint, api=api).generate(hello())
    assert response == ChatResponse(text=SENTENCE, usage=Usage(input=11, output=7), model="fake-model")
    assert [seen.path for seen in endpoint.requests] == ["/v1/chat/completions" if api == "chat" else "/v1/responses"]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_schema_reaches_the_endpoint(endpoint: FakeEndpoint, make: Make, api: str) -> None:
    schema = {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}}
    response = await make(endpoint, api=api).generate(hello(response=ResponseFormat("json_schema", "a", schema)))
    assert json.loads(response.text) == {"names": ["cup", "wall"]}


async def test_the_model_is_asked_by_its_own_name(endpoint: FakeEndpoint) -> None:
    async with AsyncOpenAI(base_url=endpoint.url, api_key="-", max_retries=0) as client:
        await OpenAIModel(client, "its-own-name").generate(hello())
    assert endpoint.bodies[0]["model"] == "its-own-name"


async def test_the_identity_of_a_ready_client(endpoint: FakeEndpoint) -> None:
    async with AsyncOpenAI(base_url=endpoint.url, api_key="-") as client:
        assert OpenAIModel(client, "m").id == ModelId("openai", "m", endpoint.url)
    async with AsyncOpenAI(api_key="-") as client:
        assert OpenAIModel(client, "m", api="responses").id == ModelId("openai", "m", api="responses")


async def test_a_picture_is_sent_as_a_data_address(endpoint: FakeEndpoint, make: Make) -> None:
    await make(endpoint).generate(with_picture())
    url = endpoint.bodies[0]["messages"][0]["content"][0]["image_url"]["url"]
    assert url.startswith("data:image/png;base64,iVBORw0KGgo")


async def test_the_client_does_not_ask_again_by_itself(make: Make) -> None:
    with FakeEndpoint([replies.OVERLOADED] * 3) as endpoint:
        with pytest.raises(ServerFault):
            await make(endpoint).generate(hello())
        assert len(endpoint.requests) == 1


# Errors ---------------------------------------------------------------------------------------------------------------

AT = "http://127.0.0.1/v1"
UNREADABLE = f"{AT} sent a reply that cannot be read"
TOO_LONG = "The request is longer than the model 'fake-model' can read"
SHORTEN = "Shorten the prompt or the options, lower the token limit, or serve the model with a longer context."
LATER = "Try again later; the server's log may say more."
CHECK = "Check the server, and any proxy before it."


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        pytest.param(
            replies.WRONG_KEY,
            AuthError,
            f"{AT} asks for a key. "
            "Name the environment variable that holds it as `key_variable` in the model's settings.",
            id="wrong key",
        ),
        pytest.param(
            replies.OPENAI_TOO_LONG,
            ContextExceeded,
            f"{TOO_LONG}: This model's maximum context length is 128000 tokens. "
            f"However, your messages resulted in 130001 tokens. {SHORTEN}",
            id="too long for OpenAI",
        ),
        pytest.param(
            replies.VLLM_TOO_LONG,
            ContextExceeded,
            f"{TOO_LONG}: The decoder prompt (length 5000) is longer than the maximum model length of 512. {SHORTEN}",
            id="too long for vLLM",
        ),
        pytest.param(
            replies.SLOW_DOWN,
            RateLimited,
            f"{AT} asks to slow down: Rate limit reached for fake-model. Ask less at once, or wait.",
            id="rate limit",
        ),
        pytest.param(
            replies.NO_QUOTA,
            ModelError,
            f"{AT} gives no answer (status 429): You exceeded your current quota, please check your plan and billing "
            "details. Add credit, or choose another model.",
            id="no quota",
        ),
        pytest.param(replies.BROKEN, ServerFault, f"{AT} failed (status 500). {LATER}", id="HTML"),
        pytest.param(
            replies.NO_SCHEMA,
            BadRequest,
            f"{AT} rejects the request (status 400): Invalid parameter: 'response_format' of type 'json_schema' is not "
            "supported with this model.",
            id="no schema",
        ),
        pytest.param(
            replies.CUT_JSON,
            MalformedReply,
            f"{UNREADABLE}: It is no JSON text: " + """'{"id": "chat-1", "choices": [{"index":…'. """ + CHECK,
            id="half a JSON text",
        ),
        pytest.param(
            replies.CUT_BODY,
            MalformedReply,
            f"{UNREADABLE}: it breaks off (the connection ended before the body was whole). {CHECK}",
            id="half a body",
        ),
        pytest.param(Reply(), MalformedReply, f"{UNREADABLE}: It is empty. {CHECK}", id="empty body"),
        pytest.param(
            replies.RESET,
            Unreachable,
            f"{AT} cannot be reached: Connection reset by peer. Start the server, or check the address.",
            id="reset",
        ),
        pytest.param(
            Reply(body={"choices": []}),
            MalformedReply,
            f"{UNREADABLE}: The reply has no choices. {CHECK}",
            id="no choices",
        ),
        pytest.param(
            Reply(body="[" * 100_000),
            MalformedReply,
            f"{UNREADABLE}: It is no JSON text: '{'[' * 39}…'. {CHECK}",
            id="deep JSON",
        ),
        pytest.param(
            Reply(body={"error": {"code": 502, "message": "Provider returned error"}}),
            ServerFault,
            f"{AT} failed (status 502): Provider returned error. {LATER}",
            id="error in a good reply",
        ),
        pytest.param(Reply(body={"error": "Oh."}), MalformedReply, f"{UNREADABLE}: Oh. {CHECK}", id="vague error"),
    ],
)
async def test_errors_say_what_happened_and_the_way_out(
    make: Make, reply: Reply, kind: type[CallError], message: str
) -> None:
    with FakeEndpoint([reply]) as endpoint:
        with pytest.raises(CallError) as caught:
            await make(endpoint).generate(hello())
        assert str(caught.value).replace(f":{endpoint.port}", "") == message
        assert type(caught.value) is kind


@pytest.mark.parametrize(
    "reply", [replies.OPENAI_NO_IMAGES, replies.VLLM_NO_IMAGES, replies.VLLM_TEXT_MODEL, replies.LLAMACPP_NO_IMAGES]
)
async def test_a_model_that_takes_no_images(make: Make, reply: Reply) -> None:
    with FakeEndpoint([reply]) as endpoint, pytest.raises(ImagesRejected) as caught:
        await make(endpoint).generate(with_picture())
    assert str(caught.value) == "The model 'fake-model' takes no images. Choose a vision-language model for --vlm."


@pytest.mark.parametrize("reply", [replies.OPENAI_UNKNOWN_MODEL, replies.VLLM_UNKNOWN_MODEL])
async def test_an_unknown_model_names_those_that_are_served(make: Make, reply: Reply) -> None:
    with FakeEndpoint([reply, reply], models=("real-model", "fake-mode", "xyz")) as endpoint:
        model = make(endpoint)
        with pytest.raises(ModelNotFound):
            await model.generate(hello())
        with pytest.raises(ModelNotFound) as caught:
            await model.generate(hello())
        assert str(caught.value) == (
            f"{endpoint.url} does not know the model 'fake-model'. It serves 'fake-mode', 'real-model'."
        )
        assert len(endpoint.others) == 1


async def test_a_wrong_path(endpoint: FakeEndpoint, make: Make) -> None:
    with pytest.raises(BadRequest) as caught:
        await make(endpoint.url + "/wrong/place?").generate(hello())
    assert caught.value.hint == "Check the address: that of most servers ends in /v1."


async def test_a_server_that_is_down(make: Make) -> None:
    with FakeEndpoint() as endpoint:
        address = endpoint.url
    with pytest.raises(Unreachable) as caught:
        await make(address).generate(hello())
    message = f"{address} cannot be reached: Connection refused. Start the server, or check the address."
    assert str(caught.value) == message


async def test_a_call_that_is_cancelled_leaves_the_client_usable(make: Make) -> None:
    with FakeEndpoint([replies.SILENT]) as endpoint:
        model = make(endpoint)
        call = asyncio.ensure_future(model.generate(hello()))
        await asyncio.to_thread(endpoint.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await model.generate(hello())).text == SENTENCE


async def test_an_ending_that_nobody_knows_is_a_failure_that_names_it(make: Make) -> None:
    with FakeEndpoint([chat_body("A cup, br", finish="tired")]) as endpoint:
        with pytest.raises(UnknownFinish) as caught:
            await make(endpoint).generate(hello())
        assert str(caught.value) == (
            f"{endpoint.url} sent a reply that may not be whole: It ended for a reason that is not known: 'tired'. "
            f"{CHECK}"
        )


async def test_a_filter_on_the_request_is_an_outcome(make: Make) -> None:
    filtered = replies.error(400, "The response was filtered.", code="content_filter")
    with FakeEndpoint([filtered]) as endpoint:
        assert (await make(endpoint).generate(hello())).outcome == "filtered"


# What a model will not take -------------------------------------------------------------------------------------------


async def test_a_model_that_rejects_a_temperature_and_the_name_of_the_limit(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    request = hello(sampling=Sampling(temperature=0.2, max_tokens=9))
    key = request.key
    with FakeEndpoint([replies.NO_MAX_TOKENS, replies.NO_TEMPERATURE]) as endpoint:
        model = make(endpoint)
        first, second = await model.generate(request), await model.generate(request)
        fields = [{name for name in body if name not in {"model", "messages"}} for body in endpoint.bodies]
    assert first == second
    assert fields == [
        {"temperature", "max_tokens"},
        {"temperature", "max_completion_tokens"},
        {"max_completion_tokens"},
        {"max_completion_tokens"},
    ]
    assert model.noticed == {"token_field": "max_completion_tokens", "without": ["temperature"]}
    assert caplog.messages == [f"{model.id} takes no temperature: its answers are drawn at its default."]
    assert request.key == key


async def test_the_key_of_a_request_is_sent_where_that_is_asked_for(make: Make) -> None:
    """A try that failed has the key again; another form of the request has another."""
    fails = [Reply(status=503), replies.NO_MAX_TOKENS, Reply(status=503)]
    request = hello(sampling=Sampling(max_tokens=9))
    with FakeEndpoint(fails) as endpoint:
        records = MemoryStore()
        engine = Engine(records=records, policy=RetryPolicy(first_wait=0.01))
        model = get_model(f"openai:fake-model@{endpoint.url}", engine=engine, idempotency=True)
        await model.generate(replace(request, model=model.id))
        sent = [seen.headers.get("idempotency-key") for seen in endpoint.requests]
        (recorded,) = [record.key for record in records.of_kind("chat")]
        await make(endpoint).generate(request)
        assert only_header(endpoint, "idempotency-key") is None
    first, again, reworded, reworded_again = sent
    assert first == again != reworded == reworded_again
    assert {str(key).partition(".")[0] for key in sent} == {recorded}


async def test_a_model_that_rejects_penalties_is_asked_without(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    rejected = replies.error(400, "Unsupported parameter: 'frequency_penalty' is not supported with this model.")
    request = hello(extra={"frequency_penalty": 0.2, "top_k": 3})
    with FakeEndpoint([rejected]) as endpoint:
        model = make(endpoint)
        await model.generate(request)
        fields = [body.keys() & {"frequency_penalty", "top_k"} for body in endpoint.bodies]

    assert fields == [{"frequency_penalty", "top_k"}, {"top_k"}]
    assert model.noticed == {"without": ["frequency_penalty"]}
    assert caplog.messages == [f"{model.id} takes no frequency_penalty: its answers are drawn at its default."]


async def test_an_older_endpoint_takes_the_older_name(make: Make) -> None:
    older = replies.error(400, "Unrecognized request argument supplied: max_completion_tokens")
    with FakeEndpoint([older]) as endpoint:
        model = make(endpoint, token_field="max_completion_tokens")
        await model.generate(hello(sampling=Sampling(max_tokens=9)))
        assert endpoint.bodies[1]["max_tokens"] == 9
    assert model.noticed == {"token_field": "max_tokens"}


async def test_a_value_out_of_range_is_no_reason_to_leave_it_out(make: Make) -> None:
    wrong = replies.error(400, "Invalid 'temperature': must be at most 2.", param="temperature")
    with FakeEndpoint([wrong]) as endpoint:
        with pytest.raises(BadRequest):
            await make(endpoint).generate(hello(sampling=Sampling(temperature=9.0)))
        assert len(endpoint.requests) == 1


# Keys and clients -----------------------------------------------------------------------------------------------------


def only_header(endpoint: FakeEndpoint, name: str) -> str | None:
    return endpoint.requests[-1].headers.get(name)


async def test_a_key_for_openai_goes_nowhere_else(
    endpoint: FakeEndpoint, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"Authorization: Bearer {KEY}\nX-Own: secret")
    await make(endpoint).generate(hello())
    assert only_header(endpoint, "authorization") == "Bearer none"
    assert "secret" not in json.dumps(dict(endpoint.requests[0].headers))


async def test_a_named_variable_holds_the_key(
    endpoint: FakeEndpoint, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    await make(endpoint, key_variable="MY_KEY").generate(hello())
    assert only_header(endpoint, "authorization") == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            ModelSettings(id=ModelId("openai", "gpt-4o")), "'openai:gpt-4o': set OPENAI_API_KEY.", id="OpenAI"
        ),
        pytest.param(
            at("http://localhost:1/v1", key_variable="MY_KEY"),
            "'openai:fake-model@http://localhost:1/v1': set MY_KEY.",
            id="own variable",
        ),
        pytest.param(
            at("https://r.openai.azure.com", azure=Azure(api_version="2024-10-21")),
            "'openai:fake-model@https://r.openai.azure.com': set AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN.",
            id="Azure",
        ),
    ],
)
def test_no_key_is_said_before_anything_is_sent(settings: ModelSettings, message: str) -> None:
    with pytest.raises(AuthError) as caught:
        from_settings(settings)
    example = "openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1"
    assert str(caught.value) == f"There is no key for {message} Or use a server of your own, such as {example}."


async def test_the_address_of_another_tool_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.example/v1")
    model = from_settings(ModelSettings(id=ModelId("openai", "gpt-4o")))
    assert repr(model) == "OpenAIModel('gpt-4o', at 'https://api.openai.com/v1')"
    await model.aclose()


async def test_extra_headers_some_from_the_environment(
    endpoint: FakeEndpoint, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", KEY)
    await make(endpoint, headers={"X-Plain": "plain", "X-Token": "env:MY_TOKEN"}).generate(hello())
    assert (only_header(endpoint, "x-plain"), only_header(endpoint, "x-token")) == ("plain", KEY)


def test_a_header_whose_variable_is_not_set() -> None:
    with pytest.raises(ConfigError) as caught:
        from_settings(at("http://localhost:1/v1", headers={"X-Token": "env:MY_TOKEN"}))
    assert str(caught.value) == "The header 'X-Token' is read from MY_TOKEN, which is not set. Set it."


@pytest.mark.parametrize("ending", ["€", "\n", "\x01"])
def test_a_header_that_cannot_be_sent_is_not_shown(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", KEY + ending)
    with pytest.raises(ConfigError) as caught:
        from_settings(at("http://localhost:1/v1", headers={"X-Token": "env:MY_TOKEN"}))
    assert str(caught.value) == (
        "The value of the header 'X-Token' holds a line end or another character that no header can. "
        "Write it in printable ASCII."
    )
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert KEY not in shown


async def test_the_key_shows_nowhere(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    echo = replies.error(401, f"Incorrect API key provided: {KEY}.")
    with FakeEndpoint([echo]) as endpoint:
        model = make(endpoint, key_variable="MY_KEY")
        with pytest.raises(AuthError) as caught:
            await model.generate(hello())
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(model) + repr(vars(model))
    assert KEY not in shown


TROUBLE: dict[str, Reply] = {
    "wrong key": error(401, f"Not {KEY}."),
    "rejected": error(400, f"Not {KEY}."),
    "in the status line": Reply(status=500, phrase=KEY),
    "in a header": Reply(status=500, headers={"x-echo": KEY}),
    "sent on": Reply(status=307, headers={"location": f"http://elsewhere.example/{KEY}"}),
    "cut off": Reply(body=chat_body(), cut=40, headers={"x-echo": KEY}),
    "no clear length": Reply(body=KEY, headers={"content-length": KEY}),
    "no header": Reply(headers={KEY: f"\r\n{KEY}"}),
    "no chunk": Reply(body=f"{KEY}\r\n", headers={"transfer-encoding": "chunked", "Content-Length": "", "x-echo": KEY}),
    "reset": replies.RESET,
    "no JSON": Reply(body=KEY),
}


@pytest.mark.parametrize("reply", TROUBLE.values(), ids=TROUBLE)
async def test_no_trouble_shows_the_key_not_even_among_variables(
    make: Make, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeEndpoint([reply]) as endpoint:
        said = await with_variables(make(endpoint, key_variable="MY_KEY"))
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert ("generate" in said, KEY in said) == (True, False)


MISSING: dict[str, tuple[ModelSettings, type[Exception]]] = {
    "no key": (ModelSettings(id=ModelId("openai", "gpt-4o")), AuthError),
    "no address for Azure": (ModelSettings(id=ModelId("openai", "m"), azure=Azure(api_version="1")), ConfigError),
    "no other header": (at("http://localhost:1/v1", headers={"X-Other": "env:NOT_SET"}), ConfigError),
    "no address": (at("http://["), ValueError),
}


@pytest.mark.parametrize(("settings", "error"), MISSING.values(), ids=MISSING)
def test_a_client_that_cannot_be_made_shows_no_header_not_even_among_variables(
    settings: ModelSettings, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", KEY)
    headers = {"X-Token": "env:MY_TOKEN", **settings.headers}
    with pytest.raises(error) as caught:
        build_client(replace(settings, headers=headers))
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert ("X-Token" in shown, KEY in shown) == (True, False)


async def with_variables(model: OpenAIModel) -> str:
    """The traceback of a call that fails, with the variables of its frames."""
    try:
        await model.generate(hello())
    except CallError as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    return ""


async def test_a_call_that_reached_nobody_is_not_billed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as held, FakeEndpoint() as endpoint:
        held.bind(("127.0.0.1", 0))  # it does not listen, and nobody else can take the port
        nobody = f"127.0.0.1:{held.getsockname()[1]}/v1"
        with pytest.raises(Unreachable) as caught:
            await make(f"http://{nobody}").generate(hello())
        assert not may_be_billed(caught.value)
        monkeypatch.setenv("HTTP_PROXY", f"http://{nobody}")
        with pytest.raises(Unreachable) as caught:
            await make(endpoint).generate(hello())
        assert not may_be_billed(caught.value)
    assert endpoint.requests == []


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 2", b"What?\r\n\r\n"], ids=["nothing", "half a line", "no HTTP"])
async def test_a_call_that_was_read_may_be_billed(make: Make, reply: bytes) -> None:
    """The endpoint reads the request and closes: aiohttp's own error for that is akin to those for no connection."""

    async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}]}")
        writer.write(reply)
        writer.close()

    async with await asyncio.start_server(closes, "127.0.0.1", 0) as server:
        port: int = server.sockets[0].getsockname()[1]
        with pytest.raises((NotHttp, Unreachable)) as caught:
            await make(f"http://127.0.0.1:{port}/v1").generate(hello())
    assert may_be_billed(caught.value)


async def test_half_a_surrogate_pair_is_sent_escaped(endpoint: FakeEndpoint, make: Make) -> None:
    texts = ["a", "\ud83d?", "ü", "a\ud83d"]
    model = make(endpoint)
    for text in texts:
        asked = ChatRequest(model=ModelId("openai", "fake-model"), messages=(Message("user", (TextPart(text),)),))
        await model.generate(asked)
    assert [body["messages"][0]["content"] for body in endpoint.bodies] == texts
    assert "ü".encode() in endpoint.requests[2].body


async def test_azure_is_asked_by_its_own_path_and_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    with FakeEndpoint() as endpoint:
        root = endpoint.url.removesuffix("/v1")
        model = from_settings(at(root, azure=Azure(api_version="2024-10-21", deployment="my-deployment")))
        await model.generate(hello())
        await model.aclose()
        seen: Seen = endpoint.requests[0]
    assert seen.path == "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"
    assert (seen.headers["api-key"], "authorization" in seen.headers) == (KEY, False)


async def test_a_ready_azure_client_serves_too(endpoint: FakeEndpoint) -> None:
    root = endpoint.url.removesuffix("/v1")
    async with AsyncAzureOpenAI(azure_endpoint=root, api_version="2024-10-21", api_key="-", max_retries=0) as client:
        await OpenAIModel(client, "my-deployment").generate(hello())
    assert endpoint.requests[0].path.startswith("/openai/deployments/my-deployment/chat/completions")


async def test_hooks_and_transport_of_the_client_hold() -> None:
    hooked: list[str] = []

    async def hook(request: httpx2.Request) -> None:
        hooked.append(request.url.path)

    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=chat_body("Mocked.")))
    http = httpx2.AsyncClient(transport=transport, event_hooks={"request": [hook]})
    async with AsyncOpenAI(api_key="-", http_client=http) as client:
        response = await OpenAIModel(client, "m").generate(hello())
    assert (response.text, hooked) == ("Mocked.", ["/v1/chat/completions"])


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, chat_body()), (429, chat_body()), (200, {"error": {"code": 429, "message": "Slow down."}})],
    ids=["answered", "rejected", "rejected within an answer"],
)
async def test_the_headers_of_a_reply_are_handed_on(status: int, body: dict[str, Any]) -> None:
    limited = Reply(status=status, body=body, headers={"X-RateLimit-Remaining-Requests": "7", "x-other": "8"})
    with FakeEndpoint([limited]) as endpoint:
        model = from_settings(at(endpoint))
        try:
            said = (await model.generate(hello())).meta.headers
        except RateLimited as error:
            said = error.headers
        await model.aclose()
    assert {name: value for name, value in said.items() if name != "date"} == {"x-ratelimit-remaining-requests": "7"}
