"""What an index of texts costs beside plain numpy: its build, its first search and those after it, and the memory.

    python benchmarks/retrieval.py [--entries 200000] [--size 384] [--rounds 20]

Texts and vectors are made up, so that no weights are needed and an embedder costs both sides the same. Plain numpy
keeps the same vectors, in 16 bits in one array on the disk; its search is one product in 32 bits and the 100 largest of
it. It keeps no texts, checks nothing, and orders equal scores as they come. Each side builds and searches in a process
of its own, whose largest memory is shown. Needs `pip install 'askance[retrieval]'`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

WORDS = ("buy", "drink", "drive", "eat", "save", "see", "use", "wear", "the", "this", "coffee", "car", "phone", "fresh")
K = 100


def main() -> None:
    """Measure and print; `--part` is one of the processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=384, help="numbers of a vector")
    parser.add_argument("--rounds", type=int, default=20, help="searches")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part is not None:
        said = PARTS[given.part](given.folder, given.entries, given.size, given.rounds)
        unit = 1 if sys.platform == "darwin" else 1024
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
        print(json.dumps({name: [seconds, megabytes] for name, seconds in said.items()}))
        return
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            command = [sys.executable, __file__, "--part", part, "--folder", folder, "--entries", str(given.entries)]
            command += ["--size", str(given.size), "--rounds", str(given.rounds)]
            found |= json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    print(f"{given.entries:,} texts, vectors of {given.size} numbers, {K} hits:\n")
    print("| | seconds | ratio | peak memory, MB | ratio |\n|---|---|---|---|---|")
    for name in ("build", "first search", "search"):
        base = found[f"{name}, numpy"]
        for row in (row for row in found if row.startswith(f"{name}, ")):
            (seconds, megabytes), ratios = found[row], [a / b for a, b in zip(found[row], base, strict=True)]
            print(f"| {row} | {seconds:.3f} | {ratios[0]:.2f} | {megabytes:.0f} | {ratios[1]:.2f} |")


def texts(count: int) -> list[str]:
    """Statements, all different."""
    draw = random.Random(7)
    return [f"I should {' '.join(draw.choices(WORDS, k=8))} because it is {number}" for number in range(count)]


class Embedder:
    """Vectors that are made up; equal numbers of texts get equal vectors."""

    id = "made up"

    def __init__(self, size: int) -> None:
        self.size = size
        self.draw = np.random.default_rng(7)

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text."""
        return self.draw.normal(size=(len(texts), self.size)).tolist()


def build(folder: Path, entries: int, size: int, _: int) -> dict[str, float]:
    """An index."""
    from askance.models import Engine
    from askance.replay import MemoryStore
    from askance.retrieval import Index, IndexEntry

    rows = [IndexEntry.of(text, (f"{number % 50_000}.jpg",), "train") for number, text in enumerate(texts(entries))]
    engine = Engine(records=MemoryStore())
    start = time.perf_counter()
    asyncio.run(Index.build(folder / "index", rows, embedder=Embedder(size), engine=engine))
    return {"build, index": time.perf_counter() - start}


def build_numpy(folder: Path, entries: int, size: int, _: int) -> dict[str, float]:
    """An array of the same vectors."""
    said, embedder = texts(entries), Embedder(size)
    start = time.perf_counter()
    kept = np.empty((entries, size), dtype=np.float16)
    for place in range(0, entries, 1024):
        rows = np.array(asyncio.run(embedder.embed(said[place : place + 1024])))
        kept[place : place + 1024] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.save(folder / "vectors.npy", kept)
    return {"build, numpy": time.perf_counter() - start}


def search(folder: Path, _: int, size: int, rounds: int) -> dict[str, float]:
    """Searches of an index."""
    from askance.models.encoders.vectors import half
    from askance.retrieval import Index

    start = time.perf_counter()
    index = Index.open(folder / "index")
    store = index.vectors(index.space())
    asked = [half(row) for row in np.random.default_rng(8).normal(size=(rounds, size))]

    async def all_of_them() -> dict[str, float]:
        await store.search(asked[:1], K)
        first = time.perf_counter() - start
        spent = [await timed(lambda each=each: store.search([each], K)) for each in asked]
        return {"first search, index": first, "search, index": statistics.median(spent)}

    return asyncio.run(all_of_them())


async def timed(what: Callable[[], Any]) -> float:
    """Seconds that it takes."""
    start = time.perf_counter()
    await what()
    return time.perf_counter() - start


def search_numpy(folder: Path, _: int, size: int, rounds: int) -> dict[str, float]:
    """Searches of an array."""
    start = time.perf_counter()
    kept = np.load(folder / "vectors.npy").astype(np.float32)
    asked = np.random.default_rng(8).normal(size=(rounds, size)).astype(np.float32)

    def one(query: np.ndarray[Any, Any]) -> object:
        scores = kept @ query
        best = np.argpartition(scores, -K)[-K:]
        return best[np.argsort(-scores[best])]

    one(asked[0])
    first, spent = time.perf_counter() - start, list[float]()
    for query in asked:
        start = time.perf_counter()
        one(query)
        spent.append(time.perf_counter() - start)
    return {"first search, numpy": first, "search, numpy": statistics.median(spent)}


def search_words(folder: Path, entries: int, _: int, rounds: int) -> dict[str, float]:
    """Searches of an index by words."""
    from askance.retrieval import Index

    start = time.perf_counter()
    words = Index.open(folder / "index").bm25
    asked = texts(entries)[:rounds]
    words.search(asked[0], K)
    first, spent = time.perf_counter() - start, list[float]()
    for query in asked:
        start = time.perf_counter()
        words.search(query, K)
        spent.append(time.perf_counter() - start)
    return {"first search, words": first, "search, words": statistics.median(spent)}


PARTS: dict[str, Callable[[Path, int, int, int], dict[str, float]]] = {
    "build-numpy": build_numpy,
    "build": build,
    "search-numpy": search_numpy,
    "search": search,
    "search-words": search_words,
}

if __name__ == "__main__":
    main()
