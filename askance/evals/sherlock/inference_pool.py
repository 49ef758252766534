"""The task of pools: which of some inferences belongs to a region, where a whole chunk would be too many to ask about.

Each region has a pool of its own: its inference, and others of its chunk that are about other pictures, drawn by the
seed. This is no task of the paper: among 20 a rank says nothing about one among a thousand, so its figures stand beside
no official ones. It lets chat models be compared with each other, and with an encoder over the same pools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import Field
from typing_extensions import override

from askance.errors import BadData
from askance.evals.metric import mean
from askance.evals.part import Question
from askance.evals.sherlock.measures import retrieval_rank
from askance.evals.sherlock.retrieval import CHANCE_RANK, CHUNK, FIRST, TO_TEXT, ChunkTask
from askance.evals.sherlock.task import facts_of, text_of
from askance.evals.suite.shuffle import random_order, shuffled

if TYPE_CHECKING:
    from askance.evals.metric import Metric
    from askance.evals.sample import Sample
    from askance.evals.sherlock.instance import Instance
    from askance.evals.sherlock.task import Scores
    from askance.evals.suite.selection import Subset


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
        return self._values(retrieval_rank(scores[0], sample.target["place"]))

    @override
    def bounds_of(self, sample: Sample, *, right: bool) -> Mapping[str, float]:
        return self._values(1.0 if right else float(self.count))

    def _values(self, rank: float) -> Mapping[str, float]:
        return {FIRST: float(rank == 1), TO_TEXT: rank, CHANCE_RANK: (self.count + 1) / 2}
