"""llama-index, both ways: its own engines, tools and retrievers work unchanged over ours, are recorded, and replay."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.llms.types import AudioBlock, ChatMessage, ImageBlock, TextBlock, ThinkingBlock
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from pydantic import BaseModel, PrivateAttr

from askance.chains import action_reason, verbalize
from askance.chat import ChatRequest, ChatResponse
from askance.errors import (
    BadImage,
    Filtered,
    InvalidOutput,
    ModelError,
    Refused,
    ReplayMiss,
    StoreError,
    Truncated,
    UsageError,
)
from askance.models import Capabilities, Engine, ScriptedEmbedder, ScriptedModel, cosine, get_embedder
from askance.models.encoders.vectors import half
from askance.replay import MemoryStore, Mode
from askance.retrieval import ExactVectors, Index, IndexEntry, entry_id
from askance.retrieval.llama import (
    AskanceEmbedding,
    AskanceLLM,
    ChainQueryEngine,
    ChooserRerank,
    LlamaVectorStore,
    as_retriever,
)
from askance.retrieval.retriever import RetrievalQuery, retriever
from tests.scripted import ENFORCED, OPTIONS, PICTURE, PICTURES, model_of, scripted

TEXTS = [
    "I should buy this coffee because it is strong",
    "I should buy this coffee because it is cheap",
    "I should drink tea because coffee keeps me awake",
    "I should not lay bricks because my back hurts",
    "I should lay bricks because a house lasts",
    "I should sleep because the bed is soft",
    "I should buy a bed because sleep matters",
    "I should call my mother because she is alone",
]
ENTRIES = [IndexEntry.of(text, (f"{place}.jpg", "shared.jpg")) for place, text in enumerate(TEXTS)]
QUERY = "a cup of coffee made of bricks"


def words(text: str) -> list[float]:
    """How often each letter of the alphabet stands in a text."""
    counts = Counter(text.lower())
    return [float(counts[letter]) for letter in "abcdefghijklmnopqrstuvwxyz"]


def embedder() -> ScriptedEmbedder:
    return ScriptedEmbedder(words, identity="letters")


@pytest.fixture
def records() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def engine(records: MemoryStore) -> Callable[..., Engine]:
    """An engine over the records of the test, in any mode."""

    def make(mode: Mode = "auto") -> Engine:
        return Engine(records=records, mode=mode)

    return make


@pytest.fixture
async def index(own_place: Path) -> Index:
    return await Index.build(own_place / "ads.index", ENTRIES, embedder=embedder())


@pytest.fixture
def unplug(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From when it is called, no connection can be opened and no host looked up, not even of this machine."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        pytest.fail("A replay opened a connection.")

    def unplugged() -> None:
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        for name in ("connect", "connect_ex", "sendto"):
            monkeypatch.setattr(socket.socket, name, refuse)

    return unplugged


def answer(request: ChatRequest) -> str:
    """A reader of texts that answers by the first statement it is shown, and chooses the longest options."""
    said = "\n".join(message.text for message in request.messages)
    if request.response is not None and "answers" in json.dumps(request.response.schema or {}):
        options = re.findall(r"^\s*(\d+)[.):]\s*(.*)$", said, re.MULTILINE)
        by_length = sorted(options, key=lambda each: (-len(each[1]), each[0]))
        return json.dumps({"answers": [int(number) for number, _ in by_length[:10]]})
    return next((f"It says: {text}" for text in TEXTS if text in said), "It says nothing.")


def reader(**options: Any) -> ScriptedModel:
    return ScriptedModel(answer, identity="reader", capabilities=ENFORCED, **options)


# --- vectors ---


async def test_an_embedding_gives_the_vectors_of_its_embedder(
    records: MemoryStore, engine: Callable[..., Engine]
) -> None:
    script = embedder()
    theirs = AskanceEmbedding(script, engine=engine(), embed_batch_size=2)

    wanted = [
        list(vector) for vector in await get_embedder(embedder(), engine=Engine(records=MemoryStore())).embed(TEXTS)
    ]
    assert await theirs.aget_text_embedding_batch(TEXTS) == wanted
    assert theirs.get_text_embedding_batch(TEXTS) == wanted  # while this loop runs
    assert await theirs.aget_query_embedding(TEXTS[0]) == theirs.get_query_embedding(TEXTS[0]) == wanted[0]
    assert await theirs.aget_text_embedding(TEXTS[1]) == theirs.get_text_embedding(TEXTS[1]) == wanted[1]
    assert Counter(text for texts in script.asked for text in texts) == Counter(TEXTS)  # each once
    assert theirs.model_name == "letters"

    replayed = AskanceEmbedding(get_embedder(script, engine=engine()).form(), engine=engine("replay"))
    assert replayed.get_text_embedding_batch(TEXTS) == wanted
    with pytest.raises(ReplayMiss):
        replayed.get_text_embedding("never embedded")


async def test_queries_may_have_an_embedder_of_their_own(engine: Callable[..., Engine]) -> None:
    queries = ScriptedEmbedder(lambda text: words(f"query: {text}"), identity="query letters")
    theirs = AskanceEmbedding(embedder(), query_embedder=queries, engine=engine())

    assert theirs.get_query_embedding("tea") == words("query: tea")
    assert theirs.get_text_embedding("tea") == words("tea")
    assert queries.asked == [("tea",)]


def test_threads_that_embed_one_text_embed_it_once(engine: Callable[..., Engine]) -> None:
    class Slow(ScriptedEmbedder):
        async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            await asyncio.sleep(0.05)
            return await super().embed(texts)

    script = Slow(words, identity="slow letters")
    theirs = AskanceEmbedding(script, engine=engine())
    with ThreadPoolExecutor(4) as threads:
        vectors = list(threads.map(theirs.get_query_embedding, ["tea"] * 4))

    assert vectors == [words("tea")] * 4
    assert script.asked == [("tea",)]


# --- a model ---


async def test_a_model_answers_in_every_form(engine: Callable[..., Engine]) -> None:
    script = ScriptedModel(lambda request: f"heard {request.messages[-1].text}", identity="echo", capabilities=ENFORCED)
    llm = AskanceLLM(script, engine=engine(), system_prompt="Be brief.")
    turn = [ChatMessage("tea", role="user")]

    assert llm.complete("tea").text == (await llm.acomplete("tea")).text == "heard tea"
    assert llm.chat(turn).message.content == (await llm.achat(turn)).message.content == "heard tea"
    assert [piece.delta for piece in llm.stream_complete("tea")] == ["heard tea"]
    assert [piece.delta for piece in llm.stream_chat(turn)] == ["heard tea"]
    assert [piece.text async for piece in await llm.astream_complete("tea")] == ["heard tea"]
    assert [piece.delta async for piece in await llm.astream_chat(turn)] == ["heard tea"]
    assert llm.predict(PromptTemplate("{it}!"), it="tea") == "heard tea!"
    assert "".join(llm.stream(PromptTemplate("{it}!"), it="tea")) == "heard tea!"

    (first, second) = script.requests  # all others were on record
    assert [(turn.role, turn.text) for turn in first.messages] == [("user", "tea")]
    assert [(turn.role, turn.text) for turn in second.messages] == [("system", "Be brief."), ("user", "tea!")]
    assert llm.metadata.is_chat_model
    assert llm.metadata.model_name == "echo"


async def test_a_model_is_sent_pictures_and_roles(engine: Callable[..., Engine], httpless: None) -> None:
    script = reader()
    llm = AskanceLLM(script, engine=engine())
    data = PICTURE.read_bytes()
    said = [
        ChatMessage("Look.", role="developer"),
        ChatMessage([TextBlock(text="a"), ImageBlock(path=PICTURE), ImageBlock(image=data)], role="user"),
        ChatMessage([ThinkingBlock(content="hm"), TextBlock(text="b")], role="assistant"),
        ChatMessage("c", role="user"),
    ]
    await llm.achat(said, temperature=0.5, max_tokens=7, stop=["."])

    (request,) = script.requests
    assert [turn.role for turn in request.messages] == ["system", "user", "assistant", "user"]
    assert [turn.text for turn in request.messages] == ["Look.", "a", "b", "c"]
    assert [part.shown.image.data for part in request.images] == [data, data]
    assert (request.sampling.temperature, request.sampling.max_tokens, request.sampling.stop) == (0.5, 7, (".",))


@pytest.fixture
def httpless(unplug: Callable[[], None]) -> None:
    unplug()


@pytest.mark.parametrize(
    ("messages", "bound", "error", "says"),
    [
        ([ChatMessage("x", role="tool")], {}, UsageError, "role 'tool' cannot be sent"),
        ([ChatMessage([AudioBlock(audio=b"x")])], {}, UsageError, "AudioBlock cannot be sent"),
        ([ChatMessage([ImageBlock(url="http://pictures.invalid/a.jpg")])], {}, BadImage, "fetched only when asked for"),
        ([ChatMessage("x")], {"best_of": 3}, UsageError, "'best_of' cannot be bound"),
    ],
    ids=["tool", "audio", "address", "argument"],
)
async def test_what_cannot_be_sent_is_named(
    engine: Callable[..., Engine],
    messages: list[ChatMessage],
    bound: dict[str, Any],
    error: type[Exception],
    says: str,
    httpless: None,
) -> None:
    with pytest.raises(error, match=says):
        await AskanceLLM(reader(), engine=engine()).achat(messages, **bound)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ChatResponse(refusal="I will not."), Refused),
        (ChatResponse(text="half", finish="length"), Truncated),
        (ChatResponse(text="", finish="content_filter"), Filtered),
        (ModelError("The endpoint is gone."), ModelError),
    ],
    ids=["refused", "cut off", "filtered", "failed"],
)
async def test_what_is_no_answer_is_an_error(engine: Callable[..., Engine], reply: Any, error: type[Exception]) -> None:
    llm = AskanceLLM(ScriptedModel(lambda _: reply, identity="no"), engine=engine())

    with pytest.raises(error):
        llm.complete("x")
    with pytest.raises(error):
        await llm.achat([ChatMessage("x")])
    with pytest.raises(error):
        list(llm.stream_chat([ChatMessage("x")]))
    with pytest.raises(error):
        llm.structured_predict(Cup, PromptTemplate("x"))


class Cup(BaseModel):
    """A cup."""

    made_of: str
    handles: int


@pytest.mark.parametrize("capabilities", [ENFORCED, Capabilities(schema="refused")], ids=["schema", "words"])
async def test_structured_answers_are_read_strictly(engine: Callable[..., Engine], capabilities: Capabilities) -> None:
    replies = iter(
        ['{"made_of": "bricks", "handles": 1}', '{"made_of": "bricks"', '{"made_of": "clay", "handles": "many"}']
    )
    script = ScriptedModel(lambda _: next(replies), identity="cups", capabilities=capabilities)
    llm = AskanceLLM(script, engine=engine())
    asked = PromptTemplate("What is {it}?")

    assert llm.structured_predict(Cup, asked, it="this") == Cup(made_of="bricks", handles=1)
    assert await llm.astructured_predict(Cup, asked, it="this") == Cup(made_of="bricks", handles=1)
    assert json.loads(llm.as_structured_llm(Cup).complete("What is this?").text) == {"made_of": "bricks", "handles": 1}
    assert list(llm.stream_structured_predict(Cup, asked, it="this")) == [Cup(made_of="bricks", handles=1)]
    assert len(script.requests) == 1
    assert (script.requests[0].response is not None) == (capabilities is ENFORCED)
    for it in ("half", "wrong"):
        with pytest.raises(InvalidOutput):
            await llm.astructured_predict(Cup, asked, it=it)


# --- stock engines ---


def stock(
    index: Index, engine: Engine, script: ScriptedModel, vectors: ScriptedEmbedder | None = None
) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(
        as_retriever(retriever(index, embedder=vectors, engine=engine), k=6),
        llm=AskanceLLM(script, engine=engine),
        node_postprocessors=[ChooserRerank(script, keep=3, engine=engine)],
    )


async def test_a_stock_query_engine_works_and_replays(
    index: Index, engine: Callable[..., Engine], records: MemoryStore, unplug: Callable[[], None]
) -> None:
    script = reader()
    response = await stock(index, engine(), script, embedder()).aquery(QUERY)

    nodes = response.source_nodes
    assert len(nodes) == 3
    assert [len(node.text) for node in nodes] == sorted((len(node.text) for node in nodes), reverse=True)
    assert str(response).startswith("It says: I should")
    assert all(node.node_id == entry_id(node.text) == node.metadata["id"] for node in nodes)
    assert all("shared.jpg" in node.metadata["images"] for node in nodes)
    shown = "\n".join(turn.text for request in script.requests for turn in request.messages)
    assert "shared.jpg" not in shown
    assert nodes[0].node_id not in shown

    unplug()
    silent = ScriptedModel([], identity="reader", capabilities=ENFORCED)
    again = await stock(index, engine("replay"), silent).aquery(QUERY)
    assert str(again) == str(response)
    assert [(node.node_id, node.score) for node in again.source_nodes] == [(node.node_id, node.score) for node in nodes]
    known = stock(Index.open(index.form()), engine("replay"), silent).query(QUERY)  # sync, while this loop runs
    assert [node.text for node in known.source_nodes] == [node.text for node in nodes]
    with pytest.raises(ReplayMiss):
        await stock(index, engine("replay"), silent).aquery("something else")


async def test_a_retriever_takes_what_a_bundle_holds(index: Index, engine: Callable[..., Engine]) -> None:
    ours = retriever(index, k=3, embedder=embedder(), engine=engine())
    theirs = as_retriever(ours, k=3)
    (one, *_) = await theirs.aretrieve("a bed and sleep")
    parts = await theirs.aretrieve(QueryBundle("ignored", custom_embedding_strs=["tea", "bricks"]))

    assert one.text == "I should buy a bed because sleep matters"
    found = await ours.search(RetrievalQuery(("tea", "bricks")))
    (tea, *_) = as_retriever(index, k=3, engine=engine("replay")).retrieve("tea")
    assert tea.text == "I should drink tea because coffee keeps me awake"
    assert [node.node_id for node in parts] == [hit.id for hit in found]
    with pytest.raises(UsageError, match="101 nodes are wanted"):
        as_retriever(index, k=101)
    with pytest.raises(UsageError, match="The 0 best"):
        as_retriever(index, k=0)


async def test_a_stock_fusion_works_and_replays(
    index: Index, engine: Callable[..., Engine], unplug: Callable[[], None]
) -> None:
    def fusion(engine: Engine, script: ScriptedModel) -> QueryFusionRetriever:
        ways = [
            as_retriever(retriever(index, how=how, embedder=embedder(), engine=engine), k=8)
            for how in ("dense", "bm25")
        ]
        llm = AskanceLLM(script, engine=engine)
        return QueryFusionRetriever(
            list(ways),
            llm=llm,
            mode=FUSION_MODES.RECIPROCAL_RANK,
            num_queries=2,
            similarity_top_k=8,
        )

    script = ScriptedModel(["strong coffee"], identity="guesser", capabilities=ENFORCED)
    nodes = await fusion(engine(), script).aretrieve("bricks")

    assert len(nodes) == len({node.node_id for node in nodes}) == len({node.text for node in nodes})
    shares: Counter[str] = Counter()
    for how in ("dense", "bm25"):
        for query in ("bricks", "strong coffee"):
            hits = await retriever(index, how=how, engine=engine()).search(query)
            shares.update({hit.id: 1 / (60 + rank) for rank, hit in enumerate(hits[:8])})
    assert {node.node_id: pytest.approx(node.score) for node in nodes} == dict(shares.most_common(8))

    unplug()
    again = fusion(engine("replay"), ScriptedModel([], identity="guesser", capabilities=ENFORCED)).retrieve("bricks")
    assert [(node.node_id, node.score) for node in again] == [(node.node_id, node.score) for node in nodes]


async def test_a_stock_tool_asks_a_chain_and_replays(records: MemoryStore, unplug: Callable[[], None]) -> None:
    images = {path.name: {"image": path, "options": OPTIONS} for path in sorted(PICTURES.glob("*.jpg"))}
    chain = action_reason(model_of(scripted(), records))
    tool = QueryEngineTool.from_defaults(ChainQueryEngine(chain, images), name="argues_for")

    output = await tool.acall("What does brick-cup.jpg argue for?")
    assert output.content == "\n".join([OPTIONS[1], OPTIONS[0], OPTIONS[2]])
    assert output.raw_output.metadata["image"] == "brick-cup.jpg"
    assert output.raw_output.metadata["links"]["objects"] == ["cup", "bricks"]
    assert output.raw_output.metadata["links"]["answers"] == [2, 1, 3]

    unplug()
    replayed = action_reason(
        model_of(ScriptedModel([], identity="scripted", capabilities=ENFORCED), records, mode="replay")
    )
    again = QueryEngineTool.from_defaults(ChainQueryEngine(replayed, images), name="argues_for")
    assert again.call(input="brick-cup.jpg").content == output.content


# llama-index looks through all attributes of its agents, deprecated ones of pydantic among them, and asks its own
# workflow in a way that is deprecated there.
@pytest.mark.filterwarnings("ignore:The `.*` attribute is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Accessing the .* attribute on the instance is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning")
async def test_a_stock_agent_uses_a_chain_as_its_tool(records: MemoryStore, unplug: Callable[[], None]) -> None:
    def agent(mode: Mode, replies: Sequence[str]) -> Any:
        script = ScriptedModel(replies, identity="agent", capabilities=ENFORCED)
        chain = verbalize(
            model_of(
                scripted() if mode == "auto" else ScriptedModel([], identity="scripted", capabilities=ENFORCED),
                records,
                mode=mode,
            )
        )
        tool = QueryEngineTool.from_defaults(ChainQueryEngine(chain, [PICTURE]), name="looks")
        return ReActAgent(tools=[tool], llm=AskanceLLM(script, engine=Engine(records=records, mode=mode)))

    calls = 'Thought: I look.\nAction: looks\nAction Input: {"input": "brick-cup.jpg"}'
    answers = "Thought: I can answer without using any more tools.\nAnswer: a cup of bricks"
    response: Any = await agent("auto", [calls, answers]).run(user_msg="What is in brick-cup.jpg?")
    assert str(response) == "a cup of bricks"
    assert [call.tool_output.content for call in response.tool_calls] == ["A cup made of bricks, with a slogan."]

    unplug()
    again: Any = await agent("replay", []).run(user_msg="What is in brick-cup.jpg?")
    assert str(again) == "a cup of bricks"


async def test_a_query_names_one_picture() -> None:
    chain = verbalize(model_of(scripted()))
    engine = ChainQueryEngine(chain, {"17": PICTURE, "ad 17": PICTURE, "ad 18": PICTURE})

    for query, name in {"ad 17": "ad 17", "17": "17", "Look at ad 17.": "ad 17", "(17)": "17"}.items():
        response = await engine.aquery(query)
        assert response.metadata is not None
        assert response.metadata["image"] == name
        assert str(response) == "A cup made of bricks, with a slogan."
    for query, says in {
        "": "no picture",
        "ad 171": "no picture",
        "ad 17 or ad 18?": "2 pictures: ad 17, ad 18",
    }.items():
        with pytest.raises(UsageError, match=says):
            await engine.aquery(query)
    assert str(await ChainQueryEngine(chain, [PICTURE]).aquery(PICTURE.name)) == "A cup made of bricks, with a slogan."
    with pytest.raises(UsageError, match="Two pictures have one name"):
        ChainQueryEngine(chain, [PICTURE, str(PICTURE)])
    with pytest.raises(UsageError, match="no pictures"):
        ChainQueryEngine(chain, {})


async def test_a_chain_without_an_answer_is_an_error() -> None:
    chain = verbalize(model_of(scripted(combine=ChatResponse(refusal="I will not."))))
    with pytest.raises(Refused):
        await ChainQueryEngine(chain, [PICTURE]).aquery(PICTURE.name)


async def test_a_reranker_says_what_it_lacks(engine: Callable[..., Engine]) -> None:
    rerank = ChooserRerank(reader(), engine=engine())
    nodes = [NodeWithScore(node=TextNode(text=text), score=1.0) for text in TEXTS]

    ranked = [node.text for node in rerank.postprocess_nodes(nodes, query_str=QUERY)]
    assert sorted(ranked) == sorted(TEXTS)
    assert [len(text) for text in ranked] == sorted(map(len, TEXTS), reverse=True)
    with pytest.raises(UsageError, match="for a query"):
        rerank.postprocess_nodes(nodes)
    refusing = ChooserRerank(ScriptedModel(lambda _: ChatResponse(refusal="No."), identity="no", capabilities=ENFORCED))
    with pytest.raises(Refused, match="Window 1 of 1"):
        await refusing.apostprocess_nodes(nodes, query_str=QUERY)


# --- theirs as ours ---


class Shelf(BaseRetriever):
    """A user's retriever: texts by the words that they share with a query, some of them twice."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.asked: list[str] = []
        self.error = error

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        if self.error is not None:
            raise self.error
        shared = {text: len({*text.split()} & {*query_bundle.query_str.split()}) for text in TEXTS}
        best = sorted(TEXTS, key=lambda text: -shared[text])
        return [NodeWithScore(node=TextNode(text=text), score=shared[text]) for text in (*best[:2], *best)]


