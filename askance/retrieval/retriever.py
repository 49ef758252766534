"""Retrievers: the texts of an index that fit a query best. Every single search is on record (kind `search`).

A query is one text, several (parts, such as objects and scene text), a picture, or both. It is searched in one way or
in several:

| way | the best are |
|---|---|
| `dense` | those whose vectors have the highest cosine with the query's, by a sentence encoder |
| `bm25` | those that share rare words with the query |
| `image` | those whose vectors have the highest cosine with that of the picture, by a dual encoder such as CLIP |
| `hybrid` | all of these that index and query allow, fused |

Each way searches for each text, or for the picture. Where that makes several rankings, they are fused by reciprocal
ranks. The request of a search has the index's digest, what searched it, the query and how many hits are wanted, so that
a replay needs neither index nor weights.

A record holds ids, scores and the first `TEXTS` texts. Rankings are fused after they were read from the records, so
that `hybrid` and its ways share them; a hit that only the fusion brings among the first ones has its text in a record
of its own. The vectors of queries are not on record.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable

from askance.chat import ModelId, key_of
from askance.errors import BadRecord, ModelError, StoreError, UsageError
from askance.images import Image
from askance.models import get_embedder
from askance.models.call_scope import withhold_keys
from askance.models.encoders.records import RecordedResponses, id_of_form
from askance.models.encoders.search import TextVectors, check_count
from askance.models.encoders.towers import sentences_of
from askance.models.encoders.vectors import half, mean_of
from askance.models.engine import default_engine
from askance.registry import import_object
from askance.replay import DAMAGED_HINT
from askance.retrieval.entries import digest_of, entry_id
from askance.retrieval.index import Index
from askance.retrieval.vector_store import best_first

if TYPE_CHECKING:
    from askance.chains import Planner
    from askance.chat import JsonObject
    from askance.models import EmbedderLike, Engine
    from askance.models.encoders.embedder import RecordedEmbedder
    from askance.models.encoders.vectors import Half
    from askance.retrieval.index import IndexLike, Space

Way = Literal["dense", "bm25", "image"]
WAYS: tuple[Way, ...] = get_args(Way)
HYBRID = "hybrid"
"""All ways that index and query allow."""

RANK_CONSTANT = 60
"""Of reciprocal rank fusion, as in its paper (Cormack, Clarke and Büttcher, 2009)."""

LONG = 50
"""Words up to which a text is one vector; a longer one is the mean of its sentences' vectors. CLIP reads 77 tokens."""

TEXTS = 100
"""First hits of a search of which the texts are on record, and that have a text."""


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """What is searched for: texts, a picture, or both."""

    texts: tuple[str, ...] = ()
    """Several are parts of one query: each is searched for by itself. Blank ones are left out."""
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class RetrievalHit:
    """One text that was found."""

    id: str
    score: float
    """The higher, the better: a cosine, a BM25 score, or a sum of reciprocal ranks; only comparable within a search."""
    text: str
    """Empty behind the first `TEXTS` hits."""


@runtime_checkable
class Retriever(Protocol):
    """Finds the texts that fit a query best."""

    async def search(
        self, query: str | RetrievalQuery, *, image: Image | None = None, among: Collection[str] | None = None
    ) -> list[RetrievalHit]:
        """The best texts, the best first, each once.

        Args:
            query: a text, or a `RetrievalQuery`.
            image: the picture, where `query` has none.
            among: the ids to choose from; None is all.
        """
        ...


def reciprocal_rank_fusion(
    rankings: Iterable[Iterable[str]], *, constant: float = RANK_CONSTANT
) -> list[tuple[str, float]]:
    """One ranking of several: by the sum of 1 / (constant + rank), then by id.

    Args:
        rankings: ids, the best first. An id that stands twice in one ranking counts where it stands first.
        constant: how little the first ranks count more than later ones.
    """
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, each in enumerate(dict.fromkeys(ranking), start=1):
            shares.setdefault(each, []).append(1 / (constant + rank))
    # An exact sum: equal ranks in other rankings are a tie.
    return sorted(((each, math.fsum(some)) for each, some in shares.items()), key=best_first)


