"""Requests that are sent again with another body are as the client's own, whatever comes back."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from openai import AsyncOpenAI

from askance.chat import ChatRequest, ChatResponse, Message, ModelId, Sampling, TextPart
from askance.errors import CallError
from askance.models.openai.model import OpenAIModel, from_settings
from askance.models.settings import Azure, ModelSettings
from tests import replies
from tests.servers import FakeEndpoint, Reply, Seen

KEY = "sk-very-secret-0123456789abcdef"


def ask(text: str) -> ChatRequest:
    return ChatRequest(model=ModelId("openai", "fake-model"), messages=(Message("user", (TextPart(text),)),))


def model_at(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> OpenAIModel:
    monkeypatch.setenv("SOME_KEY", KEY)
    monkeypatch.setenv("SOME_HEADER", "whose-it-is")
    return from_settings(
        ModelSettings(
            id=ModelId("openai", "fake-model", endpoint.url, **fields),
            key_variable="SOME_KEY",
            headers={"x-team": "env:SOME_HEADER"},
        )
    )


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_later_requests_differ_in_their_body_alone(monkeypatch: pytest.MonkeyPatch, api: str) -> None:
    with FakeEndpoint() as endpoint:
        model = model_at(endpoint, monkeypatch, api=api)
        for text in ("One?", "Two, in other words: ü?", "One?"):
            await model.generate(ask(text))
        await model.aclose()

    def parts(seen: Seen) -> tuple[object, ...]:
        headers = {name: value for name, value in seen.headers.items() if name != "content-length"}
        return seen.method, seen.path, headers

    one, two, three = endpoint.requests
    assert (parts(two), parts(three)) == (parts(one), parts(one))
    assert (two.headers["authorization"], two.headers["x-team"]) == (f"Bearer {KEY}", "whose-it-is")
    assert (three.body, "ü" in two.body.decode()) == (one.body, True)
    assert int(two.headers["content-length"]) == len(two.body)


async def test_half_a_surrogate_pair_is_sent_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeEndpoint() as endpoint:
        model = model_at(endpoint, monkeypatch)
        for text in ("a", "\ud83d?", "a\ud83d"):
            await model.generate(ask(text))
        await model.aclose()
    assert [body["messages"][0]["content"] for body in endpoint.bodies] == ["a", "\ud83d?", "a\ud83d"]


TROUBLE: dict[str, Reply] = {
    "wrong key": replies.WRONG_KEY,
    "too long": replies.OPENAI_TOO_LONG,
    "vLLM's words": replies.VLLM_TOO_LONG,
    "no model": replies.OPENAI_UNKNOWN_MODEL,
    "slow down": replies.SLOW_DOWN,
    "overloaded": replies.OVERLOADED,
    "a page of HTML": replies.BROKEN,
    "no words": Reply(status=500),
    "a list": Reply(status=400, body="[1, 2]"),
    "sent on": Reply(status=307, headers={"location": "http://elsewhere.example/v1"}),
    "reset": replies.RESET,
    "cut off": replies.CUT_BODY,
    "no JSON": replies.CUT_JSON,
    "the key itself": Reply(status=400, body=f'{{"error": {{"message": "no {KEY} here"}}}}'),
    "a filter": Reply(status=400, body='{"error": {"message": "filtered", "code": "content_filter"}}'),
}


async def ended(model: OpenAIModel) -> object:
    """What a call comes to: an answer, or what its error says."""
    try:
        return await model.generate(ask("What?"))
    except CallError as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        assert KEY not in shown
        return type(error), str(error), getattr(error, "status", None), getattr(error, "retry_after", None)


@pytest.mark.parametrize("reply", TROUBLE.values(), ids=TROUBLE)
async def test_trouble_is_the_same_as_that_of_a_first_request(monkeypatch: pytest.MonkeyPatch, reply: Reply) -> None:
    found: list[object] = []
    for before in ([], [None]):
        with FakeEndpoint([*before, reply]) as endpoint:
            model = model_at(endpoint, monkeypatch)
            for _ in before:
                assert isinstance(await ended(model), ChatResponse)
            found.append(str(await ended(model)).replace(str(endpoint.port), "PORT"))
            await model.aclose()
    assert found[0] == found[1]


async def test_a_field_that_is_rejected_later_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeEndpoint([None, replies.NO_TEMPERATURE]) as endpoint:
        model = model_at(endpoint, monkeypatch)
        await model.generate(ask("One?"))
        warm = ChatRequest(
            model=ModelId("openai", "fake-model"), messages=ask("Two?").messages, sampling=Sampling(temperature=0.5)
        )
        await model.generate(warm)
        await model.aclose()
    assert ["temperature" in body for body in endpoint.bodies] == [False, True, False]


async def _plain(endpoint: FakeEndpoint) -> OpenAIModel:
    return OpenAIModel(AsyncOpenAI(base_url=endpoint.url, api_key="-", max_retries=0), "fake-model")


async def _azure(endpoint: FakeEndpoint) -> OpenAIModel:
    address = endpoint.url.removesuffix("/v1")
    settings = ModelSettings(
        id=ModelId("openai", "fake-model", address), azure=Azure(deployment="d", api_version="2024-10-21")
    )
    return from_settings(settings)


@pytest.mark.parametrize("make", [_plain, _azure], ids=["someone's client", "Azure"])
async def test_other_clients_build_each_request(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[FakeEndpoint], Any]
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    built = 0
    post = AsyncOpenAI.post

    async def counted(self: AsyncOpenAI, *args: Any, **fields: Any) -> Any:
        nonlocal built
        built += 1
        return await post(self, *args, **fields)

    monkeypatch.setattr(AsyncOpenAI, "post", counted)
    with FakeEndpoint() as endpoint:
        model = await make(endpoint)
        for _ in range(3):
            await model.generate(ask("What?"))
        await model.aclose()
    assert built == 3