class AsyncShelf(Shelf):
    """The same, asynchronous itself."""

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(0)
        return self._retrieve(query_bundle)


@pytest.mark.parametrize("kind", [Shelf, AsyncShelf], ids=["sync", "async"])
async def test_a_retriever_of_theirs_is_recorded_under_a_name(
    kind: type[Shelf], engine: Callable[..., Engine], unplug: Callable[[], None]
) -> None:
    theirs = kind()
    ours = retriever(theirs, identity="shelf", k=5, engine=engine())
    hits = await ours.search("I should drink coffee")

    assert [hit.id for hit in hits] == [entry_id(hit.text) for hit in hits]
    assert len(hits) == len({hit.text for hit in hits}) == 5
    assert hits[0].text == "I should drink tea because coffee keeps me awake"
    assert await ours.search("I should drink coffee") == hits
    assert theirs.asked == ["I should drink coffee"]

    unplug()
    replayed = retriever(kind(ValueError("asked")), identity="shelf", k=5, engine=engine("replay"))
    assert await replayed.search("I should drink coffee") == hits
    with pytest.raises(ReplayMiss):
        await replayed.search("tea")


async def test_a_retriever_without_a_name_is_not_recorded(engine: Callable[..., Engine]) -> None:
    theirs = Shelf()
    ours = retriever(theirs, engine=engine())
    assert await ours.search("tea") == await ours.search("tea")
    assert theirs.asked == ["tea", "tea"]
    with pytest.raises(UsageError, match="cannot be replayed"):
        retriever(theirs, engine=engine("replay"))


