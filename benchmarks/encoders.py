"""What a dual encoder costs: batched against one by one, kept against encoded, and a search among many texts.

    python benchmarks/encoders.py FOLDER [--pictures 64] [--texts 512] [--candidates 100000]

FOLDER holds a dual encoder of transformers; pictures are made up. Needs `pip install 'askance[local]'`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from askance.images import Image
from askance.models import Engine, get_scorer
from askance.models.encoders.search import Nearest
from askance.models.encoders.vectors import half
from askance.replay import open_records

WORDS = ("a cup of bricks", "a horse on a coin", "feathers", "drink tea and sleep well", "tonight", "red or blue")


def pictures(count: int) -> list[Image]:
    """Pictures of noise, all different."""
    draw = np.random.default_rng(0)
    return [Image.from_pil(Pillow.fromarray(draw.integers(0, 256, (240, 320, 3), "uint8"))) for _ in range(count)]


def texts(count: int) -> list[str]:
    """Texts of some words, all different."""
    draw = random.Random(0)
    return [f"{' '.join(draw.choices(WORDS, k=draw.randint(1, 5)))} {number}" for number in range(count)]


async def timed(what: Callable[[], Awaitable[object]]) -> float:
    """Seconds that it takes."""
    start = time.perf_counter()
    await what()
    return time.perf_counter() - start


async def encoding(folder: str, images: list[Image], said: list[str]) -> None:
    """Pictures and texts, one by one, batched, and found."""
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        for name, batch in (("one by one", 1), ("batched", 32)):
            with open_records(Path(place) / name) as store:
                scorer = get_scorer(f"clip:{folder}?batch={batch}", engine=Engine(records=store))
                await scorer.score(images[0], ["warm up"])
                seconds[f"texts, {name}"] = await timed(lambda scorer=scorer: scorer.score(images[0], said))
                seconds[f"pictures, {name}"] = await timed(
                    lambda scorer=scorer: asyncio.gather(*(scorer.score(image, said[:1]) for image in images))
                )
        with open_records(Path(place) / "batched") as store:
            # Another scale: none of these scores is on record, and all vectors are kept.
            again = get_scorer(f"clip:{folder}?batch=32&long=max", engine=Engine(records=store))
            seconds["texts, kept"] = await timed(lambda: again.score(images[0], said))
            seconds["pictures, kept"] = await timed(
                lambda: asyncio.gather(*(again.score(image, said[:1]) for image in images))
            )
    for what in ("texts", "pictures"):
        slow, fast, kept = (seconds[f"{what}, {how}"] for how in ("one by one", "batched", "kept"))
        line = f"{what}: one by one {slow:.2f} s, batched {fast:.2f} s ({slow / fast:.1f} times), "
        print(line + f"kept {kept:.2f} s ({fast / kept:.1f} times)")


def searching(count: int, *, size: int = 512, block: int = 4096) -> None:
    """A search among so many vectors, without encoding them."""
    draw = np.random.default_rng(0)
    queries = [half(row) for row in draw.normal(size=(10, size))]
    nearest, spent = Nearest(queries, k=10), 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for start in range(0, count, block):
        rows = [half(row) for row in draw.normal(size=(min(block, count - start), size))]
        begun = time.perf_counter()
        nearest.add(rows)
        spent += time.perf_counter() - begun
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / (
        1 << 20 if sys.platform == "darwin" else 1024
    )
    print(f"search: 10 texts among {count:,} vectors of {size} numbers: {spent:.2f} s, {grown:.0f} MB")


def main() -> None:
    """Runs all of it."""
    reads = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reads.add_argument("folder")
    reads.add_argument("--pictures", type=int, default=64)
    reads.add_argument("--texts", type=int, default=512)
    reads.add_argument("--candidates", type=int, default=100_000)
    asked = reads.parse_args()
    searching(asked.candidates)
    asyncio.run(encoding(asked.folder, pictures(asked.pictures), texts(asked.texts)))


if __name__ == "__main__":
    main()
