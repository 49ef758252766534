"""The search of open-set retrieval: what finds the statements of an index that an ad argues for.

What is searched with follows from the context: the picture itself, what models say of it, or guesses of what it argues
for (`query="guess"`). A language model may put the first hits in order. A plan makes the searches where all of them are
on record, so that the calls of the reranker and of the judge are counted exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field
from typing_extensions import override

from askance.agents import Guesses, guess_action_reasons
from askance.agents.guess import GUESSED, GuessQuestion
from askance.chains import DESCRIPTION, STATEMENT, Chain, Link, Step
from askance.chains.context_steps import concatenate, text_of, verbalizations
from askance.chains.link import LINKS_BY_NAME
from askance.errors import CallError, ReplayMiss, StoreError, UsageError
from askance.evals.baselines import BlindSolver
from askance.evals.pittads.task import AdModel
from askance.evals.ranking import Ranking
from askance.evals.sample import Prediction, Sample
from askance.evals.solver import PlanSample, Solver, given_of, nodes_form, prompt_files
from askance.evals.suite.choice import COUNT
from askance.evals.suite.context import LOOKING, PICTURE, TEXT_ONLY, ParsedContext, tools_of
from askance.evals.suite.ranker import is_missing, said_in, why_missing
from askance.evals.suite.retrieval_metrics import DEPTH
from askance.evals.task_options import ROLES
from askance.models import EmbedderLike, collect_keys
from askance.models.call_scope import Pending
from askance.python_file import load_object
from askance.retrieval import Index, IndexLike, IndexRetriever, ListwiseReranker, RetrievalQuery, retriever
from askance.retrieval.entries import entry_id
from askance.retrieval.vector_store import load_store

if TYPE_CHECKING:
    from askance.chains import Planner, Reading
    from askance.chat import JsonObject, Outcome
    from askance.evals.part import Question
    from askance.models import Engine, Model
    from askance.nodes import Node, Result
    from askance.retrieval import IndexEntry, RecordedRetriever, Retriever, VectorStore

    Searcher: TypeAlias = "IndexRetriever | RecordedRetriever"
    RetrieverLike: TypeAlias = "str | Retriever | Mapping[str, Any] | Any"
    OwnStore: TypeAlias = "str | VectorStore"
else:
    RetrieverLike = Annotated[Any, "a retriever"]
    OwnStore = Annotated[Any, "a store of vectors"]

Query: TypeAlias = Literal["joined", "parts", "guess"]
"""What is searched with: all that the context says as one text; each verbalization by itself; or action-reasons that a
language model guesses from it."""

Within: TypeAlias = Literal["all", "options"]
"""What is searched: all statements of the index, or the options of the image."""

Splits: TypeAlias = Literal["one", "any"]
"""Whether an index may hold statements of one split of the data set, training or test, or of both."""

OpenBaseline: TypeAlias = Literal["frequent"]
"""The statements that are true of most images, for every image alike."""

SHOWN = 100
"""Statements of an answer, which a line of the run holds with their texts; the ranking has the rest."""

RERANKED: Link[Any] = Link("rerank", tuple, write=lambda hits: [hit.id for hit in hits], label="new order")
"""The first statements in the order that a model gave them."""

GUESSES: Link[Guesses] = Link(
    "guesses",
    Guesses,
    read=lambda given: Guesses(texts=given),
    write=lambda value: list(value.texts),
    label="guessed action-reasons",
    typical_bytes=1500,  # of a description
)
"""The link with the action-reasons that a model guesses."""


class Search(AdModel):
    """A search in an index of statements, by the picture or by what models say of it; a model may put hits in order."""

    settings = AdModel.settings | LOOKING
    chosen_by = (*ROLES, "baseline")

    index: IndexLike
    """Folder of an index of the data set's statements, made by `askance index build`."""
    context: str = "T_V+s_IN"
    """What is searched with: the picture (I), what is said of it (T_V, V+T, IN …), or both; and s_IN or s_true."""
    beside: bool = True
    query: Query = "joined"
    """All that is said as one text, each verbalization by itself (parts), or guesses of the statements (guess)."""
    how: str = "hybrid"
    """dense, bm25, image, several with + between them, or hybrid: all that index and query have."""
    rerank: int = Field(default=0, ge=0, le=SHOWN)
    """How many of the first statements the language model reads again and puts in order."""
    within: Within = "all"
    """All statements, whose figures stand beside no published ones, or the options of the image, as in the paper."""
    embedder: EmbedderLike | None = None
    """Makes the vectors of texts that are searched with; named where a search is not on record."""
    encoder: EmbedderLike | None = None
    """Makes the vectors of pictures; named where a search is not on record."""
    store: OwnStore | None = None
    """Where the vectors are, if not in the index: FILE.py:NAME."""
    retriever: RetrieverLike | None = None
    """Searches in place of the index, which still says what is true: FILE.py:NAME, of llama-index or your own."""
    baseline: OpenBaseline | None = None
    """Ranks the statements that are true of most images first, for every image alike; no model is asked."""
    splits: Splits = "one"
    """Whether the index may hold statements of one split of the data set, training or test, or of any."""

    @cached_property
    @override
    def parsed_context(self) -> ParsedContext:
        return super().parsed_context if self.baseline is None else ParsedContext(name=TEXT_ONLY)

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks what is searched with against how it is searched.

        Raises:
            UsageError: they do not go together.
        """
        super().check(options)
        context, ways = self.parsed_context, set(self.how.split("+"))
        if self.retriever is not None and (self.how != "hybrid" or self.embedder or self.encoder or self.store):
            raise UsageError(
                "A retriever of your own searches in its own way.",
                hint="Leave out `how`, `embedder`, `encoder` and `store`.",
            )
        if self.within == "options" and options.get("judge") is not None:
            raise UsageError(
                "A judge says which statements mean the same as a true one, and an option is true or not.",
                hint="Leave out `judge` or `within`.",
            )
        if self.baseline is not None and (self.within == "options" or self.rerank):
            raise UsageError(
                f"The baseline {self.baseline!r} ranks all statements and asks nobody.",
                hint="Leave out `within` and `rerank`.",
            )
        if "image" in ways and not context.picture:
            raise UsageError(
                f"how={self.how!r} searches with the picture, which the context {context.name!r} does not show.",
                hint="Take the context `I`, or `I+T_V` and the like.",
            )
        if context.name == PICTURE and (self.query != "joined" or ways & {"dense", "bm25"}):
            option = f"how={self.how!r}" if self.query == "joined" else f"query={self.query!r}"
            raise UsageError(
                f"{option} needs words, and the context {context.name!r} has none.",
                hint="Take a context such as `T_V`, or `I+T_V` for picture and words.",
            )
        if (self.rerank or self.query == "guess") and context.description is None and not context.blind:
            raise UsageError(
                f"A language model reads a description, and the context {context.name!r} has none.",
                hint="Take a context such as `T_V`, and leave out `rerank` and query=guess in others.",
            )

    @cached_property
    def opened_index(self) -> Index:
        """The index."""
        store = load_store(self.store) if isinstance(self.store, str) else self.store
        return Index.open(self.index, store=store)

    @cached_property
    def entries(self) -> Mapping[str, IndexEntry] | None:
        """The entries of the index by id; None in a replay for which only `index.json` is there.

        Raises:
            UsageError: it holds statements of several splits, and nobody said that it may.
            StoreError: its statements cannot be read.
        """
        index = self.opened_index
        if not index.has_entries and self.engine is not None and self.engine.mode == "replay":
            return None
        splits = splits_in(index.entries)
        if len(splits) > 1 and self.splits == "one":
            raise UsageError(
                f"The index {index} holds statements of the splits {' and '.join(splits)}: who tunes with it has seen "
                "the truths of both.",
                hint="Build one of the split that is run, by `askance index build --split`; or say `-T splits=any`.",
            )
        return index.by_id

    @cached_property
    def searcher(self) -> Searcher:
        """Searches the statements."""
        if self.retriever is not None:
            own_retriever = load_object(self.retriever) if isinstance(self.retriever, str) else self.retriever
            return retriever(own_retriever, k=DEPTH, engine=self.engine)
        return retriever(
            self.opened_index,
            how=self.how,
            k=DEPTH,
            embedder=self.embedder,
            encoder=self.encoder,
            engine=self.engine,
        )

    @cached_property
    def frequent(self) -> Sequence[Mapping[str, Any]]:
        """The statements that are true of most images, as hits."""
        return self.kept_or("frequent", self._most_frequent)

    def _most_frequent(self) -> Sequence[Mapping[str, Any]]:
        entries = sorted(self.opened_index.entries, key=lambda entry: (-len(entry.images), entry.id))[:DEPTH]
        return [{"id": each.id, "text": each.text, "score": float(len(each.images))} for each in entries]

    @override
    def solver(self, question: Question) -> Solver:
        """The search.

        Raises:
            UsageError: the index cannot be searched by what there is.
        """
        if self.baseline is not None:
            return FrequentSolver(self.frequent)
        searcher = self.searcher
        if (
            self.parsed_context.name == PICTURE
            and isinstance(searcher, IndexRetriever)
            and "image" not in searcher.ways
        ):
            raise UsageError(
                f"The index {self.opened_index} cannot be searched by a picture, and the context `I` has nothing else.",
                hint="Add vectors of a dual encoder: `askance index build FOLDER --embedder clip:FOLDER`; or take a "
                "context with words, such as `T_V`.",
            )
        return SearchSolver(
            searcher,
            chain=self._searched_with(question.given),
            context=self.parsed_context,
            query=self.query,
            reranker=ListwiseReranker(self.think, seed=question.seed) if self.rerank else None,
            rerank=self.rerank,
            known=None if self.retriever is None else self.entries,
        )

    def _searched_with(self, given: Collection[str]) -> Chain:
        """The chain that makes what is searched with; without models it has no steps, and samples bring everything."""
        links = shown_links(self.parsed_context, self.query)
        if not links or not (self.vlm or self.llm):
            return Chain("given", target=DESCRIPTION, steps=(), mode=self.searcher.engine.mode)
        if self.query != "guess":
            return self.chain(self.context, target=links[0], beside=links[1:], given=given)
        guesser = guess_action_reasons(self.think)
        needs = (DESCRIPTION,) if self.parsed_context.statement is None else (DESCRIPTION, STATEMENT)
        guess = Step(link=GUESSES, node=guesser, needs=needs, subject=guess_question)
        return self.chain(self.context, target=GUESSES, steps=(guess,), given=given)

    @override
    def label(self) -> str:
        if self.baseline is not None:
            return self.baseline
        return self.how if isinstance(self.searcher, IndexRetriever) else str(self.searcher.id)

    @override
    def words(self) -> tuple[str, ...]:
        if self.baseline is not None:
            return ()
        return (
            *super().words(),
            *(("options",) if self.within == "options" else ()),
            *((self.query,) if self.query != "joined" else ()),
            *((f"rerank {self.rerank} by {self.think.id}",) if self.rerank else ()),
        )

    @override
    def kept(self) -> JsonObject:
        # An encoder that is named and one that the index names are the same configuration.
        form = self.searcher.form()
        spaces: Mapping[str, Any] = form.get("spaces", {})
        forms = {option: spaces[way]["embedder"] for way, option in ENCODERS.items() if way in spaces}
        forms |= {} if self.retriever is None else {"retriever": form}
        options = {**super().kept(), "index": self.opened_index.form(), **forms}
        if self.baseline is None:
            return options
        searching = {"context", "query", "how"}  # nothing is searched for
        return {**{name: options[name] for name in options.keys() - searching}, "frequent": [*self.frequent]}


ENCODERS: Mapping[str, str] = {"dense": "embedder", "image": "encoder"}
"""By way of searching, the option that names its encoder."""


def splits_in(entries: Iterable[IndexEntry]) -> list[str]:
    """The splits of the data set that entries are of."""
    return sorted({split for entry in entries for split in entry.split.split("+")} - {""})


# --- what is searched with ---


def described_links(context: ParsedContext) -> tuple[Link[Any], ...]:
    """The verbalizations that the description of a context is made of; none where there is no description."""
    return tuple(LINKS_BY_NAME[name] for name in tools_of(replace(context, statement=None)))


def shown_links(context: ParsedContext, query: Query) -> tuple[Link[Any], ...]:
    """The links that a query is made of, in the order in which they are searched for."""
    if query == "guess":
        return (GUESSES,)
    whole = context.blind or (query == "joined" and context.description in {"T_V", "T_V-UH"})
    links = (DESCRIPTION,) if whole else described_links(context)
    return links if context.statement is None else (*links, STATEMENT)


def description_in(reading: Reading, context: ParsedContext) -> str:
    """What the context says of a picture, as one text."""
    whole = text_of(reading.value(DESCRIPTION))
    return concatenate(verbalizations(reading, described_links(context))) if whole is None else whole


def guess_question(reading: Reading) -> GuessQuestion:
    """The description and the atypicality statement, of which is guessed what the ad argues for."""
    return GuessQuestion(description=reading.require(DESCRIPTION).text, statement=text_of(reading.value(STATEMENT)))


def query_texts(reading: Reading, context: ParsedContext, query: Query) -> tuple[str, ...]:
    """The texts of a query, as far as they are known; none where nothing is said of the picture."""
    if query == "guess":
        guessed = reading.value(GUESSES)
        return () if guessed is None else guessed.texts
    present = [link.name for link in shown_links(context, query) if not is_missing(reading, link.name)]
    texts = [text for name in present if (text := said_in(reading, name).strip())]
    return tuple(texts) if query == "parts" else tuple(["\n".join(texts)] if texts else [])


class SearchSolver(Solver):
    """Ranks the statements of an index for a picture, or its options where a sample has some.

    Args:
        searcher: searches the index.
        chain: makes what is searched with; without a step for something, samples bring it.
        context: the context.
        query: what is searched with.
        reranker: puts the first statements in order; None leaves them as they are.
        rerank: how many of them.
        known: ids of the statements that there are, to be held against what is found; None does not check it.
    """

    plannable = True

    def __init__(
        self,
        searcher: Searcher,
        *,
        chain: Chain,
        context: ParsedContext,
        query: Query = "joined",
        reranker: ListwiseReranker | None = None,
        rerank: int = 0,
        known: Container[str] | None = None,
    ) -> None:
        self.searcher = searcher
        self.chain = chain
        self.parsed_context = context
        self.query: Query = query
        self.reranker = reranker
        self.rerank = rerank
        self._known = known

    @property
    @override
    def answers_from(self) -> Chain:
        return self.chain

    @property
    @override
    def engine(self) -> Engine:
        return self.searcher.engine

    @property
    def nodes(self) -> tuple[Node[Any, Any], ...]:
        """The nodes that ask a model."""
        return (*self.chain.nodes, *(() if self.reranker is None else (self.reranker.node,)))

    @property
    @override
    def models(self) -> Sequence[Model]:
        return list(dict.fromkeys(node.model for node in self.nodes))

    @property
    @override
    def prompts(self) -> Mapping[str, str]:
        return prompt_files(self.nodes)

    @override
    def form(self) -> JsonObject:
        return {
            "search": self.searcher.form(),
            "context": self.parsed_context.name,
            "query": self.query,
            "rerank": None if self.reranker is None else {"first": self.rerank, **self.reranker.form()},
            **nodes_form(self.nodes),
        }

    @override
    async def answer(self, sample: Sample) -> Prediction:
        """The prediction for one sample.

        Raises:
            BadImage: the picture cannot be read.
            StoreError: the index cannot be searched by what there is: a file of it is damaged, or an encoder missing.
            UsageError: a retriever found what is no text of the index.
        """
        if self.parsed_context.picture and sample.image is None:
            return Prediction(outcome="failed", reason="there is no picture")
        return await self._answer(await self.chain.ainvoke({**given_of(sample)}), sample)

    async def _answer(self, reading: Reading, sample: Sample) -> Prediction:
        """The prediction from what the chain found out."""
        query, lacking = self._query_of(reading, sample), why_missing(reading, self._needed(reading))
        if lacking or not (query.texts or query.image is not None):
            return _prediction(reading, "skipped", reason=lacking or "nothing is said of the picture")
        names = names_of_options(sample)
        try:
            with collect_keys() as keys:
                hits = await self.searcher.search(query, among=names)
        except UsageError as error:  # no other sample could be searched for either
            raise StoreError(f"The statements cannot be searched: {error.message}", hint=error.hint) from error
        except (CallError, ReplayMiss) as error:
            outcome = cast("Outcome", getattr(error, "outcome", "failed"))
            missed: JsonObject = {"outcome": outcome, "calls": [], "error": type(error).__name__}
            return _prediction(reading, outcome, reason=str(error), links={"search": missed})
        strange = [hit for hit in hits if self._known is not None and hit.id not in self._known]
        if strange:
            raise UsageError(
                f"The retriever gave {strange[0].text[:80]!r}, which is no text of the index.",
                hint="Let it search the texts of the index, exactly as they are written there.",
            )
        trace: JsonObject = {"query": {"texts": [*query.texts], "image": query.image is not None}}
        links: JsonObject = {"search": {"outcome": "answered", "calls": keys}}
        if self.reranker is not None and hits:
            first, statement = hits[: self.rerank], text_of(reading.value(STATEMENT))
            reranked = await self.reranker.rerank(
                description_in(reading, self.parsed_context), first, statement=statement
            )
            known = {**reading.known, RERANKED.name: RERANKED}
            reading = replace(reading, known=known, links={**reading.links, RERANKED.name: reranked})
            if reranked.value is None:
                return _prediction(reading, reranked.outcome, reason=reranked.reason, links=links, trace=trace)
            hits = [*reranked.value, *hits[self.rerank :]]
        if names is None:
            value = [{"id": hit.id, "text": hit.text, "score": hit.score} for hit in hits[:SHOWN]]
            ranking = Ranking([hit.id for hit in hits], [hit.score for hit in hits])
            return _prediction(reading, "answered", links=links, trace=trace, value=value, ranking=ranking)
        if not hits:
            why = "the search finds none of the options"
            return _prediction(reading, "invalid", reason=why, links=links, trace=trace)
        scores = {hit.id: hit.score for hit in hits}
        trace["scores"] = [scores.get(name) for name in names]
        value = [names.index(hit.id) + 1 for hit in hits[:COUNT]]
        return _prediction(reading, "answered", links=links, trace=trace, value=value)

    def _needed(self, reading: Reading) -> list[str]:
        """The links without which there is no query; a statement may be absent."""
        links = ((link.name, reading.get(link)) for link in shown_links(self.parsed_context, self.query))
        return [name for name, result in links if result is None or not result.absent]

    def _query_of(self, reading: Reading, sample: Sample) -> RetrievalQuery:
        texts = query_texts(reading, self.parsed_context, self.query)
        return RetrievalQuery(texts=texts, image=sample.image if self.parsed_context.picture else None)

    @override
    def plan(self, planner: Planner) -> PlanSample:
        walk = planner.walk(self.chain)

        async def count(sample: Sample, draw: int) -> Prediction | None:
            return await self._count(sample, await walk.read(given_of(sample), draw=draw), planner)

        return count

    async def _count(self, sample: Sample, reading: Reading, planner: Planner) -> Prediction | None:
        """Counts the searches, vectors and calls of the reranker that an answer needs, without making them.

        Raises:
            BadImage: the file of the picture cannot be read.
        """
        if self.parsed_context.picture and sample.image is None:
            return None
        query, names = self._query_of(reading, sample), names_of_options(sample)
        missing = [name for name in self._needed(reading) if is_missing(reading, name)]
        if any(_has_ended(reading.links.get(name)) for name in missing):
            return await self._answer(reading, sample)  # which searches for nothing
        waiting = len(missing)
        if missing and self.query != "parts":
            query, waiting = replace(query, texts=()), GUESSED if self.query == "guess" else 1
        if not (query.texts or waiting or query.image is not None):
            return None
        if not self.searcher.plan(planner, query, among=names, waiting=waiting):
            if self.reranker is not None:
                await self.reranker.plan(planner, None, (), count=self.rerank)
            return None
        if self.reranker is not None:
            hits = await self.searcher.search(query, among=names)
            described, statement = description_in(reading, self.parsed_context), text_of(reading.value(STATEMENT))
            await self.reranker.plan(planner, described, hits[: self.rerank], statement=statement)
        with planner.counting():  # it knows the model of the reranker by now, and asks nobody what that can do
            return await self._answer(reading, sample)


def _has_ended(result: Result[Any] | None) -> bool:
    """Whether a link without an answer was asked, and does not wait for a call of its own or of another link."""
    return result is not None and result.outcome != "skipped" and result.error != Pending.__name__


def _prediction(
    reading: Reading, outcome: Outcome, *, links: JsonObject | None = None, trace: JsonObject | None = None, **more: Any
) -> Prediction:
    """A prediction with what the chain found out, and what was found by it."""
    line = reading.to_dict()
    traced = {name: line[name] for name in ("verbalization", "statement")}
    return Prediction(
        outcome=outcome,
        links={**line["links"], **(links or {})},
        trace={**traced, **(trace or {})},
        meta=line["meta"],
        **more,
    )


def names_of_options(sample: Sample) -> list[str] | None:
    """The ids of a sample's options, in their order; None where it has none."""
    options: Sequence[str] | None = sample.inputs.get("options")
    return None if options is None else [entry_id(text) for text in options]


class FrequentSolver(BlindSolver):
    """Ranks the same statements for every picture: those that are true of most images.

    Args:
        hits: the statements, as an answer has them.
    """

    def __init__(self, hits: Sequence[Mapping[str, Any]]) -> None:
        self._hits = hits
        self._ranking = Ranking([hit["id"] for hit in hits], [hit["score"] for hit in hits])

    @override
    async def answer(self, sample: Sample) -> Prediction:
        """The same for every sample."""
        return Prediction(outcome="answered", value=[*self._hits[:SHOWN]], ranking=self._ranking)

    @override
    def form(self) -> JsonObject:
        return {"baseline": "frequent", "ranking": self._ranking.digest}
