"""What real servers were heard to say, and the errors that it stands for."""

from __future__ import annotations

import json

import pytest

from askance.chat import ChatRequest, ImagePart, Message, ModelId, TextPart
from askance.errors import AuthError, BadRequest, CallError, ContextExceeded, ImagesRejected, ModelNotFound, ServerFault
from askance.images import Image, Shown
from askance.models.capabilities import RED_SQUARE
from askance.models.openai.openai_model import from_settings
from askance.models.settings import ModelSettings
from tests.servers import FakeEndpoint, Reply
from tests.slow.wording import record

KINDS: dict[str, type[CallError]] = {
    "unknown_model": ModelNotFound,
    "too_long": ContextExceeded,
    "too_many_tokens_asked_for": BadRequest,
    "image": ImagesRejected,
    "broken_image": BadRequest,
    "schema_beyond_the_grammar": BadRequest,
    "unknown_response_format": BadRequest,
    "too_many_logprobs": BadRequest,
    "tools": BadRequest,
    "negative_temperature": BadRequest,
    "unknown_field": BadRequest,
    "no_messages": BadRequest,
    "wrong_key": AuthError,
}
OTHERS: dict[tuple[str, str], type[CallError]] = {("vllm, text only", "broken_image"): ImagesRejected}
"""Where a server says something else than most do."""

SAID = [(server, question, reply) for server, replies in record().items() for question, reply in replies.items()]


def kind_of(server: str, question: str, status: int) -> type[CallError]:
    # A bare status 500 tells nothing, whatever it was that the server did not like.
    return ServerFault if status == 500 else OTHERS.get((server, question), KINDS[question])


@pytest.mark.parametrize(
    ("server", "question", "reply"), SAID, ids=[f"{server}: {question}" for server, question, _ in SAID]
)
async def test_what_servers_say_stands_for_an_error(server: str, question: str, reply: dict[str, object]) -> None:
    status, said = reply["status"], reply["body"]
    assert isinstance(status, int)
    body, kind = (said, "text/plain") if isinstance(said, str) else (json.dumps(said), "application/json")
    parts = (TextPart("What?"), *((ImagePart(Shown(Image.from_bytes(RED_SQUARE))),) if "image" in question else ()))
    with FakeEndpoint([Reply(status=status, body=body, headers={"content-type": kind})]) as endpoint:
        model = from_settings(ModelSettings(id=ModelId("openai", "no-such-model", endpoint.url)))
        with pytest.raises(CallError) as caught:
            await model.generate(ChatRequest(model=model.id, messages=(Message("user", parts),)))
        await model.aclose()
    assert type(caught.value) is kind_of(server, question, status)