async def test_what_a_retriever_of_theirs_cannot_do_is_named(engine: Callable[..., Engine]) -> None:
    with pytest.raises(ModelError, match=r"The retriever Shelf failed: the shelf is empty\."):
        await retriever(Shelf(OSError("the shelf\nis empty")), identity="shelf", engine=engine()).search("tea")
    ours = retriever(Shelf(), identity="shelf", engine=engine())
    with pytest.raises(UsageError, match="not among some"):
        await ours.search("tea", among=[entry_id(TEXTS[0])])


class Cabinet(BasePydanticVectorStore):
    """A vector store of llama-index in memory, which compares all vectors."""

    stores_text: bool = True
    _rows: dict[str, BaseNode] = PrivateAttr(default_factory=dict[str, BaseNode])
    _batches: list[int] = PrivateAttr(default_factory=list[int])
    _error: Exception | None = PrivateAttr(default=None)

    @property
    def client(self) -> Any:
        return None

    def fail(self, error: Exception | None) -> None:
        self._error = error

    @property
    def batches(self) -> list[int]:
        return self._batches

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        self._check()
        self._batches.append(len(nodes))
        assert not any(node.node_id in self._rows for node in nodes)
        self._rows.update({node.node_id: node for node in nodes})
        return [node.node_id for node in nodes]

    def get_nodes(self, node_ids: list[str] | None = None, filters: Any = None) -> list[BaseNode]:
        self._check()
        return [row for name, row in self._rows.items() if node_ids is None or name in node_ids]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        del self._rows[ref_doc_id]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        self._check()
        assert query.query_embedding is not None
        rows = [row for row in self._rows.values() if _fits(row.metadata, query)]
        scored = [(cosine(query.query_embedding, row.get_embedding()), row.node_id) for row in rows]
        best = sorted(scored, key=lambda each: -each[0])[: query.similarity_top_k]
        return VectorStoreQueryResult(similarities=[score for score, _ in best], ids=[name for _, name in best])


