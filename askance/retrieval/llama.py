"""llama-index, both ways: what we have as its components, and its retrievers and vector stores as ours.

This is the one module that imports llama_index, which takes seconds to load. Only who names it loads it:
`from askance.retrieval.llama import AskanceLLM`.

What goes through these components is recorded and replayed as everywhere, so that a replay opens no connection. Texts
of an index are strangers' text: prompts of llama-index do not fence them, those of askance do.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from askance.chat import Message, TextPart
from askance.errors import AskanceError, MissingExtra, ModelError, StoreError, UsageError
from askance.images import Image
from askance.models.encoders.embedder import get_embedder
from askance.models.encoders.search import check_count
from askance.models.factory import get_model
from askance.models.langchain.chat_model import OutputReader, bound_request, refuse_unanswered
from askance.models.langchain.langchain_model import secrets_in
from askance.models.langchain.messages import from_response
from askance.models.loop import live, run_sync
from askance.models.secrets import environment_secrets
from askance.models.vendor_errors import one_line, public_address
from askance.retrieval.entries import entry_id
from askance.retrieval.rerank import ListwiseReranker
from askance.retrieval.retriever import (
    TEXTS,
    IndexRetriever,
    RetrievalHit,
    RetrievalQuery,
    Retriever,
    retriever,
    with_image,
)
from askance.retrieval.vector_store import best_first

try:
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ChatResponse,
        ChatResponseAsyncGen,
        ChatResponseGen,
        CompletionResponse,
        CompletionResponseAsyncGen,
        CompletionResponseGen,
        ImageBlock,
        LLMMetadata,
        MessageRole,
        TextBlock,
        ThinkingBlock,
    )
    from llama_index.core.base.response.schema import Response
    from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr
    from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW, DEFAULT_NUM_OUTPUTS
    from llama_index.core.llms import callbacks
    from llama_index.core.llms.llm import LLM
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
    )
except ImportError as error:
    raise MissingExtra("llama-index-core is not installed.", hint="pip install 'askance[retrieval]'") from error

if TYPE_CHECKING:
    from pathlib import Path

    from llama_index.core.prompts import BasePromptTemplate

    from askance.chains import Chain, Given, Reading
    from askance.chat import ChatResponse as Answer
    from askance.chat import JsonObject, Part, Role
    from askance.models import EmbedderLike, Engine, Model, ModelLike, RecordedEmbedder
    from askance.models.encoders.vectors import Half
    from askance.retrieval.entries import IndexEntry
    from askance.retrieval.index import IndexLike
    from askance.retrieval.vector_store import Scored

T = TypeVar("T", bound=BaseModel)
F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")

# --- ours as theirs: vectors ---

BATCH = 256
"""Texts that are embedded in one call, unless `embed_batch_size` says."""


class AskanceEmbedding(BaseEmbedding):
    """An embedder of askance as an embedding of llama-index; each vector is on record.

    Args:
        embedder: a spec, any `Embedder`, or what `get_embedder` gave.
        query_embedder: embeds queries, where the encoder puts another prompt before them than before texts
            (`st:FOLDER?prompt=query`); None is `embedder`.
        identity: name under which vectors of an object without an `id` are filed.
        engine: whose records and mode are used; None is the project's store.
        options: fields of `BaseEmbedding`, such as `embed_batch_size`.

    Raises:
        ConfigError: no embedder goes by that spec.
        UsageError: it is no embedder, or its vectors cannot be replayed and the mode is `replay`.
    """

    _texts: RecordedEmbedder = PrivateAttr()
    _queries: RecordedEmbedder = PrivateAttr()

    def __init__(
        self,
        embedder: EmbedderLike,
        *,
        query_embedder: EmbedderLike | None = None,
        identity: str | None = None,
        engine: Engine | None = None,
        **options: Any,
    ) -> None:
        texts = get_embedder(embedder, identity=identity, engine=engine)
        fields: Any = {"model_name": str(texts.id), "embed_batch_size": BATCH, **options}
        super().__init__(**fields)
        self._texts = texts
        self._queries = texts if query_embedder is None else get_embedder(query_embedder, engine=engine)

    @classmethod
    def class_name(cls) -> str:
        return "AskanceEmbedding"

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await _embedded(self._queries, [query]))[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await _embedded(self._texts, [text]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await _embedded(self._texts, texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return run_sync(self._aget_query_embedding(query))

    def _get_text_embedding(self, text: str) -> list[float]:
        return run_sync(self._aget_text_embedding(text))

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return run_sync(self._aget_text_embeddings(texts))


async def _embedded(embedder: RecordedEmbedder, texts: Sequence[str]) -> list[list[float]]:
    """The vectors of texts, made on the live loop, where equal texts of several threads are embedded once."""
    return [list(vector) for vector in await live(lambda: embedder.embed(texts))]


# --- ours as theirs: a model ---

_ROLES: Mapping[MessageRole, Role] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
}


def _observed_chat(method: F) -> F:
    """A method whose calls handlers of llama-index see."""
    return callbacks.llm_chat_callback()(method)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _observed_completion(method: F) -> F:
    """As `_observed_chat`."""
    return callbacks.llm_completion_callback()(method)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


class AskanceLLM(LLM):
    """A model of askance as an LLM of llama-index: recorded, replayed, retried and limited as everywhere.

    Every call may say `temperature`, `top_p`, `seed`, `max_tokens`, `stop`, `draw` and `response_format`; anything else
    is an error. Structured answers (`structured_predict`, `as_structured_llm`) are held to their schema as far as the
    endpoint can, and read strictly. Tools are not called; agents that write their calls as text (`ReActAgent`) work.

    **It does not stream.** The streaming methods give the whole answer as one piece, when it is there: an answer on
    record has no pieces.

    A reply that is no answer is an error, never a text: `Refused`, `Filtered`, `Truncated`.

    Args:
        model: a spec, a name from the settings file, a model, any `ChatModel`, or a chat model of LangChain.
        identity: name under which the answers of an object are filed.
        engine: whose records, mode and budget are used; None is the project's store.
        context_window: tokens of prompt and answer. llama-index cuts what it puts into a prompt by it, so that another
            number may make another request.
        options: fields of `LLM`, such as `system_prompt`.

    Raises:
        ConfigError: no model has this name, or the spec cannot be read.
        UsageError: it is no model, or its answers cannot be replayed and the mode is `replay`.
    """

    context_window: int = DEFAULT_CONTEXT_WINDOW
    _model: Model = PrivateAttr()

    def __init__(
        self,
        model: ModelLike,
        *,
        identity: str | None = None,
        engine: Engine | None = None,
        context_window: int = DEFAULT_CONTEXT_WINDOW,
        **options: Any,
    ) -> None:
        fields: Any = {"context_window": context_window, **options}
        super().__init__(**fields)
        self._model = get_model(model, identity=identity, engine=engine)

    @classmethod
    def class_name(cls) -> str:
        return "AskanceLLM"

    @property
    def metadata(self) -> LLMMetadata:
        most = self._model.settings.sampling.max_tokens
        return LLMMetadata(
            context_window=self.context_window,
            num_output=most or DEFAULT_NUM_OUTPUTS,
            is_chat_model=True,
            model_name=str(self._model.id),
        )

    async def _answer(self, messages: Sequence[ChatMessage], bound: JsonObject) -> ChatResponse:
        response = await self._generated(messages, bound)
        refuse_unanswered(from_response(response))
        thinking = [ThinkingBlock(content=response.thinking)] if response.thinking else []
        message = ChatMessage(role=MessageRole.ASSISTANT, content=[*thinking, TextBlock(text=response.text)])
        return ChatResponse(message=message, raw=response.canonical())

    async def _generated(self, messages: Sequence[ChatMessage], bound: JsonObject) -> Answer:
        turns = [_turn(each, self._model) for each in messages]
        return await self._model.generate(await bound_request(self._model, turns, bound))

    @_observed_chat
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The answer to a conversation.

        Raises:
            CallError: the call ended without an answer.
            ReplayMiss: the mode is `replay` and the answer is not on record.
            UsageError: a block or a role that cannot be sent, or an argument that is not known.
        """
        return run_sync(self._answer(messages, kwargs))

    @_observed_chat
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """As `chat`."""
        return await self._answer(messages, kwargs)

    @_observed_completion
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002, FBT001, FBT002  # llama-index's signature
        """The answer to one turn of the user; raises as `chat`."""
        return _completion(run_sync(self._answer([ChatMessage(prompt)], kwargs)))

    @_observed_completion
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002, FBT001, FBT002
        """As `complete`."""
        return _completion(await self._answer([ChatMessage(prompt)], kwargs))

    @_observed_chat
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """As `chat`, as one piece."""
        response = run_sync(self._answer(messages, kwargs))
        yield _whole(response)

    @_observed_chat
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """As `chat`, as one piece."""

        async def pieces() -> ChatResponseAsyncGen:
            yield _whole(await self._answer(messages, kwargs))

        return pieces()

    @_observed_completion
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:  # noqa: ARG002, FBT001, FBT002
        """As `complete`, as one piece."""
        yield _completion(run_sync(self._answer([ChatMessage(prompt)], kwargs)))

    @_observed_completion
    async def astream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002, FBT001, FBT002
        **kwargs: Any,
    ) -> CompletionResponseAsyncGen:
        """As `complete`, as one piece."""

        async def pieces() -> CompletionResponseAsyncGen:
            yield _completion(await self._answer([ChatMessage(prompt)], kwargs))

        return pieces()

    # --- structured answers ---

    async def astructured_predict(
        self,
        output_cls: type[T],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> T:
        """The answer as an instance of `output_cls`.

        Raises:
            InvalidOutput: the answer is not of the form.
            CallError: the call ended without an answer.
        """
        form = output_cls.model_json_schema()
        named = {"name": output_cls.__name__, "schema": form}
        arguments = {**(llm_kwargs or {}), "response_format": {"type": "json_schema", "json_schema": named}}
        messages = self._extend_messages(prompt.format_messages(llm=self, **prompt_args))
        message = from_response(await self._generated(messages, arguments))
        return cast("T", OutputReader(schema=output_cls, form=form)(message))

    def structured_predict(
        self,
        output_cls: type[T],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> T:
        """As `astructured_predict`."""
        return run_sync(self.astructured_predict(output_cls, prompt, llm_kwargs, **prompt_args))

    async def astream_structured_predict(
        self,
        output_cls: type[T],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> AsyncGenerator[T, None]:
        """As `astructured_predict`, as one piece."""

        async def pieces() -> AsyncGenerator[T, None]:
            yield await self.astructured_predict(output_cls, prompt, llm_kwargs, **prompt_args)

        return pieces()

    def stream_structured_predict(
        self,
        output_cls: type[T],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Generator[T, None, None]:
        """As `astructured_predict`, as one piece."""
        yield self.structured_predict(output_cls, prompt, llm_kwargs, **prompt_args)


def _turn(message: ChatMessage, model: Model) -> Message:
    """A message as a turn.

    Raises:
        UsageError: a role or a block that has no counterpart.
        BadImage: a picture is an address.
    """
    role = _ROLES.get(message.role)
    if role is None:
        raise UsageError(
            f"A message of the role {message.role.value!r} cannot be sent.",
            hint="Send messages of the system, of the user and of the assistant.",
        )
    return Message(role, tuple(part for block in message.blocks if (part := _message_part(block, model)) is not None))


def _message_part(block: object, model: Model) -> Part | None:
    """A block of a message as a part; earlier thinking, which is not sent again, is none."""
    if isinstance(block, TextBlock):
        return TextPart(block.text)
    if isinstance(block, ImageBlock):
        return model.image(_picture(block))
    if isinstance(block, ThinkingBlock):
        return None
    raise UsageError(f"A {type(block).__name__} cannot be sent.", hint="Send text and images.")


def _picture(block: ImageBlock) -> Image:
    if isinstance(block.image, bytes):
        return Image.from_bytes(b64decode(block.image))  # llama-index holds them so
    if block.path is not None:
        return Image.from_path(block.path)
    if block.url is not None:
        return Image.load(str(block.url))
    return Image.from_bytes(block.resolve_image().read())


def _completion(response: ChatResponse) -> CompletionResponse:
    text = response.message.content or ""
    return CompletionResponse(text=text, delta=text, raw=response.raw)


def _whole(response: ChatResponse) -> ChatResponse:
    """An answer as the only piece of a stream."""
    return ChatResponse(message=response.message, delta=response.message.content or "", raw=response.raw)


# --- ours as theirs: an index, a chain, a reranker ---


class _AskanceRetriever(BaseRetriever):
    """What `as_retriever` gives."""

    def __init__(self, retriever: Retriever, *, k: int) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]  # a dict of anything
        self._retriever = retriever
        self._k = k

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        image = None if query_bundle.image_path is None else Image.from_path(query_bundle.image_path)
        query = RetrievalQuery(texts=tuple(query_bundle.embedding_strs), image=image)
        hits = (await self._retriever.search(query))[: self._k]
        index = self._retriever.index if isinstance(self._retriever, IndexRetriever) else None
        entries: Mapping[str, IndexEntry] = {}
        if index is not None and index.has_entries:
            entries = await asyncio.to_thread(lambda: index.by_id)
        return [_node(hit, entries.get(hit.id)) for hit in hits]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_sync(self._aretrieve(query_bundle))


def as_retriever(source: IndexLike | Retriever, *, k: int = 10, engine: Engine | None = None) -> BaseRetriever:
    """An index, or a retriever over one, as a retriever of llama-index; its searches are on record.

    A node has the id of its entry, the score of the search and the exact text. Its metadata have `id` and, where the
    entries can be read, `images`: the ids of those that the text is true of. Neither goes into a prompt or an
    embedding. A query is the texts of its bundle, and the picture at `image_path` where there is one.

    Args:
        source: the folder of an index, an `Index` or its form, which are searched as `hybrid`; or what `retriever`
            gave, to search in another way.
        k: how many nodes, at most 100: texts of more are not on record.
        engine: whose records and mode are used for an index; None is the project's store.

    Raises:
        UsageError: there is no index, or more nodes are wanted than have texts.
        StoreError: the index is damaged.
    """
    check_count(k)
    if k > TEXTS:
        raise UsageError(f"{k} nodes are wanted, and {TEXTS} have texts on record.", hint=f"Give k={TEXTS} or less.")
    searcher = source if isinstance(source, Retriever) else retriever(source, k=k, engine=engine)
    return _AskanceRetriever(searcher, k=k)


def _node(hit: RetrievalHit, entry: IndexEntry | None) -> NodeWithScore:
    metadata: dict[str, Any] = {"id": hit.id, **({} if entry is None else {"images": [*entry.images]})}
    names = [*metadata]
    node = TextNode(
        id_=hit.id,
        text=hit.text,
        metadata=metadata,
        excluded_llm_metadata_keys=names,
        excluded_embed_metadata_keys=names,
    )
    return NodeWithScore(node=node, score=hit.score)


class ChainQueryEngine(BaseQueryEngine):
    """A chain as a query engine of llama-index: a query names a picture, and the response is what the chain finds out.

    A query means the picture whose name it is, or whose name stands in it as a word of its own: `ad_17.jpg`, or "What
    does ad_17.jpg argue for?". Where a name is part of another, the longer one counts. A query that names no picture or
    several is an error: nothing is guessed.

    The text of the response is the chosen options, one a line and the best first, or what the chain's last link says.
    Its metadata have `image`, `sha256` and `links`: what each link says, as JSON.

    Args:
        chain: asked for each query.
        images: by name, whatever the chain takes (a picture, or a mapping with `image` and `options`); or pictures,
            which have the names of their files.

    Raises:
        UsageError: there are no pictures, or two of one name.
    """

    def __init__(self, chain: Chain, images: Mapping[str, Given] | Iterable[Image | str | Path]) -> None:
        super().__init__(callback_manager=None)
        self._chain = chain
        by_name = cast("Mapping[str, Given]", images) if isinstance(images, Mapping) else _by_name(images)
        self._images: Mapping[str, Given] = by_name
        if not self._images:
            raise UsageError("There are no pictures to ask about.", hint="Give them by name.")

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        name = self._meant(query_bundle.query_str)
        reading = await self._chain.ainvoke(self._images[name])
        return _response(name, reading)

    def _query(self, query_bundle: QueryBundle) -> Response:
        return run_sync(self._aquery(query_bundle))

    def _meant(self, query: str) -> str:
        """The name of the picture that a query means."""
        if query.strip() in self._images:
            return query.strip()
        named = [name for name in self._images if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query)]
        named = [name for name in named if not any(name != other and name in other for other in named)]
        if len(named) == 1:
            return named[0]
        meaning = f"{len(named)} pictures: {', '.join(named[:5])}" if named else "no picture"
        some = ", ".join([*self._images][:5])
        raise UsageError(f"The query {query[:100]!r} names {meaning}.", hint=f"Name one, such as: {some}.")


def _by_name(images: Iterable[Image | str | Path]) -> dict[str, Given]:
    pictures = [Image.load(each) for each in images]
    named: dict[str, Given] = {picture.name: picture for picture in pictures}
    if len(named) < len(pictures):
        raise UsageError("Two pictures have one name.", hint="Give the pictures by name: a mapping.")
    return named


def _response(name: str, reading: Reading) -> Response:
    """What a chain found out as a response.

    Raises:
        CallError: of the class that stands for the outcome, where it found out nothing.
    """
    for result in reading.links.values():
        if reading.outcome != "answered" and result.outcome not in {"answered", "skipped"}:
            replace(result, reason=f"{name}: {reading.reason}").unwrap()
    target = reading.target
    value = reading.require(target)
    if target.chooses and reading.options is not None:
        numbers: Sequence[int] = value.numbers
        text = "\n".join(reading.options[number - 1] for number in numbers)
    else:
        text = target.show(target.write(value))
    answers = {
        link: reading.known[link].write(result.value) for link, result in reading.links.items() if result.answered
    }
    return Response(text, metadata={"image": name, "sha256": reading.digest, "links": answers})


class ChooserRerank(BaseNodePostprocessor):
    """Reranks nodes by an LLM that chooses among them, window by window (`ListwiseReranker`).

    It works for nodes of any retriever. The query is what describes the picture. Texts are fenced in the prompt.

    Args:
        model: chooses.
        keep: how many nodes are kept; None is all.
        window: texts that are shown at a time.
        step: how far a window moves.
        seed: of the order within a window.
        identity: name under which the answers of an object are filed.
        engine: whose records, mode and budget are used; None is the project's store.
    """

    _reranker: ListwiseReranker = PrivateAttr()

    def __init__(
        self,
        model: ModelLike,
        *,
        keep: int | None = None,
        window: int = 20,
        step: int = 10,
        seed: int = 0,
        identity: str | None = None,
        engine: Engine | None = None,
    ) -> None:
        super().__init__()
        held = get_model(model, identity=identity, engine=engine)
        self._reranker = ListwiseReranker(held, window=window, step=step, keep=keep, seed=seed)

    @classmethod
    def class_name(cls) -> str:
        return "ChooserRerank"

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise UsageError("Nodes are reranked for a query.", hint="Give `query_bundle` or `query_str`.")
        by_id = {node.node_id: node for node in nodes}
        hits = [RetrievalHit(node.node_id, node.get_score(), node.get_content()) for node in by_id.values()]
        ranked = (await self._reranker.rerank(query_bundle.query_str, hits)).unwrap()
        return [NodeWithScore(node=by_id[hit.id].node, score=hit.score) for hit in ranked]

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run_sync(self._apostprocess_nodes(nodes, query_bundle))


# --- theirs as ours ---


class LlamaRetriever:
    """A retriever of llama-index as ours; `retriever(theirs, identity="…")` makes one that is recorded.

    A hit has the id that its text has in every index of ours. Of nodes with one text the first counts. A retriever that
    is asynchronous itself is awaited; any other one runs in a thread.

    Args:
        theirs: any `BaseRetriever`.
    """

    def __init__(self, theirs: BaseRetriever) -> None:
        self._theirs = theirs

    async def search(
        self, query: str | RetrievalQuery, *, image: Image | None = None, among: Collection[str] | None = None
    ) -> list[RetrievalHit]:
        """What it finds, in its order.

        Raises:
            UsageError: it is to choose among some ids, several texts are asked, or a picture that lies in no file.
            ModelError: it failed.
        """
        combined = with_image(query, image)
        if among is not None:
            raise UsageError(
                "A retriever of llama-index searches all of its texts, and not among some.",
                hint="Search an index of askance for that.",
            )
        if len(combined.texts) > 1 or (combined.image is not None and combined.image.path is None):
            raise UsageError(
                "A retriever of llama-index takes one text, and a picture that lies in a file.",
                hint="Ask for each part by itself; save the picture.",
            )
        path = None if combined.image is None else str(combined.image.path)
        try:
            nodes = await self._nodes(QueryBundle("".join(combined.texts), image_path=path))
        except AskanceError:
            raise
        except Exception as error:  # noqa: BLE001  # of any class
            failed = error
        else:
            hits: dict[str, RetrievalHit] = {}
            for node in nodes:
                text = node.get_content()
                hits.setdefault(text, RetrievalHit(entry_id(text), node.get_score(), text))
            return list(hits.values())
        words, cause = _told(failed, self._theirs)
        raise ModelError(f"The retriever {type(self._theirs).__name__} failed: {words}.") from cause

    async def _nodes(self, query: QueryBundle) -> list[NodeWithScore]:
        # The asynchronous method of the base class calls the other one, which blocks.
        if type(self._theirs)._aretrieve is BaseRetriever._aretrieve:  # pyright: ignore[reportPrivateUsage]
            return await asyncio.to_thread(self._theirs.retrieve, query)
        return await self._theirs.aretrieve(query)


NODES = 1_000
"""Vectors that go to a store at a time."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){2}-0000-0{12}")
"""What `_uuid` gives."""


class LlamaVectorStore:
    """A vector store of llama-index as one for the vectors of an index: a server, mostly (Chroma, Qdrant, …).

    **A score is the similarity as the store gives it**, which need not be the cosine: Chroma gives exp(−distance). Only
    the order means something; equal scores are ordered by id. A store that searches by an approximate index gives what
    that finds, and another build of it may find others.

    A node has the id of its text as a UUID, which every server takes; the id stands in its metadata (`entry`) too, for
    searches among some ids. No text goes to the store. Its synchronous methods are called, in a thread.

    Args:
        theirs: any `BasePydanticVectorStore` with `get_nodes`, which says what a build that was stopped has left to do.
    """

    def __init__(self, theirs: BasePydanticVectorStore) -> None:
        self._theirs = theirs

    async def add(self, ids: Sequence[str], vectors: Sequence[Half]) -> None:
        """Gives the vectors to the store, a batch at a time; an id that is there stays as it is.

        Raises:
            StoreError: the store does not take them, or does not answer.
        """
        rows = dict(zip(ids, vectors, strict=True))
        left = await self.lacking(list(rows))
        for start in range(0, len(left), NODES):
            nodes = [_vector_node(each, rows[each]) for each in left[start : start + NODES]]
            await self._call(lambda nodes=nodes: self._theirs.add(nodes))

    async def search(self, vectors: Sequence[Half], k: int, among: Collection[str] | None = None) -> list[list[Scored]]:
        """For each query its `k` nearest, by the store's similarity and then by id.

        Raises:
            UsageError: fewer than one is wanted.
            StoreError: the store cannot search so, does not answer, or holds what is of no index.
        """
        check_count(k)
        if among is not None and not among:
            return [[] for _ in vectors]
        rankings = [await self._nearest(vector, k, among) for vector in vectors]
        if among is not None and not {each for hits in rankings for each, _ in hits} <= set(among):
            raise StoreError(
                f"The {self} finds others than those that it is to choose among.",
                hint="Take one that filters by metadata (`in`), such as Chroma's or Qdrant's.",
            )
        return rankings

    async def count(self) -> int:
        """How many vectors there are; the store is asked for all of its nodes."""
        return len(await self._call(lambda: self._theirs.get_nodes(None)))

    async def lacking(self, ids: Sequence[str]) -> list[str]:
        """Of `ids`, those without a vector, in their order.

        Raises:
            StoreError: the store does not tell which nodes it has, or does not answer.
        """
        existing = set[str]()
        for start in range(0, len(ids), NODES):
            wanted = [_uuid(each) for each in ids[start : start + NODES]]
            nodes = await self._call(lambda wanted=wanted: self._theirs.get_nodes(wanted))
            existing |= {node.node_id for node in nodes}
        return [each for each in ids if _uuid(each) not in existing]

    async def _nearest(self, vector: Half, k: int, among: Collection[str] | None) -> list[Scored]:
        filters = None if among is None else MetadataFilters(filters=[_entry_in(among)])
        query = VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=k, filters=filters)

        def rows() -> list[tuple[str, float]]:
            result = self._theirs.query(query)
            ids = result.ids or [node.node_id for node in result.nodes or ()]
            return list(zip(ids, result.similarities or (), strict=True))

        scored = [(self._id(each), score) for each, score in await self._call(rows)]
        return sorted(scored, key=best_first)

    def _id(self, node_id: str) -> str:
        if _UUID.fullmatch(node_id) is None:
            raise StoreError(
                f"The {self} holds {node_id[:60]!r}, which is of no index.",
                hint="Give each index a collection of its own.",
            )
        return node_id[:18].replace("-", "")

    async def _call(self, work: Callable[[], V]) -> V:
        """What `work` gives, in a thread; errors of a store, of any class, become one."""
        try:
            return await asyncio.to_thread(work)
        except AskanceError:
            raise
        except Exception as error:  # noqa: BLE001  # of any class
            failed = error
        words, cause = _told(failed, self._theirs)
        if isinstance(failed, NotImplementedError):
            raise StoreError(
                f"The {self} lacks what an index needs of it: {words}.",
                hint="Take one with `get_nodes`, such as Chroma's or Qdrant's.",
            ) from cause
        raise StoreError(
            f"The {self} failed: {words}.",
            hint="Look whether its server runs and can be reached; what is on record is replayed without it.",
        ) from cause

    def __str__(self) -> str:
        return f"vector store {type(self._theirs).__name__}"


def _vector_node(entry: str, vector: Half) -> TextNode:
    return TextNode(id_=_uuid(entry), text=entry, embedding=vector.tolist(), metadata={"entry": entry})


def _entry_in(among: Collection[str]) -> MetadataFilter:
    return MetadataFilter(key="entry", value=sorted(among), operator=FilterOperator.IN)


def _uuid(entry: str) -> str:
    """The id of an entry, 16 hex digits, as a UUID."""
    return f"{entry[:8]}-{entry[8:12]}-{entry[12:16]}-0000-000000000000"


_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>()]+")


def _told(error: Exception, theirs: object) -> tuple[str, Exception | None]:
    """The first line of what an error of `theirs` says, without the full stop and without secrets; and its cause.

    Addresses lose user, password and query. What secret fields and headers of `theirs` hold, and environment variables
    that are called like secrets, is blanked out. An error with a secret is nobody's cause, since a traceback shows it.
    """
    held = environment_secrets() | secrets_in(theirs)
    message = str(error)
    cleared = held.cleared(_ADDRESS.sub(_public, message))
    return one_line(cleared or type(error).__name__).rstrip("."), error if cleared == message else None


def _public(address: re.Match[str]) -> str:
    try:
        return public_address(address[0])
    except ValueError:  # it only looks like one
        return "[address]"
