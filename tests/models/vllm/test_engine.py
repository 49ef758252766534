"""`vllm:` with vLLM itself, in a server and in process: what every backend does, and that both ways are one.

The model is real and is made to give a scripted reply. It needs vLLM beside askance, and folders of models in
`ASKANCE_TEST_MODELS`; tests/slow/test_vllm_models.py runs it where both are.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from askance import testing
from askance.chat import ChatRequest, ChatResponse, ImagePart, Message, ModelId, Part, Sampling, TextPart
from askance.errors import BadRequest, ContextExceeded, ImagesRejected
from askance.images import Image, Shown
from askance.models import run_sync
from askance.models.capabilities import RED_SQUARE
from askance.models.loop import live
from askance.models.settings import Vllm
from askance.models.vllm import VLLMModel
from askance.testing import Check, ModelFactory, ScriptedReply, checks

pytest.importorskip("vllm", reason="vLLM is not installed; tests/slow/test_vllm_models.py runs this where it is")
# What vLLM and torch warn of as they are loaded into this process is theirs, of many kinds and modules.
pytestmark = [pytest.mark.slow(group="vllm"), pytest.mark.filterwarnings("ignore")]

MODELS = Path(os.environ.get("ASKANCE_TEST_MODELS", ""))
HOW: dict[str, Any] = {
    "dtype": "float32", "context": 1024, "cache": 0.5, "batch": 32, "start_within": 600.0,
    "engine": {"enforce_eager": True, "block_size": 32},
}  # fmt: skip
"""In 16 bits two likely tokens may tie, and which one is taken goes by what else is in the batch."""
CANNOT = {
    # It calls no tools unless a parser is named, declines in no form of its own, and filters nothing.
    "tool call", "tool result", "refusal", "filtered",
    # Tokens are counted there, the name is that of the weights, and log-probabilities are the model's own.
    "usage", "cached tokens", "served model", "logprobs",
    # What goes wrong between here and there is played in test_conforming.py and test_server.py.
    "raises Unreachable", "raises CallTimeout", "raises AuthError", "raises ModelNotFound", "raises RateLimited",
    "raises ServerFault", "raises MalformedReply",
    # It has eyes; the one without has a test of its own.
    "raises ImagesRejected",
}  # fmt: skip


class OnProgress:
    """A model that is made to give a scripted reply, on the loop that all live calls are made on."""

    def __init__(self, model: VLLMModel, reply: ScriptedReply, *, closes: bool) -> None:
        self.id = model.id
        self._model = model
        self._reply = reply
        self._closes = closes

    async def generate(self, request: ChatRequest) -> ChatResponse:
        return await live(lambda: self._model.generate(self._held(request)))

    async def aclose(self) -> None:
        if self._closes:
            await live(self._model.aclose)

    def _held(self, request: ChatRequest) -> ChatRequest:
        reply, sampling = self._reply, request.sampling
        if reply is None:
            return replace(request, extra={"ignore_eos": True})
        if isinstance(reply, ContextExceeded):
            return replace(request, messages=(Message("user", (TextPart("long " * 3000),)),))
        if isinstance(reply, BadRequest):
            return replace(request, sampling=replace(sampling, temperature=-1.0))
        assert isinstance(reply, ChatResponse)
        text = f"<think>{reply.thinking}</think>{reply.text}" if reply.thinking else reply.text
        if reply.finish == "length":
            bias = {str(token_of(text)): 100.0}
            return replace(request, sampling=replace(sampling, max_tokens=1), extra={"logit_bias": bias})
        # Blanks of a schema's answer are the server's to leave out; here it is to write the text as it stands.
        return replace(request, response=None, extra={"structured_outputs": {"choice": [text]}})


def token_of(text: str) -> int:
    transformers: Any = import_module("transformers")
    (token,) = transformers.AutoTokenizer.from_pretrained(MODELS / "blind-vlm").encode(text, add_special_tokens=False)
    return token


def asked(text: str, *parts: Part, **sampling: Any) -> ChatRequest:
    given: dict[str, Any] = {"temperature": 0, "max_tokens": 24, **sampling}
    how = Sampling(**given)
    return ChatRequest(
        model=ModelId("vllm", "m", name="m"), messages=(Message("user", (*parts, TextPart(text))),), sampling=how
    )


READY = asked("Ready?", max_tokens=1)
"""Starts a model that is not running."""


@pytest.fixture(scope="module")
def models() -> Iterator[dict[str, VLLMModel]]:
    """By name; each is started by its first question."""
    blind = MODELS / "blind-vlm"
    made = {
        "server": VLLMModel(blind, vllm=Vllm(**HOW)),
        "in process": VLLMModel(blind, vllm=Vllm(in_process=True, **HOW)),
        "text alone": VLLMModel(MODELS / "smollm2-135m", vllm=Vllm(in_process=True, **HOW)),
    }
    yield made

    async def close() -> None:
        for model in made.values():
            await live(model.aclose)

    run_sync(close())


@pytest.fixture
def tell(models: dict[str, VLLMModel], monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[ChatResponse]]:
    """Asks a model several things at once, and has its first answer cost no check its patience."""
    monkeypatch.setattr(testing, "TIMEOUT", 120.0)

    def ask(name: str, *requests: ChatRequest) -> list[ChatResponse]:
        async def all_of_them() -> list[ChatResponse]:
            return await asyncio.gather(*(live(lambda each=each: models[name].generate(each)) for each in requests))

        return run_sync(all_of_them())

    return ask


CASES = [(way, check) for way in ("server", "in process") for check in checks(cannot={*CANNOT, "closes"})]


@pytest.mark.parametrize(("way", "check"), CASES, ids=lambda each: str(each).replace(" ", "-"))
def test_conforms(way: str, check: Check[ModelFactory], models: dict[str, VLLMModel], tell: Callable[..., Any]) -> None:
    tell(way, READY)
    run_sync(check(lambda reply: OnProgress(models[way], reply, closes=False)))


PICTURE = ImagePart(Shown(Image.from_bytes(RED_SQUARE)))
LONG = "You look closely at an image, which is an advertisement, and answer one question about it in a few words. "
SAME = [
    asked("What is the capital of France?"),
    asked("Name three colours.", logprobs=2),
    asked("Tell me a story.", temperature=1.0, seed=7),
    replace(asked("Tell me a story.", temperature=1.0, seed=7), draw=1),
    asked("Which colour?", PICTURE),
    asked("Count.", PICTURE, stop=("3",)),
]


def test_server_and_engine_in_process_give_the_same_answers(
    models: dict[str, VLLMModel], tell: Callable[..., list[ChatResponse]]
) -> None:
    said = {way: [answer for each in SAME for answer in tell(way, each)] for way in ("server", "in process")}
    texts = {way: [(each.text, each.finish, each.model, each.usage.output) for each in said[way]] for way in said}

    assert texts["server"] == texts["in process"]
    assert said["server"][0].text == "The capital of France is Paris."
    assert said["server"][2].text != said["server"][3].text
    assert models["server"].id == models["in process"].id
    assert [len(said[way][1].logprobs) for way in said] == [said[way][1].usage.output for way in said]


GIVEN = ("The capital of France is Paris.", "“Soup” is a pun:\n\nthe fish – naïve – cooks.")
WEIGHED = [
    asked(text, *parts).weighing(given) for given in GIVEN for text, parts in (("What?", ()), ("Red?", (PICTURE,)))
]


def test_server_and_engine_in_process_find_a_text_as_likely(models: dict[str, VLLMModel]) -> None:
    async def weighed(way: str) -> list[list[float]]:
        found = [await live(lambda each=each: models[way].likelihood(each)) for each in WEIGHED]
        return [[token["logprob"] for token in each.logprobs] for each in found]

    here, there = (run_sync(weighed(way)) for way in ("server", "in process"))

    assert [pytest.approx(each, abs=1e-3) for each in here] == there
    assert len(here[0]) > 4
    assert here[0] != here[1]


@pytest.mark.parametrize("way", ["server", "in process"])
def test_four_questions_about_a_picture_find_it_computed(
    way: str, models: dict[str, VLLMModel], tell: Callable[..., list[ChatResponse]]
) -> None:
    async def counted() -> Any:
        return await live(models[way].counted)

    before = run_sync(counted())
    first = tell(way, asked(f"{LONG}What is it?", PICTURE))
    others = tell(way, *(asked(f"{LONG}{question}?", PICTURE) for question in ("Why", "Where", "Who")))
    now = run_sync(counted()) - before

    assert (now.answers, now.pictures) == (4, 4)
    assert now.found >= 3
    assert all((each.usage.cached or 0) >= 32 for each in others)
    assert now.prefix_reused == sum(each.usage.cached or 0 for each in (*first, *others))


def test_a_model_without_eyes_rejects_a_picture(tell: Callable[..., list[ChatResponse]]) -> None:
    with pytest.raises(ImagesRejected, match=r"takes no images"):
        tell("text alone", asked("Which colour?", PICTURE))
    (answer,) = tell("text alone", asked("What is the capital of France?"))
    assert (bool(answer.text), answer.usage.image) == (True, None)


def test_what_nobody_waits_for_is_broken_off(models: dict[str, VLLMModel], tell: Callable[..., Any]) -> None:
    tell("in process", READY)
    endless = replace(asked("Tell me a story.", max_tokens=900), extra={"ignore_eos": True})

    async def running() -> int:
        reader: Any = import_module("vllm.v1.metrics.reader")
        await live(models["in process"].counted)
        found = [each.value for each in reader.get_metrics_snapshot() if each.name == "vllm:num_requests_running"]
        return int(sum(found))

    async def broken_off() -> int:
        task = asyncio.ensure_future(live(lambda: models["in process"].generate(endless)))
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await live(lambda: models["in process"].generate(asked("Ready?")))
        return await running()

    assert run_sync(broken_off()) == 0


# The last, since after it a model has to start again.
@pytest.mark.parametrize("way", ["server", "in process"])
def test_conforms_when_it_is_closed(way: str, models: dict[str, VLLMModel], tell: Callable[..., Any]) -> None:
    (check,) = [check for check in checks(cannot=CANNOT) if check.name == "closes"]
    tell(way, READY)

    run_sync(check(lambda reply: OnProgress(models[way], reply, closes=True)))
