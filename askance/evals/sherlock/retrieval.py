"""The tasks over chunks: which of a thousand inferences belongs to a region, and which of twenty.

The validation corpus is cut into 23 chunks. In retrieval (section 4.1) each region of a chunk is held against each
inference of it. The figures are the mean rank of the true inference among those of a region, that of the true region
among those of an inference, and how often the true inference is alone in the first place (P@1); each is the mean over
chunks.

Inferences that stand in a chunk twice have equal scores, so that none of them is ever alone in the first place: `P@1
ceiling` is the best that can be had. An inference about the same picture is often true as well; `P@1, other pictures`
leaves those out.

In the task of pools each region has a pool of its own: its inference, and others of its chunk that are about other
pictures, drawn by the seed. This is no task of the paper: among 20 a rank says nothing about one among a thousand, so
its figures stand beside no official ones. It lets chat models be compared with each other, and with an encoder over the
same pools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from pydantic import Field
from typing_extensions import override

from askance.amounts import many
from askance.errors import BadData, UsageError
from askance.evals.metric import mean
from askance.evals.part import Question
from askance.evals.sherlock.layout import CHUNKS
from askance.evals.sherlock.leaderboard import hidden_instances
from askance.evals.sherlock.measures import retrieval_rank
from askance.evals.sherlock.pools import PLACE
from askance.evals.sherlock.region_reranker import RerankingModel
from askance.evals.sherlock.region_solver import MISSING
from askance.evals.sherlock.task import RegionText, SherlockTask, check_text, facts_of, text_of, text_words
from askance.evals.suite.breakdown import over_folds
from askance.evals.suite.selection import Subset
from askance.evals.suite.shuffle import random_order, shuffled

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.metric import Metric
    from askance.evals.sample import Prediction, Sample, Score
    from askance.evals.scorer import Scorer
    from askance.evals.sherlock.instance import Instance
    from askance.evals.sherlock.task import Scores

ChunkChoice: TypeAlias = Literal["all"] | int

TO_TEXT, TO_REGION, FIRST = "rank im→txt", "rank txt→im", "P@1"
ELSEWHERE, CEILING, CHANCE, CHANCE_RANK = "P@1, other pictures", "P@1 ceiling", "P@1 chance", "rank chance"
CHUNK = "chunk"


class ChunkTask(SherlockTask):
    """A task over regions of chunks, which are held against inferences or clues."""

    chunk: ChunkChoice = "all"
    """One of the 23 chunks, from 0; or all."""
    text: RegionText = "inference"
    """What is held against the regions: inferences, or the clues, which say what is seen there (Table 3)."""

    @override
    def words(self) -> tuple[str, ...]:
        one = () if self.chunk == "all" else (f"chunk {self.chunk}",)
        return (*one, *text_words(self.text), *super().words())

    @cached_property
    def chunk_instances(self) -> tuple[Instance, ...]:
        """The regions of the chunks of the validation corpus, each with its inference.

        Raises:
            BadData: a chunk is not there.
        """
        chunks = self.dataset.chunks if self.chunk == "all" else (self.chunk,)
        return tuple(instance for chunk in chunks for instance in self.dataset.of_chunk(chunk))

    def chosen_instances(self, note: str) -> Subset[Instance]:
        """Those that are asked about, as of `chosen`; `note` says of which."""
        return self.chosen(
            Subset(items=self.chunk_instances, noun="regions", notes=(note,)),
            names=lambda instance: (instance.id, instance.url),
            url=lambda instance: instance.url,
        )


class Retrieval(ChunkTask):
    """Which inference of a chunk belongs to a region, and which region to an inference."""

    name = "sherlock/retrieval"
    headlines = (TO_TEXT, TO_REGION, FIRST)

    split: Literal["val", "test"] = "val"
    """The validation corpus; or the leaderboard's test set, which hides what belongs together."""

    model: RerankingModel = RerankingModel()  # pyright: ignore[reportIncompatibleVariableOverride]  # never set
    """The model that is asked."""

    @override
    def words(self) -> tuple[str, ...]:
        return (*(("test",) if self.split == "test" else ()), *super().words())

    @override
    def question(self) -> Question:
        return Question(name=self.name, pooled=CHUNK, seed=self.seed)

    @cached_property
    @override
    def subset(self) -> Subset[Instance]:
        instances = self.chunk_instances
        chunks = [*dict.fromkeys(instance.chunk for instance in instances)]
        hidden = " of test; which inference belongs to which is hidden" if self.split == "test" else ""
        return self.chosen_instances(f"{len(instances):,} regions of {_named(chunks)}{hidden}")

    @cached_property
    @override
    def chunk_instances(self) -> tuple[Instance, ...]:
        """The regions of the chunks, each with its inference; in the test set with any of the chunk.

        Raises:
            BadData: a chunk is not there.
            UsageError: the test set has no clues.
        """
        if self.split == "val":
            return super().chunk_instances
        check_text(self.text)
        data = self.dataset
        known = [chunk for split, task, chunk in data.files.leaderboard if (split, task) == ("test", "retrieval")]
        asked = (known or [0]) if self.chunk == "all" else [self.chunk]
        chunks = (data.leaderboard("retrieval", "test", chunk) for chunk in asked)  # one at a time: each is large
        return tuple(instance for chunk in chunks for instance in hidden_instances(chunk))

    @override
    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), *self._smaller())

    def _smaller(self) -> Iterator[str]:
        """A note on chunks that are not whole."""
        asked = Counter(instance.chunk for instance in self.subset.items)
        whole = Counter(instance.chunk for instance in self.chunk_instances)
        smaller = [chunk for chunk, count in asked.items() if count < whole[chunk]]
        if smaller:
            first = smaller[0]
            yield (
                f"Not comparable with official figures, since the pools are smaller: chunk {first}, for one, has "
                f"{asked[first]:,} of its {whole[first]:,} regions"
            )

    @override
    def regions(self) -> Iterator[Sample]:
        pools: dict[Any, list[Instance]] = {}
        for instance in self.subset.items:
            pools.setdefault(instance.chunk, []).append(instance)
        for chunk, pool in pools.items():
            pictures, texts = dict[str, list[int]](), dict[str, list[int]]()
            for place, instance in enumerate(pool):
                pictures.setdefault(instance.url, []).append(place)
                texts.setdefault(text_of(instance, self.text), []).append(place)
            for place, instance in enumerate(pool):
                text = text_of(instance, self.text)
                whole = {"place": place, "same picture": pictures[instance.url], "same text": texts[text]}
                yield self.sample_of(
                    instance.id,
                    instance.url,
                    [instance.boxes],
                    inferences=[text],
                    target={"pool": len(pool), **(whole if self.split == "val" else {})},
                    group=group_of(chunk, instance.url),
                    tags={CHUNK: chunk, PLACE: place, **facts_of(instance)},
                )

    # --- the figures ---

    @override
    def shape_of(self, sample: Sample) -> tuple[int, int]:
        return 2, sample.target["pool"]

    @override
    def metrics(self) -> Sequence[Metric]:
        return (
            mean(TO_TEXT, percent=False, better="lower", summary="mean rank of the true inference of a region"),
            mean(TO_REGION, percent=False, better="lower", summary="mean rank of the true region of an inference"),
            mean(FIRST, summary="share of regions whose true inference is alone in the first place"),
            mean(ELSEWHERE, summary="the same without other inferences about the same picture"),
            mean(CEILING, better="neither", summary="P@1 if every true inference had the best score, given its twins"),
            mean(CHANCE, better="neither", summary="P@1 of random scores"),
            mean(CHANCE_RANK, percent=False, better="neither", summary="mean rank of random scores"),
        )

    @cached_property
    def chunks(self) -> Sequence[int]:
        """The chunks that are asked; a run keeps them."""
        return tuple(self.kept_or("chunks", lambda: sorted({sample.tags[CHUNK] for sample in self.samples()})))

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "chunks": [*self.chunks]}

    @override
    def scorer(self) -> Scorer:
        scorer = replace(super().scorer(), notes_on_scores=_notes_on_scores)
        return over_folds(scorer, self.chunks, *self.headlines, CEILING, count=CHUNKS, tag=CHUNK)

    @override
    def _scores_of(self, sample: Sample, prediction: Prediction) -> Scores:
        """The scores of a sample; those of regions that cannot be shown are NaN.

        Raises:
            UsageError: they are no such scores, or the trace names other places than those of other regions.
        """
        import numpy as np

        scores = super()._scores_of(sample, prediction)
        given = prediction.trace.get(MISSING, [])
        missing = cast("list[Any]", given if isinstance(given, list) else [given])
        places = range(sample.target["pool"])
        if any(place not in places or place == sample.tags[PLACE] for place in missing):
            raise UsageError(
                f"The trace of {sample.id!r} lists as missing what are no places of other regions.",
                hint="Run the sample again.",
            )
        scores = scores.copy()
        scores[1, missing] = np.nan
        return scores

    @override
    def values_of(self, sample: Sample, scores: Scores) -> Mapping[str, float]:
        import numpy as np

        place: int = sample.target["place"]
        has_score = ~np.isnan(scores[1])
        to_text = retrieval_rank(scores[0], place)
        to_region = retrieval_rank(scores[1][has_score], int(has_score[:place].sum()))
        others = [other for other in sample.target["same picture"] if other != place]
        elsewhere = np.delete(scores[0], others)
        own = place - sum(1 for other in others if other < place)
        return {
            TO_TEXT: to_text,
            TO_REGION: to_region,
            FIRST: float(to_text == 1),
            ELSEWHERE: float(retrieval_rank(elsewhere, own) == 1),
        }

    @override
    def bounds_of(self, sample: Sample, *, right: bool) -> Mapping[str, float]:
        if not right:
            last = float(sample.target["pool"])
            return {TO_TEXT: last, TO_REGION: last, FIRST: 0.0, ELSEWHERE: 0.0}
        twins: Sequence[int] = sample.target["same text"]
        alone = {*twins} <= {*sample.target["same picture"]}
        return {
            TO_TEXT: (len(twins) + 1) / 2,
            TO_REGION: 1.0,
            FIRST: float(len(twins) == 1),
            ELSEWHERE: float(alone),
        }

    @override
    def given_values(self, sample: Sample) -> Mapping[str, float] | None:
        if "place" not in sample.target:
            return None
        pool: int = sample.target["pool"]
        return {CEILING: float(len(sample.target["same text"]) == 1), CHANCE: 1 / pool, CHANCE_RANK: (pool + 1) / 2}