def retriever(
    source: IndexLike | Retriever | Any,
    *,
    how: str = HYBRID,
    k: int = 100,
    embedder: EmbedderLike | None = None,
    encoder: EmbedderLike | None = None,
    identity: str | None = None,
    engine: Engine | None = None,
) -> IndexRetriever | RecordedRetriever:
    """The retriever over an index, or over a retriever of llama-index or of your own.

    Args:
        source: an index, its folder or its form; an object with `aretrieve` (llama-index) or `search`; or what was
            made of such an object before, or its form, which answers from records alone.
        how: of an index: `dense`, `bm25`, `image`, some of them joined (`dense+image`), or `hybrid`.
        k: hits that are wanted.
        embedder: of an index: whose vectors `dense` searches, where there are several that take texts alone; it is
            needed where the index was built on another machine, and a search is not on record.
        encoder: of an index: the same for `image`.
        identity: of another retriever: the name under which its hits are recorded; without one they are not.
        engine: the run's; None is one with default settings on the project's store.

    Raises:
        UsageError: no such way, or one that the index has not; nothing is wanted; or `source` is no retriever.
        StoreError: the description of the index is damaged.
    """
    check_count(k)
    run = engine if engine is not None else default_engine()
    if isinstance(source, Mapping) and "retriever" in source:
        return RecordedRetriever.of_form(cast("Mapping[str, Any]", source), run)
    if isinstance(source, RecordedRetriever):
        return source if engine is None else source.changed(engine)
    if isinstance(source, (str, Path, Index, Mapping)):
        if identity is not None:
            raise UsageError("An index is known by its digest.", hint="Leave out `identity`.")
        index = Index.open(cast("IndexLike", source))
        return IndexRetriever(index, how=how, k=k, embedder=embedder, encoder=encoder, engine=run)
    if how != HYBRID or embedder is not None or encoder is not None:
        raise UsageError(
            f"A {type(source).__name__} searches in its own way.", hint="Leave out `how`, `embedder` and `encoder`."
        )
    if not hasattr(source, "search") and hasattr(source, "aretrieve"):
        return RecordedRetriever(
            import_object("askance.retrieval.llama:LlamaRetriever")(source), identity=identity, k=k, engine=run
        )
    if not isinstance(source, Retriever):
        raise UsageError(
            f"A {type(source).__name__} is no retriever.",
            hint="Give the folder of an index, a retriever of llama-index, or an object with `async def search(…)`.",
        )
    return RecordedRetriever(source, identity=identity, k=k, engine=run)


# --- records ---

Found: TypeAlias = "Sequence[Sequence[RetrievalHit]]"


class SearchRecords:
    """Searches with their records: those that are not on record are made, each once at a time.

    Args:
        engine: whose records and mode are used.
        stored: whether anything tells these searches from others, so that they can be recorded.
        title: what searches, for messages.

    Raises:
        UsageError: the mode is `replay` and nothing can be.
    """

    def __init__(self, engine: Engine, *, stored: bool, title: str) -> None:
        self._responses = RecordedResponses("search", engine, stored=stored, replayable=stored, title=title)
        self._stored = stored
        self._title = title

    async def get(
        self, forms: Sequence[JsonObject], make: Callable[[Sequence[int]], Awaitable[Found]]
    ) -> list[list[RetrievalHit]]:
        """The hits of each search.

        Args:
            forms: the requests in canonical form.
            make: from places among the requests to their hits.

        Raises:
            ReplayMiss: the mode is `replay` and a search is not on record.
            CallError: a score is no number, or a record is damaged.
        """

        async def responses(places: Sequence[int]) -> list[JsonObject]:
            with withhold_keys():  # where a search is on record, the vectors that it was made of are not needed
                return [_response(hits, by=self._title) for hits in await make(places)]

        recorded = await self._responses.get(forms, responses)
        return [_hits(response, form) for response, form in zip(recorded, forms, strict=True)]

    def keys(self, forms: Sequence[JsonObject]) -> tuple[str, ...]:
        """Keys of the records, each once; none where nothing is recorded."""
        return tuple(dict.fromkeys(key_of("search", form) for form in forms)) if self._stored else ()

    def lacking(self, forms: Sequence[JsonObject]) -> frozenset[str]:
        """Keys of the searches that are not on record."""
        return self._responses.lacking(forms)