def _fits(metadata: Mapping[str, Any], query: VectorStoreQuery) -> bool:
    filters = [] if query.filters is None else query.filters.filters
    return all(isinstance(each, MetadataFilter) and metadata[each.key] in (each.value or []) for each in filters)


async def test_an_index_in_a_store_of_theirs_gives_what_a_file_gives(own_place: Path, index: Index) -> None:
    cabinet = Cabinet()
    held = LlamaVectorStore(cabinet)
    built = await Index.build(own_place / "other.index", ENTRIES, embedder=embedder(), store=held)
    await Index.build(own_place / "other.index", ENTRIES, embedder=embedder(), store=held)  # nothing is left to do

    assert sum(cabinet.batches) == await held.count() == len(TEXTS)
    assert list(built.verify()) == []
    vectors = [half(words(query)) for query in (QUERY, "tea")]
    exact = index.vectors(index.spaces[0])
    for among in (None, [entry_id(text) for text in TEXTS[:3]], []):
        ours, theirs = await exact.search(vectors, 5, among), await held.search(vectors, 5, among)
        assert [[each for each, _ in hits] for hits in theirs] == [[each for each, _ in hits] for hits in ours]
        assert [score for hits in theirs for _, score in hits] == pytest.approx([s for hits in ours for _, s in hits])
    assert await held.lacking(["0" * 16, entry_id(TEXTS[0])]) == ["0" * 16]
    assert "I should" not in str([row.to_dict() for row in cabinet.get_nodes()])  # no text goes there


