"""A chat model of LangChain: what every backend does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from askance.models.langchain.langchain_model import LangChainModel
from askance.testing import Check, ModelFactory, ScriptedReply, checks
from tests.far_side import FarSides, patience

CANNOT = {
    # LangChain's model for OpenAI leaves the thinking of other servers out of its messages.
    "thinking",
}


@pytest.fixture
def make_model() -> Iterator[ModelFactory]:
    with ExitStack() as stack:
        sides = FarSides(stack)

        def make(reply: ScriptedReply) -> LangChainModel:
            key = SecretStr("-")
            url, most = sides.url(reply), patience(reply)
            return LangChainModel(
                ChatOpenAI(model="fake-model", base_url=url, api_key=key, max_retries=0, timeout=most)
            )

        yield make


@pytest.mark.parametrize("check", checks(cannot=CANNOT), ids=str)
async def test_conforms(check: Check[ModelFactory], make_model: ModelFactory) -> None:
    await check(make_model)
