from __future__ import annotations

import asyncio

import pytest

from askance.chat import ChatRequest, ChatResponse, Usage
from askance.errors import ServerFault, UsageError
from askance.models import ChatModel, ScriptedModel
from askance.testing import CHECKS, Check, ModelFactory, NotConforming, ScriptedReply, check_backend, checks


class Silent(ScriptedModel):
    async def generate(self, request: ChatRequest) -> ChatResponse:
        await asyncio.Event().wait()
        return ChatResponse()


def scripted(reply: ScriptedReply) -> ChatModel:
    return Silent([]) if reply is None else ScriptedModel(lambda _: reply)


@pytest.mark.parametrize("check", checks(), ids=str)
async def test_the_scripted_model_conforms(check: Check[ModelFactory]) -> None:
    await check(scripted)


async def test_the_whole_table() -> None:
    await check_backend(scripted)


class Forgetful:
    """Loses what is not text, and takes every error for another."""

    def __init__(self, reply: ScriptedReply) -> None:
        self.reply = reply

    async def generate(self, request: ChatRequest) -> ChatResponse:
        if isinstance(self.reply, ChatResponse):
            return ChatResponse(text=self.reply.text, usage=Usage(input=7, output=1))
        if self.reply is None:
            return ChatResponse()
        raise ServerFault("Something broke.", retry_after=1)


async def test_every_failure_is_named() -> None:
    with pytest.raises(NotConforming) as error:
        await check_backend(Forgetful)
    said = str(error.value).splitlines()
    assert {line.split(":")[0] for line in said} == {
        "tool call", "refusal", "filtered", "truncated", "thinking", "cached tokens", "served model", "logprobs",
        "cancels", *(str(check) for check in CHECKS if check.name.startswith("raises ")),
    }  # fmt: skip
    assert "refusal: `refusal` should be 'I would rather not.' and is None." in said


def test_an_unknown_check_is_named() -> None:
    with pytest.raises(UsageError, match=r"^No check is called 'logprob'\. Known: text, unicode, "):
        checks(cannot={"logprob"})
