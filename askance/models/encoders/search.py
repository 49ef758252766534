"""Search: the texts that are most similar to a text, or fit a picture best; one record a search.

The record names the candidates by one digest, so that a replay needs neither vectors nor weights. Their vectors are
kept beside the records, each text once.

They are looked at a block at a time. Memory is bounded by the block, not by the candidates: for `q` queries, blocks of
`b` vectors with `d` numbers and the `k` best it is about 8·(b·d + q·(b + d + k)) bytes beside what the caller holds;
4,096 vectors of 512 numbers are 17 MB. Vectors are taken at 16 bits, whose products add up in 64 bits without rounding:
the result does not depend on how the candidates are cut into blocks.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from heapq import nlargest
from typing import TYPE_CHECKING, Any, cast

from askance.chat import JsonObject, key_of
from askance.errors import BadRecord, ModelError, UsageError
from askance.images import WHOLE_IMAGE, Image, RegionView
from askance.models.encoders.embedder import get_embedder
from askance.models.encoders.picture_scorer import get_scorer
from askance.models.encoders.vectors import BLOCK, MemoryVectors, VectorFile, half, same_size
from askance.replay import DAMAGED_HINT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.models.encoders.embedder import EmbedderLike, RecordedEmbedder
    from askance.models.encoders.picture_scorer import ScorerLike
    from askance.models.encoders.vectors import Half
    from askance.models.engine import Engine

    Numbers = NDArray[np.float64]
    Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hit:
    """One candidate, and how well it fits."""

    place: int
    """Among the candidates, from 0."""
    score: float


async def nearest_texts(
    queries: Sequence[str],
    candidates: Sequence[str],
    *,
    embedder: EmbedderLike,
    k: int = 10,
    block: int = BLOCK,
    engine: Engine | None = None,
) -> list[list[Hit]]:
    """For each query the `k` most similar candidates, the best first; ties are broken by their order.

    Args:
        queries: texts.
        candidates: texts, as many as you like.
        embedder: a spec, or an embedder.
        k: how many are wanted.
        block: candidates that are looked at at a time; it changes nothing but memory and time.
        engine: whose records and mode are used.

    Raises:
        UsageError: there are no candidates, or fewer than one is wanted.
        ReplayMiss: the mode is `replay` and a search is not on record.
        CallError: the embedder failed, or a record is damaged.
        StoreError: the file of vectors is damaged.
    """
    recorded = get_embedder(embedder, engine=engine)
    search = _among(candidates, k)
    forms = [{**recorded.form(), "query": query, **search} for query in queries]
    vectors = TextVectors(recorded)

    async def make(places: Sequence[int]) -> list[JsonObject]:
        nearest = Nearest(await vectors.of([queries[place] for place in places]), k=k)
        for start in range(0, len(candidates), block):
            block_vectors = await vectors.of(candidates[start : start + block])
            await asyncio.to_thread(nearest.add, block_vectors)
        return [_response(hits) for hits in nearest.hits()]

    responses = recorded.responses("score")
    return [_hits(each, form) for form, each in zip(forms, await responses.get(forms, make), strict=True)]


async def best_texts(
    image: Image,
    candidates: Sequence[str],
    *,
    scorer: ScorerLike,
    k: int = 10,
    view: RegionView = WHOLE_IMAGE,
    block: int = BLOCK,
    engine: Engine | None = None,
) -> list[Hit]:
    """The `k` candidates that fit a picture best, the best first; ties are broken by their order.

    Args:
        image: the picture.
        candidates: texts, as many as you like.
        scorer: a spec, or a scorer of pictures.
        k: how many are wanted.
        view: what is shown of the picture.
        block: candidates that are scored at a time; it changes nothing but memory and time.
        engine: whose records and mode are used.

    Raises:
        BadImage: the picture cannot be used.
        UsageError: there are no candidates, fewer than one is wanted, or the scorer takes no pictures.
        ReplayMiss: the mode is `replay` and the search is not on record.
        CallError: the scorer failed, or a record is damaged.
    """
    recorded = get_scorer(scorer, engine=engine)
    form = {**recorded.request(image, "", view=view), **_among(candidates, k)}
    del form["text"]

    async def make(places: Sequence[int]) -> list[JsonObject]:  # noqa: ARG001  # there is one
        best: list[Hit] = []
        for start in range(0, len(candidates), block):
            scores = await recorded.fresh(image, candidates[start : start + block], view=view)
            hits = (Hit(place, score) for place, score in enumerate(scores, start))
            best = nlargest(k, [*best, *hits], key=lambda hit: (hit.score, -hit.place))
        return [_response(best)]

    responses = recorded.responses("score")
    (response,) = await responses.get([form], make)
    return _hits(response, form)


class TextVectors:
    """Vectors of many texts in 16 bits. Each is made once and kept in a file beside the records, where there is one."""

    def __init__(self, embedder: RecordedEmbedder) -> None:
        self._embedder = embedder
        folder = embedder.folder
        self._store = MemoryVectors() if folder is None else VectorFile(folder, embedder.form())

    async def of(self, texts: Sequence[str]) -> list[Half]:
        """Their vectors, in their order.

        Raises:
            CallError: the embedder failed.
            StoreError: the file of vectors is damaged.
        """
        if self._embedder.keeps:
            return [half(vector) for vector in await self._embedder.fresh(texts)]
        keys = [key_of("embed", self._embedder.request(text)) for text in texts]
        stored = await asyncio.to_thread(self._store.find, keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in stored}
        if missing:
            made = await self._embedder.fresh(list(missing.values()))
            fresh = {key: half(vector) for key, vector in zip(missing, made, strict=True)}
            stored |= fresh
            await asyncio.to_thread(self._store.keep, fresh)
        return [stored[key] for key in keys]


def _among(candidates: Sequence[str], k: int) -> JsonObject:
    """What tells this search from another among other candidates."""
    check_count(k)
    if isinstance(candidates, str) or not candidates:
        raise UsageError("There are no candidates to choose from.", hint="Give a list of texts.")
    digest = sha256()
    for text in candidates:
        digest.update(json.dumps(text).encode() + b"\n")
    return {"candidates": {"sha256": digest.hexdigest(), "count": len(candidates)}, "k": k}


def _response(hits: Sequence[Hit]) -> JsonObject:
    if not all(-1e300 < hit.score < 1e300 for hit in hits):
        raise ModelError("A score among the best is no number.")
    return {"places": [hit.place for hit in hits], "scores": [hit.score for hit in hits]}


def _hits(response: JsonObject, form: JsonObject) -> list[Hit]:
    try:
        pairs = zip(cast("list[Any]", response["places"]), cast("list[Any]", response["scores"]), strict=True)
        return [Hit(int(place), float(score)) for place, score in pairs]
    except (KeyError, TypeError, ValueError) as error:
        raise BadRecord(
            f"The record {key_of('score', form)[:12]!r} holds no result of a search.", hint=DAMAGED_HINT
        ) from error


class Nearest:
    """The most similar candidates of each query so far, by the cosine.

    Args:
        queries: vectors in 16 bits, at least one.
        k: how many are wanted of each; fewer come where there are fewer candidates.

    Raises:
        UsageError: fewer than one is wanted.
    """

    def __init__(self, queries: Sequence[Half], *, k: int) -> None:
        import numpy as np

        check_count(k)
        self._k = k
        self._count = 0
        self._queries, self._lengths = _rows_and_lengths(queries)
        self._scores: Numbers = np.empty((len(self._queries), 0))
        self._places: Places = np.empty((len(self._queries), 0), dtype=np.int64)

    def add(self, block: Sequence[Half]) -> None:
        """Looks at the next candidates.

        Raises:
            UsageError: their vectors have another size than those of the queries.
        """
        import numpy as np

        if not block:
            return
        rows, lengths = _rows_and_lengths(block)
        same_size(rows.shape[1], self._queries.shape[1])
        similarities: Numbers = np.clip((self._queries @ rows.T) / np.outer(self._lengths, lengths), -1, 1)
        here = np.broadcast_to(np.arange(self._count, self._count + len(block)), similarities.shape)
        scores, places = np.hstack([self._scores, similarities]), np.hstack([self._places, here])
        # Stable, and earlier candidates stand in front: ties are broken by the order of the candidates.
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self._k]
        self._scores = np.take_along_axis(scores, order, axis=1)
        self._places = np.take_along_axis(places, order, axis=1)
        self._count += len(block)

    def hits(self) -> list[list[Hit]]:
        """For each query its best candidates, the best first; ties are broken by their order."""
        rows = zip(self._places.tolist(), self._scores.tolist(), strict=True)
        return [[Hit(place, score) for place, score in zip(*row, strict=True)] for row in rows]


def check_count(k: int) -> None:
    """Refuses to look for nothing.

    Raises:
        UsageError: `k` is below 1.
    """
    if k < 1:
        raise UsageError(f"The {k} best of some candidates are none.", hint="Ask for one or more.")


def _rows_and_lengths(vectors: Sequence[Half]) -> tuple[Numbers, Numbers]:
    """Vectors as rows of 64 bits, and their lengths; one without a length is similar to nothing."""
    import numpy as np

    rows: Numbers = np.stack(vectors).astype(np.float64)
    lengths: Numbers = np.sqrt((rows * rows).sum(axis=1))
    return rows, np.where(lengths > 0, lengths, 1.0)
