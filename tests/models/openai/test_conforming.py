"""OpenAI's protocol, both interfaces: what every backend does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Literal

import pytest
from openai import AsyncOpenAI

from askance.chat import ModelId
from askance.models.openai.openai_model import OpenAIModel, from_settings
from askance.models.settings import ModelSettings
from askance.testing import Check, ModelFactory, ScriptedReply, checks
from tests.far_side import FarSides, patience


@pytest.fixture
async def make_model(request: pytest.FixtureRequest) -> AsyncIterator[ModelFactory]:
    api: Literal["chat", "responses"] = request.param
    with ExitStack() as stack:
        sides, made = FarSides(stack), list[OpenAIModel]()

        def make(reply: ScriptedReply) -> OpenAIModel:
            url, most = sides.url(reply), patience(reply)
            settings = ModelSettings(id=ModelId("openai", "fake-model", url, api=api))
            if most is None:
                made.append(from_settings(settings))
            else:
                client = AsyncOpenAI(base_url=url, api_key="-", max_retries=0, timeout=most)
                made.append(OpenAIModel(client, "fake-model", api=api))
            return made[-1]

        yield make
        for model in made:
            await model.aclose()


@pytest.mark.parametrize("make_model", ["chat"], indirect=True)
@pytest.mark.parametrize("check", checks(), ids=str)
async def test_chat_completions_conform(check: Check[ModelFactory], make_model: ModelFactory) -> None:
    await check(make_model)


@pytest.mark.parametrize("make_model", ["responses"], indirect=True)
# The responses API takes no stops and no seed, and says so.
@pytest.mark.parametrize("check", checks(cannot={"sampling", "stop", "seed"}), ids=str)
async def test_responses_conform(check: Check[ModelFactory], make_model: ModelFactory) -> None:
    await check(make_model)
