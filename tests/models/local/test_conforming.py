"""`hf:` does what every backend does: the server is a tiny model that is made to write the scripted reply."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatResponse
from askance.errors import BadRequest, ContextExceeded, ImagesRejected
from askance.models.local import HFModel
from askance.testing import Check, ModelFactory, ScriptedReply, checks

torch = pytest.importorskip("torch", reason="torch is not installed; tests/slow/test_hf.py runs this where it is")
pytest.importorskip("transformers")
pytestmark = pytest.mark.slow(group="local")

CANNOT = {
    # It calls no tools, declines in no form of its own, and filters nothing.
    "tool call", "tool result", "refusal", "filtered",
    # Tokens are counted here, the name is that of the weights, and log-probabilities are the model's own.
    "usage", "cached tokens", "served model", "logprobs",
    # There is no network between, no key and no server.
    "raises Unreachable", "raises CallTimeout", "raises AuthError", "raises ModelNotFound", "raises RateLimited",
    "raises ServerFault", "raises MalformedReply",
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def warm(tiny: Callable[[str], Path]) -> None:
    """Has the libraries loaded, which no check waits for."""
    for family in ("llama", "llava"):
        HFModel(tiny(family))._loaded()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("check", checks(cannot=CANNOT), ids=str)
async def test_conforms(check: Check[ModelFactory], tiny: Callable[[str], Path]) -> None:
    await check(lambda reply: far_side(reply, tiny))


def far_side(reply: ScriptedReply, tiny: Callable[[str], Path]) -> HFModel:
    """A model that gives `reply`."""
    model = HFModel(tiny("llama" if isinstance(reply, ImagesRejected) else "llava"))
    loaded = model._loaded().model  # pyright: ignore[reportPrivateUsage]
    if isinstance(reply, ContextExceeded):
        loaded.model.config.get_text_config().max_position_embeddings = 3
        return model
    if isinstance(reply, BadRequest):
        ready = model._loaded()  # pyright: ignore[reportPrivateUsage]
        object.__setattr__(ready, "writer", replace(ready.writer, template=Refusing()))
        return model
    text = _text(reply) if isinstance(reply, ChatResponse) else None
    tokens: list[int] = loaded.tokenizer(text or "", add_special_tokens=False)["input_ids"]
    if isinstance(reply, ChatResponse) and reply.finish == "length":
        limit = len(tokens)
        preparing = model._row_of  # pyright: ignore[reportPrivateUsage]

        def short(request: Any) -> Any:
            row = preparing(request)
            row.limit = limit
            return row

        model._row_of = short  # pyright: ignore[reportPrivateUsage]
    end = min(loaded.ends)
    loaded.model.forward = _told(loaded.model.forward, [*tokens, end] if text is not None else None)
    return model


class Refusing:
    """A chat template that takes no turns."""

    def apply_chat_template(self, *_: Any, **__: Any) -> str:
        msg = "Conversation roles must alternate"
        raise ValueError(msg)


def _text(reply: ChatResponse) -> str:
    return f"<think>{reply.thinking}</think>{reply.text}" if reply.thinking else reply.text


def _told(forward: Any, tokens: list[int] | None) -> Any:
    """`forward` whose likeliest tokens are `tokens`, from the beginning of each answer; None has no end."""
    step = 0

    def told(**values: Any) -> Any:
        nonlocal step
        output = forward(**values)
        # A prompt or what is left of one has more than one token, and only it begins an answer.
        step = 0 if values["input_ids"].shape[1] > 1 else step + 1
        if tokens is None:
            time.sleep(0.01)
            output.logits[..., -1, 0] = 1e6
        else:
            output.logits[..., -1, tokens[min(step, len(tokens) - 1)]] = 1e6
        return output

    return told