def _response(hits: Sequence[RetrievalHit], *, by: str) -> JsonObject:
    distinct: dict[str, RetrievalHit] = {}
    for hit in hits:
        if not math.isfinite(hit.score):
            raise ModelError(f"{by} gave {hit.score} as a score, which is no number.")
        distinct.setdefault(hit.id, hit)
    return {
        "ids": list(distinct),
        "scores": [hit.score for hit in distinct.values()],
        "texts": [hit.text for hit in distinct.values()][:TEXTS],
    }


def _hits(response: Mapping[str, Any], form: JsonObject) -> list[RetrievalHit]:
    """The hits on record, which a stranger may have written.

    Raises:
        BadRecord: they are no result of this search; or, of an index, a text is not that of its id.
    """
    try:
        ids, scores, texts = (cast("list[Any]", response[name]) for name in ("ids", "scores", "texts"))
        hits = [
            RetrievalHit(each, float(score), text)
            for each, score, text in zip(ids, scores, texts + [""] * (len(ids) - len(texts)), strict=True)
            if isinstance(each, str) and type(score) in {int, float} and math.isfinite(score) and isinstance(text, str)
        ]
        sound = len({hit.id for hit in hits}) == len(ids) <= form["k"]
        sound = sound and ("index" not in form or all(entry_id(hit.text) == hit.id for hit in hits[: len(texts)]))
    except (KeyError, OverflowError, TypeError, ValueError):
        hits, sound = [], False
    if not sound:
        raise BadRecord(f"The record {key_of('search', form)[:12]!r} holds no result of a search.", hint=DAMAGED_HINT)
    return hits


# --- an index ---


