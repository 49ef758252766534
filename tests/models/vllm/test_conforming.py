"""`vllm:` at an address does what every backend does; with the engine itself see tests/slow/test_vllm_models.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from askance.models.factory import named
from askance.models.vllm.vllm_model import VLLMModel, from_settings
from askance.testing import Check, ModelFactory, ScriptedReply, checks
from tests.far_side import FarSides


@pytest.fixture
async def make_model() -> AsyncIterator[ModelFactory]:
    with ExitStack() as stack:
        sides, made = FarSides(stack), list[VLLMModel]()

        def make(reply: ScriptedReply) -> VLLMModel:
            made.append(from_settings(named(f"vllm:fake-model@{sides.url(reply)}")))
            return made[-1]

        yield make
        for model in made:
            await model.aclose()


# The time limit stands around the backend: the client below has none.
@pytest.mark.parametrize("check", checks(cannot={"raises CallTimeout"}), ids=str)
async def test_conforms(check: Check[ModelFactory], make_model: ModelFactory) -> None:
    await check(make_model)
