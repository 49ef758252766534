from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.chains import Planner
from askance.errors import BadRecord, ModelError, ReplayMiss, StoreError, UsageError
from askance.images import Image
from askance.models import Engine, ScriptedEmbedder
from askance.replay import MemoryStore, Record, export_cassette
from askance.retrieval import (
    Index,
    IndexEntry,
    RetrievalHit,
    RetrievalQuery,
    Retriever,
    reciprocal_rank_fusion,
    retriever,
)
from askance.retrieval.bm25 import Bm25
from askance.retrieval.entries import entry_id
from askance.retrieval.retriever import IndexRetriever
from tests.images.samples import png

CUP = "I should buy this cup because it is made of bricks."
DOG = "I should adopt a dog because dogs are loyal."
TOOTH = "I should see the dentist because bricks break teeth."
TEXTS = [CUP, DOG, TOOTH, "I should not drive because I drank.", "n/a"]
PICTURE = Image.load(png(), name="cup.png")


def vector(text: str, size: int = 8) -> list[float]:
    """Texts with words in common are similar."""
    chances = [random.Random(word) for word in text.lower().split()]
    return [sum(chance.gauss(0, 1) for chance in chances) for _ in range(size)]


def sentences() -> ScriptedEmbedder:
    return ScriptedEmbedder(vector, identity="sentences")


def eye() -> ScriptedEmbedder:
    return ScriptedEmbedder(lambda text: vector(text, 5), image=lambda _: vector(DOG, 5), identity="eye")