class IndexRetriever:
    """The texts of an index that fit a query best. `retriever` makes it.

    Args:
        index: that is searched.
        how: see `retriever`.
        k: hits that are wanted, of each search and in all.
        embedder: of the space that `dense` searches; None is the only one, but for one that takes pictures.
        encoder: of the space that `image` searches; None is the only one of a dual encoder.
        engine: whose records and mode are used.

    Raises:
        UsageError: no such way, or one that the index has not.
    """

    def __init__(
        self,
        index: Index,
        *,
        how: str,
        k: int,
        embedder: EmbedderLike | None,
        encoder: EmbedderLike | None,
        engine: Engine,
    ) -> None:
        self.index = index
        self.how = how
        self.k = k
        self.engine = engine
        self._spaces: dict[Way, tuple[Space, RecordedEmbedder]] = {}
        self._named_ways = set[Way]()
        """Those whose embedder was given by name."""
        wanted = ways_of(how)
        if "dense" in wanted:
            self._add("dense", embedder, [space for space in index.spaces if not _is_dual(space)] or index.spaces)
        if "image" in wanted:
            self._add("image", encoder, [space for space in index.spaces if _is_dual(space)])
        self.ways: tuple[Way, ...] = tuple(way for way in wanted if way == "bm25" or way in self._spaces)
        """The ways that index and `how` allow."""
        for way in wanted:
            if how != HYBRID and way not in self.ways:
                raise UsageError(f"The index {index} cannot be searched by {way!r}.", hint=_LACKING[way])
        self._records = SearchRecords(engine, stored=True, title=repr(index))

    def _add(self, way: Way, embedder: EmbedderLike | None, spaces: Sequence[Space]) -> None:
        """Notes which space a way searches, where there is one."""
        if embedder is None and not spaces:
            return
        space = spaces[0] if embedder is None and len(spaces) == 1 else self.index.space(embedder, engine=self.engine)
        self._spaces[way] = space, get_embedder(embedder or space.embedder, engine=self.engine)
        if embedder is not None:
            self._named_ways.add(way)

    def form(self) -> JsonObject:
        """Everything but the query that decides the hits, as JSON."""
        spaces = {way: space.form() for way, (space, _) in self._spaces.items()}
        return {"how": self.how, "k": self.k, "index": self.index.form(), "spaces": spaces}

    async def search(
        self, query: str | RetrievalQuery, *, image: Image | None = None, among: Collection[str] | None = None
    ) -> list[RetrievalHit]:
        """The `k` best texts, the best first; fewer where fewer fit.

        Args:
            query: a text, or a `RetrievalQuery`.
            image: the picture, where `query` has none.
            among: the ids to choose from; those that the index lacks are passed over. None is all.

        Raises:
            UsageError: the query is empty, or lacks what a way needs; only the form of the index or of an embedder is
                known; `among` is empty.
            BadImage: the picture cannot be used.
            ReplayMiss: the mode is `replay` and a search is not on record.
            CallError: an embedder failed, or a record is damaged.
            StoreError: a file of the index is damaged, or its store does not answer.
        """
        searches = self._searches(with_image(query, image))
        rankings = [
            ranking
            for way, subjects in searches.items()
            for ranking in await self._rankings(way, subjects, _checked(among))
        ]
        return await self._with_texts(fused(rankings)[: self.k])

    def keys(self, query: str | RetrievalQuery, *, among: Collection[str] | None = None) -> tuple[str, ...]:
        """Keys of the records of its searches.

        Raises:
            UsageError: as for `search`.
        """
        return self._records.keys(self._forms(self._searches(with_image(query)), _checked(among)))

    def plan(
        self, planner: Planner, query: RetrievalQuery, *, among: Collection[str] | None = None, waiting: int = 0
    ) -> bool:
        """Counts the searches and vectors of a query, without making them; gives whether all searches are on record.

        Args:
            planner: counts.
            query: as far as it is known.
            among: as for `search`.
            waiting: how many more texts it will have, which are not known yet.

        Raises:
            UsageError: as for `search`.
            BadImage: the file of the picture cannot be read.
        """
        searches = self._searches(query, waiting=waiting)
        forms = self._forms(searches, _checked(among))
        lacking = self._records.lacking(forms)
        model = ModelId("index", self.index.digest[:12])
        unknown = waiting * sum(way != "image" for way in searches)
        planner.add_computed("searches", model, keys=self._records.keys(forms), lacking=lacking, dependent=unknown)
        for way, subjects in searches.items():
            made = [each for each in subjects if key_of("search", self._form(way, each, among)) in lacking]
            later = waiting if way == "dense" else 0
            if way in self._spaces and (made or later):
                parts = [part for each in made for part in _embedded_parts(each)]
                _, embedder = self._spaces[way]
                keys, new = embedder.keys(parts), embedder.lacking(parts)
                planner.add_computed("vectors", embedder.id, keys=keys, lacking=new, dependent=later)
        return not lacking and not unknown

    # --- one query ---

    def _searches(self, query: RetrievalQuery, *, waiting: int = 0) -> dict[Way, Sequence[str | Image]]:
        """By way, what is searched for.

        Raises:
            UsageError: the query is empty, or lacks what a way needs.
        """
        texts = [text for text in query.texts if text.strip()]
        pictures = [] if query.image is None else [query.image]
        if not texts and not waiting and not pictures:
            raise UsageError("The query is empty.", hint="Give a text with a word in it, or a picture.")
        searches: dict[Way, Sequence[str | Image]] = {}
        for way in self.ways:
            subjects = pictures if way == "image" else texts
            if subjects or (waiting and way != "image"):
                searches[way] = subjects
            elif self.how != HYBRID:
                what = "picture" if way == "image" else "text"
                raise UsageError(
                    f"The query has no {what}, and {way!r} searches by one.",
                    hint=f"Give it a {what}, or take `hybrid`, which searches by what there is.",
                )
        if not searches:
            raise UsageError(f"The index {self.index} cannot be searched by a picture.", hint=_LACKING["image"])
        return searches

    def _forms(self, searches: Mapping[Way, Sequence[str | Image]], among: Collection[str] | None) -> list[JsonObject]:
        return [self._form(way, each, among) for way, subjects in searches.items() for each in subjects]

    def _form(self, way: Way, subject: str | Image, among: Collection[str] | None) -> JsonObject:
        """The request of one search; where that of older versions alone is on record, which named no file, that one."""
        form = self._form_without_file(way, subject, among)
        digest = None if way == "bm25" else self.index.vectors_digest(self._spaces[way][0])
        if digest is None:
            return form
        whole = {**form, "store": f"sha256:{digest}"}
        return form if self._records.lacking([whole]) and not self._records.lacking([form]) else whole

    def _form_without_file(self, way: Way, subject: str | Image, among: Collection[str] | None) -> JsonObject:
        form = {"how": way, "index": self._index_form, "k": self.k, **_subject_form(subject), **_among_form(among)}
        if way == "bm25":
            settings = self.index.bm25_settings
            return {**form, "model": ModelId("bm25", str(settings.get("method"))).canonical(), "settings": settings}
        space, _ = self._spaces[way]
        settings = dict(space.embedder)
        form["model"] = settings.pop("model")
        if len(_embedded_parts(subject)) > 1:
            form["split"] = "sentences"
        if space.store == "own":  # it may search in its own way
            form["store"] = space.store
        return {**form, "settings": settings}

    @property
    def _index_form(self) -> JsonObject:
        return {"sha256": self.index.digest, "count": self.index.count}

    async def _rankings(
        self, way: Way, subjects: Sequence[str | Image], among: Collection[str] | None
    ) -> list[list[RetrievalHit]]:
        """The hits of one way for each text, or for the picture."""

        async def make(places: Sequence[int]) -> list[list[RetrievalHit]]:
            some = [subjects[place] for place in places]
            if way == "bm25":
                scored = await asyncio.to_thread(self._by_words, some, among)
            else:
                store = await self.index.whole_vectors(self._spaces[way][0])
                scored = await store.search(await self._vectors(way, some), self.k, among)
                if not any(scored) and self._has_text(among):
                    raise self._nothing(way)
            return await asyncio.to_thread(lambda: [self._named(each) for each in scored])

        return await self._records.get(self._forms({way: subjects}, among), make)

    def _has_text(self, among: Collection[str] | None) -> bool:
        """Whether one of the texts to choose from has a vector, which each search finds then; blank ones have none."""
        return among is None or any(each.text.strip() for each in map(self.index.by_id.get, among) if each is not None)

    def _nothing(self, way: Way) -> StoreError:
        return StoreError(
            f"The store with the vectors of {self._spaces[way][0]} found nothing at all among {self.index.count:,} "
            "texts.",
            hint="Run the same build again, which makes what is missing; or give the store that it was built with.",
        )

    def _by_words(self, texts: Sequence[Any], among: Collection[str] | None) -> list[list[tuple[str, float]]]:
        words = self.index.bm25
        return [words.search(text, self.k, among) for text in texts]

    async def _vectors(self, way: Way, subjects: Sequence[str | Image]) -> list[Half]:
        """For each text or picture its vector; of a long text the mean of those of its sentences.

        Raises:
            UsageError: nobody named the embedder, and the index knows it by its records or its weights alone.
        """
        _, embedder = self._spaces[way]
        try:
            if way == "image":
                return [half(await embedder.embed_image(cast("Image", each))) for each in subjects]
            parts = [cast("list[str]", _embedded_parts(each)) for each in subjects]
            vectors = iter(await self._texts.of([part for some in parts for part in some]))
        except UsageError as error:
            if way in self._named_ways:
                raise
            option = "encoder" if way == "image" else "embedder"
            raise UsageError(error.message, hint=f"{error.hint} Say so by `{option}=`, or `--{option}`.") from error
        return [mean_of([next(vectors) for _ in some]) for some in parts]

    @cached_property
    def _texts(self) -> TextVectors:
        return TextVectors(self._spaces["dense"][1])

    def _named(self, scored: Sequence[tuple[str, float]]) -> list[RetrievalHit]:
        """Hits with their texts."""
        entries = self.index.by_id
        try:
            return [RetrievalHit(each, score, entries[each].text) for each, score in scored]
        except KeyError as error:
            raise StoreError(
                f"The store of the index {self.index} gave the id {str(error)[:40]}, which no entry has.",
                hint="Give the store that the index was built with, or build the index again.",
            ) from error

    async def _with_texts(self, hits: list[RetrievalHit]) -> list[RetrievalHit]:
        """The hits, the first of them with their texts: one may stand far behind in each ranking that was fused."""
        lacking = sorted(hit.id for hit in hits[:TEXTS] if not hit.text)
        if lacking:
            form = {"how": "texts", "index": self._index_form, "ids": lacking, "k": len(lacking)}

            async def make(places: Sequence[int]) -> Found:  # noqa: ARG001  # there is one
                return [await asyncio.to_thread(self._named, [(each, 0.0) for each in lacking])]

            (hits_with_texts,) = await self._records.get([form], make)
            texts = {hit.id: hit.text for hit in hits_with_texts}
            hits = [replace(hit, text=texts.get(hit.id, hit.text)) for hit in hits]
        return [hit if place < TEXTS else replace(hit, text="") for place, hit in enumerate(hits)]