def _notes_on_scores(scores: Sequence[Score]) -> Iterator[str]:
    """A note on ranks among fewer regions than a pool has."""
    missing = [score.notes[MISSING] for score in scores if MISSING in score.notes]
    if missing:
        yield (
            f"{TO_REGION} of {many(len(missing), 'sample')} leaves out regions that cannot be shown, up to "
            f"{max(missing):,} of a pool; a rank among fewer is better, here by {max(missing):,} at most"
        )


def group_of(chunk: int | None, url: str) -> str:
    """The group of the samples of an image within a chunk."""
    return f"chunk {chunk}, {url}"


def _named(chunks: Sequence[int | None]) -> str:
    return f"chunk {chunks[0]}" if len(chunks) == 1 else f"{len(chunks)} chunks"


# --- pools ---


class InferencePool(ChunkTask):
    """Which of 20 inferences belongs to a region; no task of the paper."""

    name = "sherlock/pool"
    headlines = (TO_TEXT, FIRST)

    count: int = Field(default=20, ge=2, le=100)
    """How many inferences a pool has."""

    @override
    def question(self) -> Question:
        return Question(name=self.name, count=self.count, seed=self.seed)

    @override
    def words(self) -> tuple[str, ...]:
        return (f"pools of {self.count}", *super().words())

    @override
    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), f"Not comparable with retrieval: each region has a pool of {self.count} inferences")

    @cached_property
    @override
    def subset(self) -> Subset[Instance]:
        return self.chosen_instances(f"{len(self.chunk_instances):,} regions")

    @override
    def regions(self) -> Iterator[Sample]:
        for instance in self.subset.items:
            own = text_of(instance, self.text)
            pool = shuffled([own, *self._others(instance, own)], seed=self.seed, key=instance.id)
            yield self.sample_of(
                instance.id,
                instance.url,
                [instance.boxes],
                inferences=pool,
                target={"place": pool.index(own)},
                tags={CHUNK: instance.chunk, **facts_of(instance)},
            )

    def _others(self, instance: Instance, own: str) -> Sequence[str]:
        """Different texts about other pictures of the chunk.

        Raises:
            BadData: the chunk has too few.
        """
        others = dict[str, None]()
        for each in random_order(self.dataset.of_chunk(instance.chunk or 0), seed=self.seed, key=instance.id):
            if each.url != instance.url and (text := text_of(each, self.text)) != own:
                others.setdefault(text)
            if len(others) == self.count - 1:
                return [*others]
        raise BadData(
            f"Chunk {instance.chunk} has no pool of {self.count} for {instance.id!r}: {len(others)} other inferences "
            "are about other pictures.",
            hint="Give a smaller -T count=….",
        )

    @override
    def metrics(self) -> Sequence[Metric]:
        return (
            mean(FIRST, summary="share of regions whose inference is alone in the first place of its pool"),
            mean(TO_TEXT, percent=False, better="lower", summary="mean rank of the true inference of a region"),
            mean(CHANCE_RANK, percent=False, better="neither", summary="mean rank by lot"),
        )

    @override
    def values_of(self, sample: Sample, scores: Scores) -> Mapping[str, float]:
        rank = retrieval_rank(scores[0], sample.target["place"])
        return {FIRST: float(rank == 1), TO_TEXT: rank}

    @override
    def bounds_of(self, sample: Sample, *, right: bool) -> Mapping[str, float]:
        return {FIRST: float(right), TO_TEXT: 1.0 if right else float(self.count)}

    @override
    def given_values(self, sample: Sample) -> Mapping[str, float]:
        return {CHANCE_RANK: (self.count + 1) / 2}