@pytest.fixture
def engine() -> Engine:
    return Engine(records=MemoryStore())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with the vectors of two embedders, one of which takes pictures."""
    folder = tmp_path_factory.mktemp("index") / "ads.index"
    engine = Engine(records=MemoryStore())

    async def build() -> None:
        entries = [IndexEntry.of(text) for text in TEXTS]
        await Index.build(folder, entries, embedder=sentences(), engine=engine)
        await Index.build(folder, entries, embedder=eye(), engine=engine)

    asyncio.run(build())
    return folder


def over(folder: Path | Index | dict[str, Any], engine: Engine, how: str = "hybrid", **settings: Any) -> IndexRetriever:
    named: dict[str, Any] = {"embedder": sentences(), "encoder": eye()} | settings
    found = retriever(folder, how=how, engine=engine, **named)
    assert isinstance(found, IndexRetriever)
    return found


def texts_of(hits: Sequence[RetrievalHit]) -> list[str]:
    return [hit.text for hit in hits]


def of_kind(engine: Engine, kind: Any = "search") -> list[Record]:
    return [*engine.recorder.records.of_kind(kind)]


# --- fusion ---

RANKINGS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8), min_size=1, max_size=6)


@given(RANKINGS)
def test_fusion_equals_its_formula(rankings: list[list[str]]) -> None:
    scores: dict[str, Fraction] = {}
    for ranking in rankings:
        for place, each in enumerate(ranking):
            scores[each] = scores.get(each, Fraction(0)) + Fraction(1, 60 + place + 1)
    expected = sorted(scores, key=lambda each: (-scores[each], each))

    found = reciprocal_rank_fusion(rankings)

    assert [each for each, _ in found] == expected
    assert [score for _, score in found] == pytest.approx([float(scores[each]) for each in expected])


@given(RANKINGS, st.randoms())
def test_fusion_depends_neither_on_the_order_of_rankings_nor_on_repeats(
    rankings: list[list[str]], chance: random.Random
) -> None:
    repeated = [[*ranking, *ranking] for ranking in rankings]
    chance.shuffle(repeated)
    assert reciprocal_rank_fusion(repeated) == reciprocal_rank_fusion(rankings)


# --- ways ---


async def test_each_way_finds_what_is_nearest(built: Path, engine: Engine) -> None:
    assert texts_of(await over(built, engine, "dense").search(CUP))[0] == CUP
    assert texts_of(await over(built, engine, "bm25").search("teeth")) == [TOOTH]
    assert texts_of(await over(built, engine, "image").search(RetrievalQuery(image=PICTURE)))[0] == DOG


async def test_scores_of_one_way_are_its_own(built: Path, engine: Engine) -> None:
    (dense, *_), (words, *_) = [await over(built, engine, how).search(CUP) for how in ("dense", "bm25")]
    assert (dense.text, dense.score) == (CUP, pytest.approx(1, abs=1e-3))
    index = Index.open(built)
    assert words.score == index.bm25.search(CUP, 1)[0][1]


async def test_hybrid_fuses_all_that_index_and_query_allow(built: Path, engine: Engine) -> None:
    ways = ("dense", "bm25", "image")
    single = [await over(built, engine, way).search(CUP, image=PICTURE) for way in ways]
    found = await over(built, engine).search(CUP, image=PICTURE)
    expected = reciprocal_rank_fusion([hit.id for hit in hits] for hits in single)

    assert [(hit.id, hit.score) for hit in found] == expected
    assert all(hit.text for hit in found)
    joined = await over(built, engine, "image+bm25+dense").search(CUP, image=PICTURE)
    assert joined == found
    text_alone = await over(built, engine).search(CUP)
    assert text_alone == await over(built, engine, "dense+bm25").search(CUP)


async def test_parts_are_searched_each_by_itself_and_fused(built: Path, engine: Engine) -> None:
    parts = ("bricks", "loyal")
    single = [await over(built, engine, "bm25").search(part) for part in parts]
    found = await over(built, engine, "bm25").search(RetrievalQuery((*parts, "  ")))
    assert [(hit.id, hit.score) for hit in found] == reciprocal_rank_fusion([h.id for h in hits] for hits in single)
    assert len(of_kind(engine)) == 2


async def test_a_long_text_is_the_mean_of_its_sentences(built: Path, engine: Engine) -> None:
    script = sentences()
    described = f"{CUP} {'word ' * 60}end."
    found = await over(built, engine, "dense", embedder=script).search(described)
    assert [text for call in script.asked for text in call] == [CUP, f"{'word ' * 60}end."]
    assert found[0].text == CUP
    (record,) = of_kind(engine)
    assert (record.request["query"], record.request["split"]) == (described, "sentences")


async def test_only_chosen_texts_are_found(built: Path, engine: Engine) -> None:
    among = [entry_id(DOG), entry_id(TOOTH), "0" * 16]
    found = await over(built, engine).search(CUP, image=PICTURE, among=among)
    assert {hit.id for hit in found} == {*among[:2]}
    (bm25, *_) = [record for record in of_kind(engine) if record.request["how"] == "bm25"]
    assert bm25.request["among"]["count"] == 3
    again = await over(built, engine).search(CUP, image=PICTURE, among=[*reversed(among * 2)])
    assert again == found


async def test_no_more_than_k_are_found(built: Path, engine: Engine) -> None:
    assert len(await over(built, engine, k=2).search(CUP, image=PICTURE)) == 2


# --- records ---


async def test_each_single_search_is_a_record(built: Path, engine: Engine) -> None:
    found = over(built, engine, k=3)
    await found.search(RetrievalQuery((CUP, DOG)), image=PICTURE)
    asked = [record.request for record in of_kind(engine)]
    assert sorted((form["how"], form.get("query", "picture")) for form in asked) == [
        ("bm25", DOG),
        ("bm25", CUP),
        ("dense", DOG),
        ("dense", CUP),
        ("image", "picture"),
    ]
    index = Index.open(built)
    assert all(form["index"] == {"sha256": index.digest, "count": len(TEXTS)} and form["k"] == 3 for form in asked)
    (image,) = [form for form in asked if form["how"] == "image"]
    assert image["model"] == {"name": "eye"}
    assert image["image"] == {"sha256": PICTURE.sha256}
    assert {record.key for record in of_kind(engine)} == {
        *found.keys(RetrievalQuery((CUP, DOG), PICTURE)),
    }
    (first, *_) = of_kind(engine)
    assert len(first.response["ids"]) == len(first.response["scores"]) == len(first.response["texts"])


def other() -> ScriptedEmbedder:
    """An embedder of the same name, which makes other vectors: of other weights, or in a stranger's index."""
    return ScriptedEmbedder(lambda text: vector(text[::-1]), identity="sentences")