async def test_vectors_go_to_a_store_in_batches(own_place: Path) -> None:
    cabinet = Cabinet()
    held, exact = LlamaVectorStore(cabinet), ExactVectors(own_place, {})
    ids = [entry_id(str(place)) for place in range(2_500)]
    vectors = [half([place % 7 + 1.0, place % 11, place % 13]) for place in range(2_500)]
    await held.add(ids[:300], vectors[:300])
    for store in (held, exact):
        await store.add(ids, vectors)

    assert cabinet.batches == [300, 1000, 1000, 200]
    assert {each for each, _ in (await held.search(vectors[:1], 2_500))[0]} == set(ids)
    assert [score for _, score in (await held.search(vectors[:1], 90))[0]] == pytest.approx(
        [score for _, score in (await exact.search(vectors[:1], 90))[0]]
    )


async def test_a_store_that_fails_is_one_message(own_place: Path, engine: Callable[..., Engine]) -> None:
    cabinet = Cabinet()
    held = LlamaVectorStore(cabinet)
    built = await Index.build(own_place / "other.index", ENTRIES, embedder=embedder(), store=held)
    cabinet.fail(ConnectionError("[Errno 111] Connection refused\nby the server"))

    with pytest.raises(StoreError) as raised:
        await retriever(built, how="dense", embedder=embedder(), engine=engine()).search("tea")
    assert str(raised.value) == (
        "The vector store Cabinet failed: [Errno 111] Connection refused by the server. "
        "Look whether its server runs and can be reached; what is on record is replayed without it."
    )
    with pytest.raises(StoreError, match="The vector store Cabinet failed"):
        await held.add(["0" * 16], [half([1.0])])
    assert [each for each in built.verify() if "Cabinet failed" in each]


