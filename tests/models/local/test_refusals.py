"""What a model on this machine cannot do ends as what it is; the others in its batch go on."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, ResponseFormat, Sampling
from askance.errors import BadRequest, ConfigError, ContextExceeded, ImagesRejected, MissingExtra, ModelError
from askance.models.local import HFModel
from askance.models.settings import Local
from tests.models.local.questions import PICTURES, QUESTIONS, asked

torch = pytest.importorskip("torch", reason="torch is not installed; tests/slow/test_hf.py runs this where it is")
pytest.importorskip("transformers")
pytestmark = pytest.mark.slow

Tiny = Callable[[str], Path]


def scores_of(model: HFModel, change: Callable[[Any, Any], Any]) -> None:
    """Has `change` made to what the model inside gives: its tokens so far and its output."""
    inner = model._loaded().loaded.model  # pyright: ignore[reportPrivateUsage]
    forward = inner.forward

    def changed(*values: Any, **names: Any) -> Any:
        return change(names.get("input_ids"), forward(*values, **names))

    inner.forward = changed


async def outcomes(model: HFModel, *requests: ChatRequest) -> list[object]:
    came = await asyncio.gather(*(model.generate(request) for request in requests), return_exceptions=True)
    return [type(each) if isinstance(each, BaseException) else each.text for each in came]


async def test_a_model_of_text_is_given_a_picture(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    alone = (await model.generate(asked("What?"))).text

    assert await outcomes(model, asked("What?", PICTURES[0]), asked("What?")) == [ImagesRejected, alone]


async def test_a_model_of_one_picture_is_given_two(tiny: Tiny) -> None:
    with pytest.raises(ImagesRejected, match=r"looks at one picture and was given 2\.$"):
        await HFModel(tiny("blip2")).generate(asked("What?", *PICTURES[:2]))


async def test_a_prompt_beyond_the_context(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    alone = (await model.generate(asked("What?"))).text

    assert await outcomes(model, asked("What? " * 3000), asked("What?")) == [ContextExceeded, alone]


async def test_a_schema_that_cannot_be_held(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    alone = (await model.generate(asked("What?"))).text
    form = ResponseFormat("json_schema", "answer", {"type": "nonsense"})

    assert await outcomes(model, asked("What?", response=form), asked("What?")) == [BadRequest, alone]


async def test_scores_that_are_no_numbers(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))

    def break_one(_: Any, output: Any) -> Any:
        if output.logits.shape[0] > 1:
            output.logits[1] = torch.nan
        return output

    scores_of(model, break_one)
    came = await asyncio.gather(*(model.generate(asked(each)) for each in QUESTIONS), return_exceptions=True)

    # Rows go again by halves, so that only what is broken by itself fails.
    assert not any(isinstance(each, BaseException) for each in came)


async def test_scores_of_a_row_alone_that_are_no_numbers(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))

    def break_all(_: Any, output: Any) -> Any:
        output.logits[:] = torch.nan
        return output

    scores_of(model, break_all)

    with pytest.raises(ModelError, match=r"scores for token 1 are no numbers \(NaN\)\. Hold the weights in another"):
        await model.generate(asked("What?"))


def out_of_memory(rows: int) -> Callable[[Any, Any], Any]:
    """Fails as a full device does where more than `rows` go through at once."""

    def change(ids: Any, output: Any) -> Any:
        if ids.shape[0] > rows:
            msg = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.00 GiB free."
            raise torch.OutOfMemoryError(msg)
        return output

    return change


async def test_a_batch_that_does_not_fit_is_halved(tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
    wanted = [(await HFModel(tiny("llama")).generate(asked(each))).text for each in QUESTIONS]
    model = HFModel(tiny("llama"))
    scores_of(model, out_of_memory(1))

    with caplog.at_level(logging.WARNING, "askance"):
        came = await outcomes(model, *map(asked, QUESTIONS))

    assert came == wanted
    assert [record.args[1:] for record in caplog.records if isinstance(record.args, tuple)] == [(4, 2), (2, 1), (2, 1)]
    assert model.counters.halved == 3


async def test_one_row_that_does_not_fit_says_what_it_needed(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    scores_of(model, out_of_memory(0))

    with pytest.raises(BadRequest) as caught:
        await model.generate(asked("What?"))

    assert "has not the memory for one prompt of" in str(caught.value)
    assert "and an answer of up to 12: CUDA out of memory. Tried to allocate 2.00 GiB." in str(caught.value)


async def test_a_fault_of_the_model_is_its_call_s(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))

    def fail(_: Any, output: Any) -> Any:
        msg = "no kernel"
        raise ArithmeticError(msg)

    scores_of(model, fail)

    with pytest.raises(ModelError, match=r"failed while it wrote: ArithmeticError: no kernel$"):
        await model.generate(asked("What?"))


async def test_a_cancelled_answer_is_broken_off(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    steps: list[float] = []

    def slowly(_: Any, output: Any) -> Any:
        steps.append(time.monotonic())
        time.sleep(0.02)
        return output

    scores_of(model, slowly)
    long = Sampling(temperature=0, max_tokens=1000)
    task = asyncio.create_task(model.generate(asked("What?", sampling=long)))
    while not steps:  # noqa: ASYNC110  # they come from another thread
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    after = await model.generate(asked("What?"))

    assert after.usage.output == 12
    assert len(steps) < 40


SPOILT: dict[str, tuple[dict[str, Any], Local, type[Exception], str]] = {
    "unknown kind": (
        {"model_type": "nobody-knows"},
        Local(),
        ConfigError,
        "of the kind 'nobody-knows', which writes no",
    ),
    "code of its own": (
        {"model_type": "nobody-knows", "auto_map": {"AutoModelForCausalLM": "x.Y"}},
        Local(),
        ConfigError,
        "comes with Python code of its own, which is not run unasked. If you trust it: `local = {",
    ),
    "no text": ({"model_type": "clip"}, Local(), ConfigError, "of the kind 'clip', which writes no text"),
    "other shapes": ({"hidden_size": 40}, Local(), ConfigError, "cannot be loaded: "),
    "more layers": ({"num_hidden_layers": 5}, Local(), ConfigError, "its files lack 18 of its weights, such as"),
    "no device": ({}, Local(device="cuda:7"), ConfigError, "There is no device 'cuda:7' here for"),
    "bits": (
        {},
        Local(device="cpu", bits=4),
        ConfigError,
        "pressed into 4 bits on CUDA devices alone, and",
    ),
    "attention": ({}, Local(attention="flash_attention_2"), MissingExtra, "needs a package that is not installed"),
}


@pytest.mark.parametrize(("config", "local", "kind", "said"), SPOILT.values(), ids=SPOILT)
async def test_what_cannot_be_loaded(
    tiny: Tiny, tmp_path: Path, config: dict[str, Any], local: Local, kind: type[Exception], said: str
) -> None:
    folder = tmp_path / "spoilt"
    folder.mkdir()
    for file in tiny("llama").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    whole = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**whole, **config}), encoding="utf-8")

    with pytest.raises(kind) as caught:
        await HFModel(folder, local=local).generate(asked("What?"))

    assert said in str(caught.value)