async def test_searches_of_other_vectors_are_other_searches(built: Path, engine: Engine, tmp_path: Path) -> None:
    await Index.build(tmp_path / "other", [IndexEntry.of(text) for text in TEXTS], embedder=other(), engine=engine)
    here = over(built, engine, "dense", k=3)
    there = over(tmp_path / "other", engine, "dense", k=3, embedder=other())

    found = [await each.search(CUP) for each in (here, there)]
    replaying = Engine(records=engine.recorder.records, mode="replay")
    again = [
        await over(index, replaying, "dense", k=3).search(CUP)
        for index in (built, tmp_path / "other", here.index.form())
    ]

    assert found[0] != found[1]
    assert again == [*found, found[0]]
    assert Index.open(built).digest == Index.open(tmp_path / "other").digest


async def test_searches_that_were_recorded_without_their_vectors_are_found(built: Path, engine: Engine) -> None:
    """As before the vectors were part of the key: with the index, and with the form that an old run kept of it."""
    form = Index.open(built).form()
    before = {name: value for name, value in form.items() if name != "vectors"}
    (recorded,) = over(before, engine, "dense", k=3).keys(CUP)
    hits = await over(built, engine, "dense", k=3).search(CUP)
    (record,) = of_kind(engine)
    request = {name: value for name, value in record.request.items() if name != "store"}
    old = Engine(records=MemoryStore())
    old.recorder.records.put(Record.make("search", request, record.response))

    assert (Record.make("search", request, record.response).key, record.key != recorded) == (recorded, True)
    for index in (built, form, before):
        for mode in ("replay", "auto"):
            asked = over(index, Engine(records=old.recorder.records, mode=mode), "dense", k=3)
            assert await asked.search(CUP) == hits
            assert asked.keys(CUP) == (recorded,)
    await over(built, Engine(records=old.recorder.records, mode="refresh"), "dense", k=3).search(CUP)
    assert {each.key for each in of_kind(old)} == {recorded, record.key}


ABSENT = ("bm25s", "Stemmer", "llama_index", "lancedb", "torch", "transformers", "sentence_transformers", "numpy")
REPLAYED = """
import asyncio, json, sys
for name in {absent}:
    sys.modules[name] = None
from askance.images import Image
from askance.models import Engine
from askance.replay import Cassette
from askance.retrieval import RetrievalQuery, retriever
form, texts, among = json.loads(sys.argv[1])
names = {{"embedder": {{"model": {{"name": "sentences"}}}}, "encoder": {{"model": {{"name": "eye"}}}}}}
engine = Engine(records=Cassette("searches.jsonl"), mode="replay")
query = RetrievalQuery(tuple(texts), Image.load("cup.png"))
hits = asyncio.run(retriever(form, engine=engine, **names).search(query, among=among))
print(json.dumps([[hit.id, hit.score, hit.text] for hit in hits]))
"""


async def test_a_replay_needs_no_index_weights_or_packages(built: Path, engine: Engine, tmp_path: Path) -> None:
    texts, among = (CUP, f"{CUP} {'word ' * 60}end."), list(map(entry_id, TEXTS))
    found = await over(built, engine).search(RetrievalQuery(texts, PICTURE), among=among)
    export_cassette(engine.recorder.records, tmp_path / "searches.jsonl")
    (tmp_path / "cup.png").write_bytes(PICTURE.data)
    asked = json.dumps([Index.open(built).form(), texts, among])

    command = [sys.executable, "-c", REPLAYED.format(absent=ABSENT), asked]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, stdout=subprocess.PIPE, check=True, timeout=100
    )

    assert json.loads(done.stdout) == [[hit.id, hit.score, hit.text] for hit in found]


async def test_a_search_that_is_not_on_record_is_missed(built: Path, engine: Engine) -> None:
    await over(built, engine, "bm25").search(CUP)
    replaying = Engine(records=engine.recorder.records, mode="replay")
    with pytest.raises(ReplayMiss, match=r"differs in the query"):
        await over(Index.open(built).form(), replaying, "bm25").search("dogs")