_LACKING: Mapping[Way, str] = {
    "dense": "Add vectors of a sentence encoder: `askance index build FOLDER --embedder st:FOLDER`.",
    "bm25": "Build it again.",
    "image": "Add vectors of a dual encoder: `askance index build FOLDER --embedder clip:FOLDER`.",
}
"""By way that an index has not, the way out."""


def ways_of(how: str) -> tuple[Way, ...]:
    """The ways that `how` names, in their order.

    Raises:
        UsageError: it names none, or one that there is not.
    """
    named = how.split("+")
    if how != HYBRID and not {*named} <= {*WAYS}:
        raise UsageError(
            f"An index cannot be searched by {how!r}.",
            hint=f"Choose {HYBRID}, or some of {', '.join(WAYS)}, joined by +.",
        )
    return WAYS if how == HYBRID else tuple(way for way in WAYS if way in named)


def with_image(query: str | RetrievalQuery, image: Image | None = None) -> RetrievalQuery:
    """A query in one form, with a picture that was given beside it."""
    combined = RetrievalQuery((query,)) if isinstance(query, str) else query
    return combined if image is None else replace(combined, image=image)


def fused(rankings: Sequence[Sequence[RetrievalHit]]) -> list[RetrievalHit]:
    """One ranking of several, with the sums of reciprocal ranks as scores; a single one stays as it is."""
    if len(rankings) == 1:
        return list(rankings[0])
    texts = {hit.id: hit.text for ranking in rankings for hit in reversed(ranking) if hit.text}
    ranked = reciprocal_rank_fusion([hit.id for hit in ranking] for ranking in rankings)
    return [RetrievalHit(each, score, texts.get(each, "")) for each, score in ranked]


