"""Four questions about each picture on one `hf:` model: pictures computed once or four times, together or one by one.

    python benchmarks/local.py FOLDER PICTURE… [--tokens N] [--runs N] [--dtype TYPE]

FOLDER holds a vision-language model. Needs the extra `local`. Every way asks the same and writes as many tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from askance.chat import ChatRequest, ImagePart, Message, ModelId, Sampling, TextPart
from askance.images import Image, Shown
from askance.models.local import HFModel
from askance.models.settings import Local

QUESTIONS = (
    "What are the non-textual objects visible in this image?",
    "What text can be read in this image?",
    "Describe this image.",
    "What is unusual about this image?",
)


@dataclass(frozen=True, kw_only=True)
class Way:
    """How the questions are asked."""

    name: str
    share: bool
    together: bool


WAYS = (
    Way(name="one by one, four encodes", share=False, together=False),
    Way(name="one by one, one encode", share=True, together=False),
    Way(name="batched, four encodes", share=False, together=True),
    Way(name="batched, one encode", share=True, together=True),
)


@dataclass(frozen=True, kw_only=True)
class Took:
    """What one way took."""

    seconds: float
    tokens: int
    encodes: int
    reused: int
    texts: tuple[str, ...]


async def ask(way: Way, folder: str, requests: list[ChatRequest], *, dtype: str) -> Took:
    """The requests, asked in this way of a model that is loaded already."""
    local = Local(dtype=dtype, batch=16 if way.together else 1, share=way.share)  # pyright: ignore[reportArgumentType]
    model = HFModel(folder, local=local)
    await model.generate(requests[-1])
    before = (model.counters.encodes, model.counters.prefix_reused)
    start = time.perf_counter()
    if way.together:
        answers = await asyncio.gather(*map(model.generate, requests[:-1]))
    else:
        answers = [await model.generate(request) for request in requests[:-1]]
    seconds = time.perf_counter() - start
    took = Took(
        seconds=seconds,
        tokens=sum(answer.usage.output or 0 for answer in answers),
        encodes=model.counters.encodes - before[0],
        reused=model.counters.prefix_reused - before[1],
        texts=tuple(answer.text for answer in answers),
    )
    await model.aclose()
    return took


def requests_about(pictures: list[Path], *, tokens: int) -> list[ChatRequest]:
    """Every question about every picture, and one about nothing to begin with."""

    def request(*parts: ImagePart | TextPart) -> ChatRequest:
        return ChatRequest(
            model=ModelId("hf", "measured", name="measured"),
            messages=(Message("user", parts),),
            sampling=Sampling(temperature=0, max_tokens=tokens),
        )

    images = [Image.from_path(path) for path in pictures]
    asked = [request(ImagePart(Shown(image)), TextPart(question)) for image in images for question in QUESTIONS]
    return [*asked, request(TextPart("Ready?"))]


def main() -> None:
    """Measure each way in turn and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("pictures", nargs="+", type=Path)
    parser.add_argument("--tokens", type=int, default=32, help="of each answer, at most")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dtype", default="auto")
    given = parser.parse_args()
    requests = requests_about(given.pictures, tokens=given.tokens)
    found: dict[str, list[Took]] = {way.name: [] for way in WAYS}
    for _ in range(given.runs):
        for way in WAYS:
            found[way.name].append(asyncio.run(ask(way, given.folder, requests, dtype=given.dtype)))
    show(found)
    if len({took.texts for taken in found.values() for took in taken}) > 1:
        sys.exit("The answers differ.")


def show(found: dict[str, list[Took]]) -> None:
    """The medians; the first way is what the others are held against."""
    base = median(took.seconds for took in next(iter(found.values())))
    print(f"{'':28}{'seconds':>9}{'times':>7}{'tokens/s':>10}{'encodes':>9}{'reused':>8}")
    for name, taken in found.items():
        seconds = median(took.seconds for took in taken)
        last = taken[-1]
        print(
            f"{name:28}{seconds:9.2f}{base / seconds:7.2f}{last.tokens / seconds:10.1f}{last.encodes:9}{last.reused:8}"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory of the process: {peak:.0f} MiB.")


if __name__ == "__main__":
    main()
