from __future__ import annotations

import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.errors import BadRecord, ReplayMiss, UsageError
from askance.images import Image
from askance.models import Engine, Hit, ScriptedEmbedder, ScriptedScorer, best_texts, nearest_texts
from askance.models.encoders.search import Nearest
from askance.models.encoders.vectors import half
from askance.replay import MemoryStore, Record, open_records
from tests.scripted import PICTURE

CUP = Image.load(PICTURE)


def vectors(count: int, *, size: int = 24, seed: int = 0) -> list[Any]:
    numbers = np.random.default_rng(seed).normal(size=(count, size))
    # Some candidates are equal, so that order decides.
    numbers[count // 2 :: 7] = numbers[0]
    return [half(row) for row in numbers]


def found(queries: list[Any], candidates: list[Any], *, block: int, k: int) -> list[list[Hit]]:
    nearest = Nearest(queries, k=k)
    for start in range(0, len(candidates), block):
        nearest.add(candidates[start : start + block])
    return nearest.hits()


@pytest.mark.parametrize("block", [1, 7, 64, 999, 1000, 5000])
def test_blocks_give_what_looking_at_all_at_once_gives_bit_for_bit(block: int) -> None:
    queries, candidates = vectors(5, seed=1), vectors(1000)
    rows = np.stack(candidates).astype(np.float64)
    asked = np.stack(queries).astype(np.float64)
    lengths = np.outer(np.sqrt((asked**2).sum(1)), np.sqrt((rows**2).sum(1)))
    scores = np.clip((asked @ rows.T) / lengths, -1, 1)

    hits = found(queries, candidates, block=block, k=10)

    for query, best in zip(scores, hits, strict=True):
        order = sorted(range(len(query)), key=lambda place: (-query[place], place))[:10]
        assert best == [Hit(place, float(query[place])) for place in order]


def test_memory_is_that_of_a_block() -> None:
    size, block = 128, 512
    nearest = Nearest(vectors(2, size=size), k=10)
    tracemalloc.start()
    for seed in range(20):
        nearest.add(vectors(block, size=size, seed=seed))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 20 * block * size * 8 / 4
    assert len(nearest.hits()[0]) == 10


TEXTS = [f"text {number}" for number in range(300)]


def scripted() -> ScriptedEmbedder:
    return ScriptedEmbedder(
        lambda text: [random.Random(f"{text}{at}").gauss(0, 1) for at in range(8)], identity="table"
    )


async def test_a_search_is_one_record_and_replays_without_vectors(tmp_path: Path) -> None:
    script = scripted()
    with open_records(tmp_path / "store") as store:
        engine = Engine(records=store)
        first = await nearest_texts(["text 7", "x"], TEXTS, embedder=script, k=3, block=64, engine=engine)
        again = await nearest_texts(["x"], TEXTS, embedder=script, k=3, block=1000, engine=engine)
        fewer = await nearest_texts(["x"], TEXTS[:200], embedder=script, k=3, engine=engine)
        assert len(store) == 3
        (tmp_path / "store" / "vectors").rename(tmp_path / "elsewhere")
        replayed = await nearest_texts(
            ["x", "text 7"], TEXTS, embedder=scripted(), k=3, engine=Engine(records=store, mode="replay")
        )

    assert first[0][0].place == 7
    assert first[0][0].score == pytest.approx(1, abs=1e-6)
    assert (again, replayed) == ([first[1]], [first[1], first[0]])
    assert {hit.place for hit in fewer[0]} <= set(range(200))
    # Each text is encoded once, the queries among them.
    asked = [text for call in script.asked for text in call]
    assert sorted(asked) == sorted({*TEXTS, "x"})


async def test_a_search_that_is_not_on_record_is_missed() -> None:
    with pytest.raises(ReplayMiss, match=r"^No score answer is on record"):
        await nearest_texts(["x"], TEXTS, embedder=scripted(), engine=Engine(records=MemoryStore(), mode="replay"))


async def test_a_damaged_result_is_said_to_be() -> None:
    records = MemoryStore()
    await nearest_texts(["x"], TEXTS, embedder=scripted(), k=2, engine=Engine(records=records))
    (record,) = records
    damaged = MemoryStore([Record.make("score", record.request, {"places": [1], "scores": []})])

    with pytest.raises(BadRecord, match=r"holds no result of a search\."):
        await nearest_texts(["x"], TEXTS, embedder=scripted(), k=2, engine=Engine(records=damaged))


@pytest.mark.parametrize("block", [1, 50, 4096])
async def test_the_best_texts_of_a_picture(block: int) -> None:
    records = MemoryStore()
    scorer = ScriptedScorer(lambda _, text: int(text.split()[1]) % 100, identity="eye")

    hits = await best_texts(CUP, TEXTS, scorer=scorer, k=4, block=block, engine=Engine(records=records))

    assert hits == [Hit(99, 99.0), Hit(199, 99.0), Hit(299, 99.0), Hit(98, 98.0)]
    replayed = await best_texts(CUP, TEXTS, scorer=scorer, k=4, engine=Engine(records=records, mode="replay"))
    assert (replayed, len(records)) == (hits, 1)


@pytest.mark.parametrize(
    ("candidates", "k", "message"),
    [([], 1, "There are no candidates"), ("text", 1, "There are no candidates"), (TEXTS, 0, "The 0 best of some")],
    ids=["none", "a text", "no hits"],
)
async def test_what_cannot_be_looked_for(candidates: Any, k: int, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        await nearest_texts(["x"], candidates, embedder=scripted(), k=k, engine=Engine(records=MemoryStore()))