async def test_index_json_alone_is_enough_for_a_replay(built: Path, engine: Engine, tmp_path: Path) -> None:
    found = await over(built, engine).search(CUP)
    shutil.copyfile(built / "index.json", tmp_path / "index.json")
    assert await over(tmp_path, engine).search(CUP) == found
    with pytest.raises(StoreError, match=r"lacks its file"):
        await over(tmp_path, engine, "bm25").search(DOG)


async def test_an_index_of_other_texts_is_named_by_a_miss(built: Path, engine: Engine, tmp_path: Path) -> None:
    await over(built, engine, "bm25").search(CUP)
    await Index.build(tmp_path / "other", [IndexEntry.of(text) for text in TEXTS[:3]], engine=engine)
    replaying = Engine(records=engine.recorder.records, mode="replay")
    with pytest.raises(ReplayMiss, match=r"differs in the texts of the index"):
        await over(tmp_path / "other", replaying, "bm25", embedder=None, encoder=None).search(CUP)


async def test_the_same_search_at_once_is_made_once(
    built: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    search = Bm25.search

    def counted(self: Bm25, text: str, k: int, among: Collection[str] | None = None) -> Any:
        made.append(text)
        return search(self, text, k, among)

    monkeypatch.setattr(Bm25, "search", counted)
    found = over(built, engine, "bm25")
    one, other, *_ = await asyncio.gather(*(found.search(RetrievalQuery((CUP, DOG, CUP))) for _ in range(5)))
    assert one == other
    assert sorted(made) == sorted([CUP, DOG])


@pytest.mark.parametrize(("mode", "made"), [("auto", 1), ("live", 2), ("refresh", 1)])
async def test_modes_are_those_of_every_record(
    built: Path, mode: Any, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = MemoryStore()
    await over(built, Engine(records=records), "bm25").search(CUP)
    calls: list[str] = []

    def changed(*args: Any) -> Any:
        calls.append(args[1])
        return [(entry_id(DOG), 1.0)]

    monkeypatch.setattr(Bm25, "search", changed)
    again = over(built, Engine(records=records, mode=mode), "bm25")
    hits = [await again.search(CUP) for _ in range(2)]
    assert len(calls) == (0 if mode == "auto" else made)
    assert hits[1][0].text == (CUP if mode == "auto" else DOG)
    (record,) = records.of_kind("search")
    assert (record.response["texts"][0] == DOG) == (mode == "refresh")


async def test_vectors_of_queries_are_not_on_record(built: Path, engine: Engine) -> None:
    await over(built, engine).search(CUP)
    assert of_kind(engine, "embed") == []


DAMAGED: list[dict[str, Any]] = [
    {"ids": ["a"], "scores": [], "texts": []},
    {"ids": ["a"], "scores": [1.0]},
    {"ids": ["a"], "scores": ["high"], "texts": []},
    {"ids": ["a"], "scores": [1.0], "texts": ["a", "b"]},
    {"ids": 3, "scores": [1.0], "texts": []},
    {"ids": ["a"], "scores": ["nan"], "texts": []},
    {"ids": ["a"], "scores": [True], "texts": []},
    {"ids": ["a", "a"], "scores": [1.0, 1.0], "texts": []},
    {"ids": [None], "scores": [1.0], "texts": []},
    {"ids": ["a"], "scores": [1.0], "texts": [["a"]]},
    {"ids": [str(number) for number in range(101)], "scores": [1.0] * 101, "texts": []},
    {"ids": [entry_id(CUP)], "scores": [1.0], "texts": [DOG]},
]


@pytest.mark.parametrize("response", DAMAGED, ids=range(len(DAMAGED)))
async def test_a_damaged_record_is_said_to_be(built: Path, engine: Engine, response: dict[str, Any]) -> None:
    await over(built, engine, "bm25").search(CUP)
    (record,) = of_kind(engine)
    damaged = Engine(records=MemoryStore([Record.make("search", record.request, response)]))
    with pytest.raises(BadRecord, match=r"holds no result of a search\."):
        await over(built, damaged, "bm25").search(CUP)


# --- what cannot be searched ---


@pytest.mark.parametrize("query", ["", " \n", RetrievalQuery(), RetrievalQuery(("", " "))], ids=repr)
async def test_an_empty_query_is_refused(built: Path, engine: Engine, query: Any) -> None:
    with pytest.raises(UsageError, match=r"The query is empty\. Give a text"):
        await over(built, engine).search(query)


@pytest.fixture
async def words(tmp_path: Path, engine: Engine) -> Index:
    """An index without vectors."""
    return await Index.build(tmp_path / "words.index", [IndexEntry.of(text) for text in TEXTS], engine=engine)


@pytest.mark.parametrize(("how", "spec"), [("dense", "st:FOLDER"), ("image", "clip:FOLDER"), ("bm25+image", "clip:")])
def test_a_way_that_the_index_has_not_is_refused(words: Index, engine: Engine, how: str, spec: str) -> None:
    with pytest.raises(UsageError, match=rf"cannot be searched by .*index build FOLDER --embedder {spec}"):
        retriever(words, how=how, engine=engine)


async def test_a_picture_alone_needs_a_dual_encoder(words: Index, engine: Engine) -> None:
    found = retriever(words, engine=engine)
    with pytest.raises(UsageError, match=r"cannot be searched by a picture.*--embedder clip:FOLDER"):
        await found.search(RetrievalQuery(image=PICTURE))
    assert texts_of(await found.search("teeth", image=PICTURE)) == [TOOTH]


@pytest.mark.parametrize(
    ("how", "query", "lacking"),
    [("image", CUP, "picture"), ("dense+image", CUP, "picture"), ("bm25", RetrievalQuery(image=PICTURE), "text")],
    ids=["image", "joined", "words"],
)
async def test_a_query_that_lacks_what_a_way_needs_is_refused(
    built: Path, engine: Engine, how: str, query: Any, lacking: str
) -> None:
    with pytest.raises(UsageError, match=rf"The query has no {lacking}.*take `hybrid`"):
        await over(built, engine, how).search(query)


@pytest.mark.parametrize("how", ["", "clip", "dense+", "hybrid+dense", "Dense"])
def test_a_way_that_there_is_not_is_refused(built: Path, engine: Engine, how: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be searched by .*Choose hybrid, or some of dense, bm25, image"):
        over(built, engine, how)


def test_another_encoder_than_the_index_has_is_refused(built: Path, engine: Engine) -> None:
    other = ScriptedEmbedder(vector, identity="other")
    with pytest.raises(UsageError, match=r"no vectors of the embedder .*other.*It has: .*sentences"):
        over(built, engine, embedder=other)
    with pytest.raises(UsageError, match=r"has vectors of 2 embedders, and none is named"):
        over(built, engine, embedder=None)


async def test_among_nothing_is_refused(built: Path, engine: Engine) -> None:
    nothing: tuple[Collection[str], ...] = ((), "0123")
    for among in nothing:
        with pytest.raises(UsageError, match=r"no texts to search among"):
            await over(built, engine).search(CUP, among=among)


def test_nothing_can_be_wanted(built: Path, engine: Engine) -> None:
    with pytest.raises(UsageError, match=r"The 0 best"):
        over(built, engine, k=0)
    with pytest.raises(UsageError, match=r"known by its digest"):
        retriever(built, identity="mine", engine=engine)


async def test_only_the_form_of_an_index_answers_from_records_alone(built: Path, engine: Engine) -> None:
    with pytest.raises(UsageError, match=r"known by its form alone.*Give the folder"):
        await over(Index.open(built).form(), engine, "bm25").search(CUP)


# --- texts of hits that stand far behind in each ranking ---


async def test_first_hits_have_their_texts_wherever_they_stood(tmp_path: Path) -> None:
    engine = Engine(records=MemoryStore())
    # The last of both rankings' first hundred differ, and the hits behind them are the same.
    shared = [f"left right both{number}" for number in range(60)]
    sides = [f"{side} {side}only{number}" for side in ("left", "right") for number in range(120)]
    index = await Index.build(tmp_path / "index", [IndexEntry.of(text) for text in (*shared, *sides)], engine=engine)
    query = RetrievalQuery(("left", "right"))

    found = await retriever(index, k=200, engine=engine).search(query)

    assert len(found) == 200
    assert all(hit.text for hit in found[:100])
    assert not any(hit.text for hit in found[100:])
    assert {record.request["how"] for record in of_kind(engine)} == {"bm25", "texts"}
    replaying = Engine(records=engine.recorder.records, mode="replay")
    assert await retriever(index.form(), k=200, engine=replaying).search(query) == found


# --- plans ---


def planned(found: Any, query: RetrievalQuery, **settings: Any) -> dict[str, tuple[int, int, int]]:
    planner = Planner()
    found.plan(planner, query, **settings)
    found.plan(planner, query)
    counts: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for line in planner.plan().links:
        counts[line.link].append((line.hits, line.known, line.dependent))
    return {link: (sum(a), sum(b), sum(c)) for link, rows in counts.items() for a, b, c in [[*zip(*rows, strict=True)]]}


async def test_a_plan_counts_searches_and_vectors(built: Path, engine: Engine) -> None:
    found = over(built, engine)
    query = RetrievalQuery((CUP, f"{CUP} {'word ' * 60}end."), PICTURE)
    # Two texts by two ways, and a picture. One sentence of the long text is the other text.
    assert planned(found, query) == {"searches": (0, 5, 0), "vectors": (0, 3, 0)}
    assert of_kind(engine) == []
    await found.search(CUP)
    assert planned(found, query, waiting=2) == {"searches": (2, 3, 4), "vectors": (0, 3, 2)}
    await found.search(query)
    assert planned(found, query) == {"searches": (5, 0, 0)}


# --- other retrievers ---


class Own:
    """A retriever of one's own."""

    def __init__(self, *hits: RetrievalHit) -> None:
        self.asked: list[Any] = []
        self.hits = hits

    async def search(
        self, query: str | RetrievalQuery, *, image: Image | None = None, among: Collection[str] | None = None
    ) -> list[RetrievalHit]:
        self.asked.append(query)
        return [hit for hit in self.hits if among is None or hit.id in among]


A, B = RetrievalHit("a", 2.0, "text a"), RetrievalHit("b", 1.0, "text b")


async def test_an_own_retriever_is_recorded_under_its_name(engine: Engine) -> None:
    own = Own(A, B, A)
    found = retriever(own, identity="mine", k=2, engine=engine)
    assert isinstance(found, Retriever)
    assert await found.search("x") == [A, B]
    assert await found.search("x") == [A, B]
    assert await found.search("x", among=["b"]) == [B]
    assert own.asked == ["x", "x"]
    replaying = Engine(records=engine.recorder.records, mode="replay")
    assert await retriever(Own(), identity="mine", k=2, engine=replaying).search("x") == [A, B]
    with pytest.raises(ReplayMiss, match=r"differs in the query"):
        await retriever(own, identity="mine", k=2, engine=replaying).search("y")
    assert planned(found, RetrievalQuery(("x", "y")), waiting=1) == {"searches": (1, 1, 1)}


async def test_an_own_retriever_without_a_name_is_not_recorded(engine: Engine) -> None:
    own = Own(A)
    found = retriever(own, engine=engine)
    assert [await found.search("x") for _ in range(2)] == [[A], [A]]
    assert (len(own.asked), of_kind(engine), found.keys("x")) == (2, [], ())
    with pytest.raises(UsageError, match=r"cannot be replayed.*identity="):
        retriever(own, engine=Engine(records=MemoryStore(), mode="replay"))


async def test_parts_of_a_query_are_fused_over_an_own_retriever(engine: Engine) -> None:
    own = Own(A, B)
    found = await retriever(own, identity="mine", engine=engine).search(RetrievalQuery(("x", "y"), PICTURE))
    assert [hit.id for hit in found] == ["a", "b"]
    assert own.asked == ["x", "y", RetrievalQuery(image=PICTURE)]


async def test_a_score_that_is_no_number_is_refused(engine: Engine) -> None:
    with pytest.raises(ModelError, match=r"mine gave nan as a score"):
        await retriever(Own(RetrievalHit("a", float("nan"), "")), identity="mine", engine=engine).search("x")


def test_what_is_no_retriever_is_refused(engine: Engine) -> None:
    with pytest.raises(UsageError, match=r"A int is no retriever"):
        retriever(7, engine=engine)
    with pytest.raises(UsageError, match=r"searches in its own way"):
        retriever(Own(), how="dense", engine=engine)
