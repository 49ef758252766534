"""What a model on this machine cannot do ends as what it is; the others in its batch go on."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, Message, ResponseFormat, Sampling, TextPart
from askance.errors import (
    BadRequest,
    ConfigError,
    ContextExceeded,
    ImagesRejected,
    MissingExtra,
    ModelError,
    OutOfMemory,
)
from askance.models import Engine, get_model
from askance.models.local import HFModel
from askance.models.settings import Local
from askance.replay import MemoryStore
from tests.models.local.questions import PICTURES, QUESTIONS, asked

torch = pytest.importorskip("torch", reason="torch is not installed; tests/slow/test_hf.py runs this where it is")
pytest.importorskip("transformers")
pytestmark = pytest.mark.slow(group="local")

Tiny = Callable[[str], Path]


def scores_of(model: HFModel, change: Callable[[Any, Any], Any]) -> None:
    """Has `change` made to what the model inside gives: its tokens so far and its output."""
    inner = model._loaded().model.model  # pyright: ignore[reportPrivateUsage]
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
    with pytest.raises(ImagesRejected, match=r"looks at one picture and was given 2\. Ask about one picture at a time"):
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


def full_device() -> None:
    """Fails as a full CUDA device does."""
    msg = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.00 GiB free."
    raise torch.OutOfMemoryError(msg)


def full_memory() -> None:
    """Takes more memory than any machine has."""
    torch.empty(1 << 46, dtype=torch.uint8)


FULL = {"device": full_device, "memory": full_memory}


def no_room_for(rows: int, fail: Callable[[], None]) -> Callable[[Any, Any], Any]:
    """Fails where more than `rows` go through at once."""

    def change(ids: Any, output: Any) -> Any:
        if ids.shape[0] > rows:
            fail()
        return output

    return change


@pytest.mark.parametrize("fail", FULL.values(), ids=FULL)
async def test_a_batch_that_does_not_fit_is_halved(
    tiny: Tiny, fail: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    wanted = [(await HFModel(tiny("llama")).generate(asked(each))).text for each in QUESTIONS]
    model = HFModel(tiny("llama"))
    scores_of(model, no_room_for(1, fail))

    with caplog.at_level(logging.WARNING, "askance"):
        came = await outcomes(model, *map(asked, QUESTIONS))

    assert came == wanted
    assert [record.args[1:] for record in caplog.records if isinstance(record.args, tuple)] == [(4, 2), (2, 1)]
    assert model.counters.halved == 2


@pytest.mark.parametrize(
    ("fail", "needed"),
    [(full_device, "2.0 GiB more were needed, and "), (full_memory, "64.0 TiB more were needed, and ")],
    ids=FULL,
)
async def test_one_row_that_does_not_fit_says_what_it_needed(tiny: Tiny, fail: Callable[[], None], needed: str) -> None:
    model = HFModel(tiny("llama"))
    scores_of(model, no_room_for(0, fail))

    with pytest.raises(OutOfMemory, match=r"has not the memory for one prompt of \d+ tokens") as caught:
        await model.generate(asked("What?"))

    assert f"and an answer of up to 12: {needed}" in str(caught.value)
    assert "iB are free on 'cpu'. Allow a shorter answer (`max_tokens`)" in str(caught.value)


LIMITED = """
import asyncio, resource, sys
import torch, transformers
from transformers import AutoModelForCausalLM
from askance.models.local import HFModel
from tests.models.local.questions import asked

taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30),) * 2)
asyncio.run(HFModel(sys.argv[1]).generate(asked("What?")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to its address space")
def test_weights_that_do_not_fit(tiny: Tiny, tmp_path: Path) -> None:
    folder = larger(tiny("llama"), tmp_path / "large", vocabulary=20_000_000)

    done = subprocess.run([sys.executable, "-c", LIMITED, str(folder)], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert f"askance.errors.ConfigError: The model 'hf:{folder}' does not fit into memory: " in done.stderr
    assert (
        "are free on 'cpu'. Quantize the weights (`bits`), take a smaller one, or see which other process"
        in done.stderr
    )


def larger(source: Path, folder: Path, *, vocabulary: int) -> Path:
    """The model in `source` with more words, whose weights are zeros that take no room on the disk."""
    folder.mkdir()
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": vocabulary}), encoding="utf-8")
    content = (source / "model.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        width = header[name]["shape"][1]
        header[name] |= {"shape": [vocabulary, width], "data_offsets": [0, vocabulary * width * 4]}
    new = json.dumps(dict(_packed(header))).encode()
    with (folder / "model.safetensors").open("wb") as opened:
        opened.write(len(new).to_bytes(8, "little") + new)
        opened.truncate(8 + len(new) + max(entry["data_offsets"][1] for entry in json.loads(new).values()))
    return folder


def _packed(header: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors one behind the other."""
    start = 0
    for name, entry in header.items():
        if name != "__metadata__":
            size = entry["data_offsets"][1] - entry["data_offsets"][0]
            yield name, {**entry, "data_offsets": [start, start + size]}
            start += size


async def test_a_fault_of_the_model_is_its_call_s(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))

    def fail(_: Any, output: Any) -> Any:
        msg = "no kernel"
        raise ArithmeticError(msg)

    scores_of(model, fail)

    with pytest.raises(ModelError, match=r"failed: ArithmeticError: no kernel$"):
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


async def test_memory_is_released_with_the_model(tiny: Tiny) -> None:
    model = HFModel(tiny("llama"))
    writing = asyncio.create_task(model.generate(asked("What?", sampling=Sampling(temperature=0, max_tokens=1500))))
    while "writes" not in model.doing:  # noqa: ASYNC110  # the weights are loaded in another thread
        await asyncio.sleep(0.01)
    weights = weakref.ref(model._loaded().model.model)  # pyright: ignore[reportPrivateUsage]
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    await model.aclose()
    gc.collect()

    assert weights() is None
    assert (await model.generate(asked("What?"))).usage.output == 12


async def test_a_cancelled_answer_is_not_on_record(tiny: Tiny) -> None:
    records = MemoryStore()
    model = get_model(HFModel(tiny("llama")), engine=Engine(records=records))
    question = [Message("user", (TextPart("What?"),))]
    long = asyncio.create_task(model.generate(model.request(question, max_tokens=1500)))
    await asyncio.sleep(1)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    short = await model.generate(model.request(question, max_tokens=5))
    await model.aclose()
    await model.engine.aclose()

    assert [record.response["usage"]["output"] for record in records.of_kind("chat")] == [short.usage.output]


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
    "no device": ({}, Local(device="cuda:7"), ConfigError, "The device 'cuda:7' cannot be used for"),
    "bits": (
        {},
        Local(device="meta", bits=4),
        ConfigError,
        "quantized to 4 bits on CUDA devices and processors only, and this is 'meta'. Leave `bits` out.",
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