SECRET = "s3cr3t-of-a-server"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"no http://me:{SECRET}@chroma:8001/api?token={SECRET}#x there", "no http://chroma:8001/api there"),
        (f"Authorization: Bearer {SECRET} is refused", "Authorization: Bearer [key] is refused"),
        (f"no http://[me:{SECRET}@chroma there", "no [address] there"),
    ],
    ids=["address", "header", "no address"],
)
async def test_an_error_of_theirs_shows_no_secret(
    said: str, told: str, engine: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMA_TOKEN", SECRET)
    cabinet = Cabinet()
    cabinet.fail(ConnectionError(said))

    with pytest.raises(StoreError) as of_store:
        await LlamaVectorStore(cabinet).count()
    with pytest.raises(ModelError) as of_retriever:
        await retriever(Shelf(OSError(said)), identity="shelf", engine=engine()).search("tea")

    for caught, name in ((of_store, "vector store Cabinet"), (of_retriever, "retriever Shelf")):
        assert f"The {name} failed: {told}." in str(caught.value)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


async def test_a_store_that_is_no_place_for_an_index_is_named() -> None:
    with pytest.raises(StoreError, match="lacks what an index needs of it") as raised:
        await LlamaVectorStore(SimpleVectorStore()).lacking(["0" * 16])
    assert "get_nodes" in str(raised.value)
    cabinet = Cabinet()
    cabinet.add([TextNode(id_="a stranger's", embedding=[1.0, 0.0])])
    with pytest.raises(StoreError, match='holds "a stranger\'s", which is of no index'):
        await LlamaVectorStore(cabinet).search([half([1.0, 0.0])], 1)
    with pytest.raises(UsageError, match="The 0 best"):
        await LlamaVectorStore(cabinet).search([half([1.0, 0.0])], 0)

    class Drawer(Cabinet):
        """Looks at no filter."""

        def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
            return super().query(VectorStoreQuery(query.query_embedding, query.similarity_top_k))

    drawer = LlamaVectorStore(Drawer())
    await drawer.add(["0" * 16, "1" * 16], [half([1.0, 0.0]), half([0.0, 1.0])])
    with pytest.raises(StoreError, match="finds others than those that it is to choose among"):
        await drawer.search([half([1.0, 0.0])], 1, ["1" * 16])


# --- what it costs ---


def test_nobody_loads_llama_index_unasked() -> None:
    code = (
        "import sys, askance.retrieval as r, askance.evals, askance.chains\n"
        "from askance.retrieval import Index, IndexEntry, ExactVectors\n"
        "from askance.retrieval.retriever import retriever\n"
        "assert not [name for name in sys.modules if name.startswith(('llama_index', 'lancedb', 'nltk'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
