"""`vllm:` beside vLLM driven by its own interfaces, on the same requests and the same engine.

    python benchmarks/vllm_engine.py FOLDER PICTURE… [--way server|inside] [--tokens N] [--runs N] [--options JSON]

FOLDER holds a vision-language model. `inside` takes vLLM's `AsyncLLM` in this environment, and asks it through askance
and by its own `generate`; `server` starts a server, and asks it through askance and by bare posts of OpenAI's client.
Both are asked in turn; what is kept of beginnings is forgotten before each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from itertools import count
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from askance.chat import ChatRequest, ImagePart, Message, Sampling, TextPart
from askance.images import Image, Shown
from askance.models import Engine, get_model
from askance.models.config import Config
from askance.models.image_data import encode
from askance.models.loop import live
from askance.models.openai.chat_completions import to_chat
from askance.models.vllm.payload import with_extensions
from askance.replay import MemoryStore

if TYPE_CHECKING:
    from askance.models.model import Model

QUESTIONS = (
    "What are the non-textual objects visible in this image?",
    "What text can be read in this image?",
    "Describe this image.",
    "What is unusual about this image?",
)
Way = Callable[[Sequence[ChatRequest]], Awaitable[int]]
"""Asks all of them at once; gives the tokens that were written."""

_numbers = count()


def requests_about(model: Model, pictures: Sequence[Path], *, times: int, tokens: int) -> list[ChatRequest]:
    """Every question about every picture, `times` over in other words."""
    images = [ImagePart(Shown(Image.from_path(path))) for path in pictures]
    made = [
        model.request([Message("user", (image, TextPart(f"{question} ({turn})")))], max_tokens=tokens)
        for turn in range(times)
        for image in images
        for question in QUESTIONS
    ]
    # Every answer is of one length, so that both ways write as much.
    return [replace(each, sampling=_greedy(tokens), extra={"ignore_eos": True}) for each in made]


def _greedy(tokens: int) -> Sampling:
    return Sampling(temperature=0, max_tokens=tokens)


def by_askance(model: Model) -> Way:
    """Through the whole stack, records included."""

    async def ask(requests: Sequence[ChatRequest]) -> int:
        answers = await asyncio.gather(*map(model.generate, requests))
        return sum(answer.usage.output or 0 for answer in answers)

    return ask


def by_engine(engine: Any) -> Way:
    """By vLLM's own `AsyncLLM`, with the pictures open already."""
    pillow: Any = import_module("PIL.Image")
    sampling: Any = import_module("vllm.sampling_params")
    rendering: Any = import_module("vllm.renderers.params")
    opened: dict[str, Any] = {}

    def picture(part: ImagePart) -> Any:
        if part.shown.image.sha256 not in opened:
            opened[part.shown.image.sha256] = pillow.open(BytesIO(part.shown.prepare().data)).convert("RGB")
        return opened[part.shown.image.sha256]

    async def one(request: ChatRequest) -> int:
        content = [
            {"type": "text", "text": part.text}
            if isinstance(part, TextPart)
            else {"type": "image_pil", "image_pil": picture(part)}
            for part in request.messages[0].parts
        ]
        chat = rendering.ChatParams(chat_template_kwargs={"add_generation_prompt": True})
        _, (prompt,) = await engine.renderer.render_chat_async([[{"role": "user", "content": content}]], chat)
        params = sampling.SamplingParams(
            temperature=0,
            max_tokens=request.sampling.max_tokens,
            ignore_eos=True,
            output_kind=sampling.RequestOutputKind.FINAL_ONLY,
        )
        written = 0
        async for output in engine.generate(prompt, params, f"bare-{next(_numbers)}"):
            written = len(output.outputs[0].token_ids)
        return written

    async def ask(requests: Sequence[ChatRequest]) -> int:
        return sum(await live(lambda: asyncio.gather(*map(one, requests))))

    return ask


def by_posts(url: str, key: str, name: str) -> Way:
    """By OpenAI's client and nothing else, with bodies that are ready."""
    from openai import AsyncOpenAI

    async def ask(requests: Sequence[ChatRequest]) -> int:
        bodies = [with_extensions(request, to_chat(request, encode, model=name)) for request in requests]
        async with AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=3600) as client:

            async def one(body: Mapping[str, Any]) -> int:
                reply = await client.post("/chat/completions", body=body, cast_to=object)
                written: Any = reply
                return written["usage"]["completion_tokens"]

            return sum(await asyncio.gather(*map(one, bodies)))

    return ask


async def measured(way: Way, requests: Sequence[ChatRequest]) -> tuple[float, int]:
    """Seconds and tokens."""
    start = time.perf_counter()
    tokens = await way(requests)
    return time.perf_counter() - start, tokens


async def main() -> None:
    """Measures both in turn and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("pictures", nargs="+", type=Path)
    parser.add_argument("--way", choices=["inside", "server"], default="inside")
    parser.add_argument("--tokens", type=int, default=32, help="of each answer")
    parser.add_argument("--times", type=int, default=2, help="how often each question is asked in other words")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--options", type=json.loads, default={}, help="`vllm` settings as JSON")
    given = parser.parse_args()
    inside = given.way == "inside"
    options = {**given.options, "in_process": inside}
    # Every round asks in other words, so that neither finds computed what the other had computed.
    engine = Engine(mode="live", records=MemoryStore(), concurrency=256)
    model = get_model(f"vllm:{given.folder}", engine=engine, config=Config(), vllm=options, protocol="prompted")
    ready = requests_about(model, given.pictures[:1], times=1, tokens=given.tokens)
    await measured(by_askance(model), ready)
    backend: Any = model.backend
    speaker: Any = backend._open._engine
    bare = by_engine(speaker._engine) if inside else by_posts(speaker._server.url, speaker._server.key, str(model.id))
    ways = {"vllm: through askance": by_askance(model), "vLLM by its own interface": bare}
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in ways}
    requests = requests_about(model, given.pictures, times=given.times, tokens=given.tokens)
    for turn in range(-1, given.runs):
        for name, way in ways.items() if turn % 2 else reversed(ways.items()):
            salted = _salted(requests, f"{turn} {name}")
            took = await measured(way, salted)
            if turn >= 0:
                found[name].append(took)
    show(found, len(requests))
    await model.aclose()


def _salted(requests: Sequence[ChatRequest], salt: str) -> list[ChatRequest]:
    """The same, of one length, in words that nobody has asked before."""
    digits = f"{abs(hash(salt)) % 10**6:06d}"
    lead = TextPart(f"[{digits}] ")
    return [replace(each, messages=(Message("user", (lead, *each.messages[0].parts)),)) for each in requests]


def show(found: Mapping[str, Sequence[tuple[float, int]]], size: int) -> None:
    """Medians, and the ratio of requests a second."""
    rates = {name: median(size / seconds for seconds, _ in taken) for name, taken in found.items()}
    (ours, theirs) = rates.values()
    for name, taken in found.items():
        tokens = median(written / seconds for seconds, written in taken)
        spread = f"{min(seconds for seconds, _ in taken):.1f} – {max(seconds for seconds, _ in taken):.1f} s"
        print(f"{name:28}{rates[name]:8.2f} requests/s{tokens:9.1f} tokens/s   {spread}")
    print(f"ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
