"""Answers are the same, token by token, whatever shares their batch and whatever is computed once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from askance.chat import ChatRequest, ChatResponse, Sampling
from askance.models.local import HFModel
from askance.models.settings import Local
from tests.models.local.questions import PICTURES, QUESTIONS, SHARED, asked, everything

pytest.importorskip("torch", reason="torch is not installed; tests/slow/test_hf.py runs this where it is")
pytest.importorskip("transformers")
pytestmark = pytest.mark.slow(group="local")

Tiny = Callable[[str], Path]
ALONE = Local(batch=1, share=False)
SEEING = ("gemma3", "idefics3", "internvl", "llava", "llava-next", "qwen2-vl", "qwen2.5-vl", "vipllava")
"""Families whose pictures are computed once."""
PLAIN = ("blip2", "instructblip")
"""Families that have each picture computed for each question."""
READING = ("llama", "t5", "vicuna")


async def at_once(model: HFModel, requests: list[ChatRequest]) -> list[ChatResponse]:
    return await asyncio.gather(*(model.generate(request) for request in requests))


async def one_by_one(folder: Path, requests: list[ChatRequest]) -> list[ChatResponse]:
    model = HFModel(folder, local=ALONE)
    return [await model.generate(request) for request in requests]


def said(responses: list[ChatResponse]) -> list[tuple[str, str, int | None, int | None]]:
    return [(each.text, each.finish, each.usage.input, each.usage.output) for each in responses]


@pytest.mark.parametrize("batch", [3, 8, 12])
@pytest.mark.parametrize("family", [*SEEING, *PLAIN, *READING])
async def test_greedy_answers_are_those_of_separate_runs(tiny: Tiny, family: str, batch: int) -> None:
    requests = everything(pictures=family not in READING)

    together = await at_once(HFModel(tiny(family), local=Local(batch=batch)), requests)

    assert said(together) == said(await one_by_one(tiny(family), requests))
    assert len({each.text for each in together}) > len(requests) / 2


@pytest.mark.parametrize("family", SEEING)
async def test_padding_alone_changes_nothing(tiny: Tiny, family: str) -> None:
    requests = everything(pictures=True)

    together = await at_once(HFModel(tiny(family), local=Local(share=False)), requests)

    assert said(together) == said(await one_by_one(tiny(family), requests))


@pytest.mark.parametrize("family", SEEING)
async def test_several_pictures_in_one_question(tiny: Tiny, family: str) -> None:
    requests = [asked(SHARED + question, *PICTURES[:2]) for question in QUESTIONS]

    model = HFModel(tiny(family))
    together = await at_once(model, requests)

    assert said(together) == said(await one_by_one(tiny(family), requests))
    assert (model.counters.encodes, model.counters.pictures) == (2, 8)


@pytest.mark.parametrize("family", SEEING)
async def test_one_picture_is_encoded_once(tiny: Tiny, family: str) -> None:
    requests = everything(pictures=True)
    model = HFModel(tiny(family), local=Local(batch=4))
    first = await model.generate(requests[0])

    together = await at_once(model, requests)

    counted = model.counters
    assert (counted.encodes, counted.pictures, counted.answers) == (3, 13, 13)
    assert first.usage.cached is None
    assert counted.prefix_reused == sum(each.usage.cached or 0 for each in together) > 0
    # One picture was there before; of the others, the first question pays.
    assert sum(each.usage.cached is None for each in together) == 2
    assert said(together)[0] == said([first])[0]


async def test_question_after_question_finds_the_picture_computed(tiny: Tiny) -> None:
    requests = [asked(SHARED + question, PICTURES[0]) for question in QUESTIONS]
    model = HFModel(tiny("llava"))

    in_turn = [await model.generate(request) for request in requests]

    assert [bool(each.usage.cached) for each in in_turn] == [False, True, True, True]
    assert said(in_turn) == said(await one_by_one(tiny("llava"), requests))


@pytest.mark.parametrize(("family", "kind"), [("blip2", "blip-2"), ("instructblip", "instructblip")])
async def test_where_nothing_can_be_shared_it_is_said_once(
    tiny: Tiny, family: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = HFModel(tiny(family))

    with caplog.at_level(logging.WARNING, "askance"):
        await at_once(model, everything(pictures=True))

    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        f"models of the kind {kind!r} have each picture computed anew for every question about it."
    ]
    assert (model.counters.encodes, model.counters.prefix_reused) == (12, 0)


@pytest.mark.parametrize("family", ["llava", "qwen2-vl", "blip2", "llama"])
async def test_a_seed_draws_the_same_whatever_shares_the_batch(tiny: Tiny, family: str) -> None:
    requests = [
        asked(SHARED + question, *PICTURES[: family != "llama"], draw=draw, sampling=_drawn(seed))
        for question in QUESTIONS[:2]
        for seed in (1, 2)
        for draw in (0, 1)
    ]

    together = await at_once(HFModel(tiny(family)), requests)

    assert said(together) == said(await one_by_one(tiny(family), requests))
    assert len({each.text for each in together}) == len(requests)


def _drawn(seed: int) -> Sampling:
    return Sampling(temperature=1.5, top_p=0.95, seed=seed, max_tokens=12)


@pytest.mark.parametrize("family", [*SEEING, *PLAIN])
async def test_models_with_eyes_answer_without_a_picture(tiny: Tiny, family: str) -> None:
    requests = [asked(SHARED + question) for question in QUESTIONS] + [asked(SHARED, PICTURES[0])]

    together = await at_once(HFModel(tiny(family)), requests)

    assert said(together) == said(await one_by_one(tiny(family), requests))
    assert [bool(each.usage.image) for each in together] == [False, False, False, False, True]
