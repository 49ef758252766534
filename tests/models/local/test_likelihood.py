"""How likely a given text is, against transformers asked directly in float32."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import BadRequest, ContextExceeded
from askance.models.likelihood import likelihood_of
from askance.models.local import HFModel
from askance.models.local.batch_row import to_row
from askance.models.local.transformers_model import TransformersModel, load_model
from askance.models.settings import Local, family_of_name
from tests.models.local.questions import PICTURES, SHARED, asked

torch: Any = pytest.importorskip("torch", reason="torch is not installed; tests/slow/test_hf.py runs this where it is")
pytest.importorskip("transformers")
pytestmark = pytest.mark.slow(group="local")

Tiny = Callable[[str], Path]
FLOAT32 = Local(dtype="float32")
GIVEN = "The cup is a rocket, which no cup is: “odd”."
DECODERS = ("gemma3", "idefics3", "internvl", "llama", "llava", "qwen2-vl", "qwen2.5-vl", "vicuna", "vipllava")


async def weighed(model: HFModel, *requests: ChatRequest) -> list[tuple[float, int]]:
    found = await asyncio.gather(*(model.likelihood(request) for request in requests))
    known = [likelihood_of(response) for response in found]
    return [(each.nll, each.tokens) for each in known if each is not None]


def loaded(folder: Path) -> TransformersModel:
    model = HFModel(folder, local=FLOAT32)
    found = model._folder  # pyright: ignore[reportPrivateUsage]
    assert found is not None
    name = folder.name
    return load_model(found, FLOAT32, name=name, dtype="float32", family=family_of_name(name))


def by_hand(folder: Path, request: ChatRequest, given: str) -> tuple[float, int]:
    """The sum of negative log-probabilities, one token after the other, and their number."""
    model = loaded(folder)
    row = to_row(request, model, model.prompt_writer())
    ids, total = list(row.ids), 0.0
    tokens: list[int] = model.tokenizer(given, add_special_tokens=False)["input_ids"]
    answering = model.model if row.pictures else model.text_model
    for token in tokens:
        behind = [0] * (len(ids) - len(row.ids))
        types = {name: torch.tensor([[*kinds, *behind]]) for name, kinds in row.types.items()}
        whole = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
        with torch.no_grad():
            logits = answering(**whole, **types, **row.inputs).logits[0, -1]
        total -= float(torch.log_softmax(logits, dim=-1)[token])
        ids.append(token)
    return total, len(tokens)


@pytest.mark.parametrize("family", DECODERS)
async def test_it_is_the_sum_over_the_tokens_one_after_the_other(tiny: Tiny, family: str) -> None:
    pictures = () if family in {"llama", "vicuna"} else PICTURES[:1]
    request = asked(SHARED, *pictures)

    (found,) = await weighed(HFModel(tiny(family), local=FLOAT32), request.weighing(GIVEN))

    assert found == pytest.approx(by_hand(tiny(family), request, GIVEN), abs=1e-4)


async def test_an_encoder_with_a_decoder_weighs_what_the_decoder_writes(tiny: Tiny) -> None:
    model, request = loaded(tiny("t5")), asked(SHARED)
    row = to_row(request, model, model.prompt_writer())
    labels = torch.tensor([model.tokenizer(GIVEN, add_special_tokens=False)["input_ids"]])
    with torch.no_grad():
        mean = float(model.model(input_ids=torch.tensor([row.ids]), labels=labels).loss)

    (found,) = await weighed(HFModel(tiny("t5"), local=FLOAT32), request.weighing(GIVEN))

    assert found == pytest.approx((mean * labels.shape[1], labels.shape[1]), abs=1e-4)


async def test_texts_of_one_batch_do_not_change_each_other(tiny: Tiny) -> None:
    requests = [asked(SHARED * n).weighing(text) for n in (1, 3) for text in ("Odd.", GIVEN, "A dog\nand a cat")]
    model = HFModel(tiny("llama"), local=FLOAT32)

    together = await weighed(model, *requests)

    assert together == [(await weighed(model, request))[0] for request in requests]
    assert model.counters.answers == 0


async def test_answers_and_texts_share_a_model(tiny: Tiny) -> None:
    model, request = HFModel(tiny("llama"), local=FLOAT32), asked(SHARED)
    alone = await model.generate(request)

    answer, response = await asyncio.gather(model.generate(request), model.likelihood(request.weighing("An odd cup.")))

    assert answer.text == alone.text
    assert (response.text, response.outcome, response.usage.output) == ("", "answered", 0)
    assert "".join(token["token"] for token in response.logprobs) == "An odd cup."


async def test_a_mark_of_the_template_in_the_text_ends_no_turn(tiny: Tiny) -> None:
    model = loaded(tiny("llama"))
    end = model.tokenizer.eos_token

    response = await HFModel(tiny("llama"), local=FLOAT32).likelihood(asked(SHARED).weighing(f"Odd{end} and more."))

    assert end not in {token["token"] for token in response.logprobs}


async def test_a_text_too_long_or_empty_is_refused(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"), local=FLOAT32)

    with pytest.raises(ContextExceeded):
        await model.likelihood(asked(SHARED).weighing("odd " * 5000))
    with pytest.raises(BadRequest, match="empty"):
        await model.likelihood(asked(SHARED).weighing(""))