def _embedded_parts(subject: str | Image) -> list[str] | list[Image]:
    """What vectors are made of: a long text's sentences, or the text or picture itself."""
    if isinstance(subject, Image):
        return [subject]
    return sentences_of(subject) if len(subject.split()) > LONG else [subject]


def _subject_form(subject: str | Image) -> JsonObject:
    """What is searched for, in a request."""
    return {"image": {"sha256": subject.sha256}} if isinstance(subject, Image) else {"query": subject}


def _among_form(among: Collection[str] | None) -> JsonObject:
    """What is searched among, in a request."""
    if among is None:
        return {}
    ids = sorted(set(among))
    return {"among": {"sha256": digest_of(ids), "count": len(ids)}}


def _is_dual(space: Space) -> bool:
    """Whether the vectors are those of a dual encoder, and so can be compared with pictures."""
    return space.embedder["model"].get("provider") == "clip"


def _checked(among: Collection[str] | None) -> Collection[str] | None:
    if among is not None and (isinstance(among, str) or not among):
        raise UsageError("There are no texts to search among.", hint="Give ids of the index's texts, or leave it out.")
    return among


# --- another retriever ---


class RecordedRetriever:
    """Another retriever with its records. `retriever` makes it.

    Args:
        source: searches where a search is not on record.
        identity: the name under which its hits are recorded; None records none.
        k: hits that are wanted.
        engine: whose records and mode are used.

    Raises:
        UsageError: the mode is `replay` and there is no identity.
    """

    def __init__(self, source: Retriever, *, identity: str | None, k: int, engine: Engine) -> None:
        self.id = ModelId("custom", identity or type(source).__name__, name=identity)
        self.k = k
        self.engine = engine
        self._source = source
        self._records = SearchRecords(engine, stored=identity is not None, title=str(self.id))

    @classmethod
    def of_form(cls, form: Mapping[str, Any], engine: Engine) -> RecordedRetriever:
        """The retriever that `form` gave, as far as its records go.

        Raises:
            UsageError: the form is none; or the mode is `replay` and it has no identity.
        """
        model, k = id_of_form(form["retriever"]), form.get("k")
        if not isinstance(k, int):
            raise UsageError(
                "The form of a retriever does not say how many hits it gives.", hint="Give what `form` gave."
            )
        return cls(_ReplayOnlyRetriever(str(model)), identity=model.name, k=k, engine=engine)

    def changed(self, engine: Engine) -> RecordedRetriever:
        """The same retriever in another engine."""
        return type(self)(self._source, identity=self.id.name, k=self.k, engine=engine)

    def form(self) -> JsonObject:
        """Everything but the query that decides the hits, as JSON."""
        return {"retriever": self.id.canonical(), "k": self.k}

    async def search(
        self, query: str | RetrievalQuery, *, image: Image | None = None, among: Collection[str] | None = None
    ) -> list[RetrievalHit]:
        """The best texts, at most `k`, the best first; several texts, or a text and a picture, are fused.

        Raises:
            UsageError: the query is empty, or nothing that the retriever takes.
            ReplayMiss: the mode is `replay` and a search is not on record.
            CallError: the retriever failed, or a record is damaged.
        """
        subjects = self._subjects(with_image(query, image))
        chosen = _checked(among)

        async def make(places: Sequence[int]) -> Found:
            some = [subjects[place] for place in places]
            rankings = [await self._source.search(each, among=chosen) for each in some]
            return [hits[: self.k] for hits in rankings]

        return fused(await self._records.get([self._form(each, chosen) for each in subjects], make))[: self.k]

    def keys(self, query: str | RetrievalQuery, *, among: Collection[str] | None = None) -> tuple[str, ...]:
        """Keys of the records of its searches; none where nothing is recorded.

        Raises:
            UsageError: the query is empty.
        """
        return self._records.keys([self._form(each, _checked(among)) for each in self._subjects(with_image(query))])

    def plan(
        self, planner: Planner, query: RetrievalQuery, *, among: Collection[str] | None = None, waiting: int = 0
    ) -> bool:
        """Counts the searches of a query, as `IndexRetriever.plan` does."""
        known = query if any(text.strip() for text in query.texts) or query.image else None
        forms = [self._form(each, _checked(among)) for each in (self._subjects(known) if known else ())]
        keys = [key_of("search", form) for form in forms]
        lacking = self._records.lacking(forms)
        planner.add_computed("searches", self.id, keys=keys, lacking=lacking, dependent=waiting)
        return not lacking and not waiting

    def _subjects(self, query: RetrievalQuery) -> list[str | RetrievalQuery]:
        texts: list[str | RetrievalQuery] = [text for text in query.texts if text.strip()]
        pictures = [] if query.image is None else [RetrievalQuery(image=query.image)]
        if not texts and not pictures:
            raise UsageError("The query is empty.", hint="Give a text with a word in it, or a picture.")
        return [*texts, *pictures]

    def _form(self, subject: str | RetrievalQuery, among: Collection[str] | None) -> JsonObject:
        about = subject if isinstance(subject, str) else cast("Image", subject.image)
        form = {"how": "retriever", "model": self.id.canonical(), "k": self.k}
        return {**form, **_subject_form(about), **_among_form(among)}


class _ReplayOnlyRetriever:
    """A replay-only retriever: it answers from records, and searches nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def search(
        self,
        query: str | RetrievalQuery,
        *,
        image: Image | None = None,  # noqa: ARG002  # as of a retriever
        among: Collection[str] | None = None,  # noqa: ARG002
    ) -> list[RetrievalHit]:
        wanted = query if isinstance(query, str) else "a picture"
        raise UsageError(
            f"The retriever {self._name!r} is known by its records alone, and they lack {wanted[:60]!r}.",
            hint="Give the retriever itself.",
        )
