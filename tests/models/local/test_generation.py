"""How an answer is written: where it ends, what it is held to, what is told of it."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from askance.chat import ResponseFormat, Sampling
from askance.models import Engine, get_model
from askance.models.local import HFModel
from askance.models.local.batch_row import SamplingParams
from askance.models.local.sampler import draw
from askance.models.settings import Local
from askance.replay import MemoryStore
from tests.models.local.questions import PICTURES, SHARED, asked

torch = pytest.importorskip("torch", reason="torch is not installed; tests/slow/test_hf.py runs this where it is")
pytest.importorskip("transformers")
pytestmark = pytest.mark.slow(group="local")

Tiny = Callable[[str], Path]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "objects": {"type": "array", "items": {"type": "string", "maxLength": 8}, "minItems": 1, "maxItems": 2},
        "odd": {"type": "string", "enum": ["TR1", "TR2", "OIO", "OR"]},
    },
    "required": ["objects", "odd"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("family", ["llama", "llava", "qwen2-vl", "blip2", "t5"])
async def test_every_answer_is_held_to_the_schema(tiny: Tiny, family: str) -> None:
    pictures = PICTURES[:1] if family in {"llava", "qwen2-vl", "blip2"} else ()
    form = ResponseFormat("json_schema", "answer", SCHEMA)
    model = HFModel(tiny(family))

    answers = await asyncio.gather(
        *(
            model.generate(
                asked(SHARED, *pictures, response=form, sampling=Sampling(temperature=2, seed=seed, max_tokens=200))
            )
            for seed in range(10)
        )
    )

    for answer in answers:
        jsonschema.validate(json.loads(answer.text), SCHEMA)
        assert answer.finish == "stop"
    assert len({answer.text for answer in answers}) > 5


async def test_rows_with_and_without_a_schema_share_a_batch(tiny: Tiny) -> None:
    form = ResponseFormat("json_object")
    model = HFModel(tiny("llama"))
    requests = [asked(SHARED), asked(SHARED, response=form), asked(SHARED + "What?")]

    together = await asyncio.gather(*(model.generate(request) for request in requests))

    alone = [await HFModel(tiny("llama"), local=Local(batch=1)).generate(request) for request in requests]
    assert [each.text for each in together] == [each.text for each in alone]
    assert [each.text.startswith("{") for each in together] == [False, True, False]
    assert model.counters.batches == 1


async def test_the_schema_is_found_to_be_enforced(tiny: Tiny) -> None:
    model = get_model(f"hf:{tiny('llava')}", engine=Engine(records=MemoryStore()))

    found = await model.check()

    assert (found.schema, found.output_mode, found.images, found.logprobs, found.seed) == (
        "enforced", "json_schema", True, True, True,
    )  # fmt: skip


async def test_an_answer_ends_at_its_limit(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    short, long = asked("What?", sampling=Sampling(temperature=0, max_tokens=3)), asked("What?")

    answers = await asyncio.gather(model.generate(short), model.generate(long))

    assert [(each.finish, each.usage.output) for each in answers] == [("length", 3), ("length", 12)]
    assert answers[1].text.startswith(answers[0].text)


async def test_half_a_character_at_the_limit_is_not_said(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    loaded = model._loaded().model  # pyright: ignore[reportPrivateUsage]
    tokens: list[int] = loaded.tokenizer("\u05e2", add_special_tokens=False)["input_ids"]
    forward = loaded.model.forward

    def first_half(**values: Any) -> Any:
        output = forward(**values)
        output.logits[..., -1, tokens[0]] = 1e6
        return output

    loaded.model.forward = first_half
    answer = await model.generate(asked("What?", sampling=Sampling(temperature=0, max_tokens=1)))

    assert (len(tokens), answer.text, answer.usage.output) == (2, "", 1)


async def test_an_answer_ends_before_a_stop(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    whole = await model.generate(asked("What?"))
    middle = whole.text[4:7]

    cut, other = await asyncio.gather(
        model.generate(asked("What?", sampling=Sampling(temperature=0, max_tokens=12, stop=("zzz", middle)))),
        model.generate(asked("What?")),
    )

    assert (cut.text, cut.finish) == (whole.text.partition(middle)[0], "stop")
    assert (cut.usage.output or 0) < (whole.usage.output or 0)
    assert other.text == whole.text


async def test_log_probabilities_are_those_of_the_model(tiny: Tiny) -> None:
    answer = await HFModel(tiny("llama")).generate(
        asked("What?", sampling=Sampling(temperature=0, max_tokens=5, logprobs=3))
    )

    assert len(answer.logprobs) == 5
    for token in answer.logprobs:
        assert len(token["top"]) == 3
        assert token["logprob"] == max(token["top"].values())
        assert 0 < sum(map(math.exp, token["top"].values())) <= 1.0001
        assert token["token"] in token["top"]


async def test_the_chosen_token_alone_is_told(tiny: Tiny) -> None:
    answer = await HFModel(tiny("llama")).generate(
        asked("What?", sampling=Sampling(temperature=0, max_tokens=2, logprobs=0))
    )

    assert [sorted(token) for token in answer.logprobs] == [["logprob", "token"]] * 2


CHOICES = {
    "greedy where one is sure": (SamplingParams(temperature=0.01), {2}),
    "top k": (SamplingParams(temperature=5, top_k=2), {0, 2}),
    "top p": (SamplingParams(temperature=1, top_p=0.6), {2}),
    "top p takes the one that reaches it": (SamplingParams(temperature=1, top_p=0.8), {0, 2}),
    "min p": (SamplingParams(temperature=1, min_p=0.3), {0, 2}),
    "all": (SamplingParams(temperature=5), {0, 1, 2}),
}


@pytest.mark.parametrize(("choice", "tokens"), CHOICES.values(), ids=CHOICES)
def test_what_can_be_drawn(choice: SamplingParams, tokens: set[int]) -> None:
    scores = torch.tensor([0.25, 0.1, 0.65]).log()
    generator = torch.Generator().manual_seed(0)

    assert {draw(scores, choice, torch=torch, generator=generator) for _ in range(200)} == tokens


def test_draws_follow_the_odds() -> None:
    scores = torch.tensor([0.25, 0.1, 0.65]).log()
    generator = torch.Generator().manual_seed(0)
    drawn = [draw(scores, SamplingParams(temperature=1), torch=torch, generator=generator) for _ in range(4000)]

    assert [drawn.count(token) / 4000 for token in range(3)] == pytest.approx([0.25, 0.1, 0.65], abs=0.03)


async def test_a_penalty_keeps_it_from_repeating(tiny: Tiny) -> None:
    model = HFModel(tiny("t5"))
    free, kept = await asyncio.gather(
        model.generate(asked(SHARED, sampling=Sampling(temperature=0, max_tokens=40))),
        model.generate(
            asked(SHARED, sampling=Sampling(temperature=0, max_tokens=40), extra={"repetition_penalty": 50.0})
        ),
    )

    assert len(set(kept.text)) > len(set(free.text))
