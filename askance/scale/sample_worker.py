"""A worker's part of an evaluation: it has a block of samples answered, so that every call is on record.

The process that evaluates then finds each answer there, and its run is that of one process.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from askance.concurrency import map_in_order
from askance.errors import FATAL, AskanceError
from askance.evals.analysis.asked_cost import sum_of
from askance.evals.job import FirstFailure, affordable
from askance.evals.solver import solved
from askance.models import run_sync, use_draw
from askance.scale.coordinator import share
from askance.scale.shard_worker import engine_of, failed_receipt, this_worker
from askance.scale.shards import TRIES, Receipt

if TYPE_CHECKING:
    from askance.evals.runner import SampleEpoch
    from askance.evals.sample import Prediction
    from askance.evals.solver import Solver
    from askance.models import Engine, Model
    from askance.replay import Ledger
    from askance.scale.coordinator import Ask
    from askance.scale.workers import Workers

_log = logging.getLogger("askance")

BLOCK = 32
"""Samples that a worker is given at a time."""


@dataclass(frozen=True, kw_only=True)
class SampleReader:
    """Has blocks of samples answered, in any process; it travels to workers as a pickle, without keys of models."""

    solver: Solver
    blocks: Sequence[Sequence[SampleEpoch]]
    ask: Ask | None = None
    """Asks the coordinator of the work; None where there is none."""

    @property
    def tries(self) -> int:
        """How often a block may end its worker."""
        return TRIES

    @property
    def models(self) -> Iterable[Model]:
        """Those that are asked."""
        return self.solver.models

    def asking(self, ask: Ask, /) -> SampleReader:
        """The reader, for workers that ask this coordinator."""
        return replace(self, ask=ask)

    def __call__(self, number: int, /) -> Receipt:
        """The receipt of a block; what a model, the disk or the records do stands in it."""
        try:
            return run_sync(self._read(number))
        except AskanceError as error:
            return failed_receipt(number, error)

    async def _read(self, number: int) -> Receipt:
        block, engine, first = self.blocks[number], self._engine, FirstFailure()
        outcomes, calls, costs, begun = Counter[str](), 0, list[float | None](), time.monotonic()

        async def predict(each: SampleEpoch) -> Prediction:
            with use_draw(each.epoch):
                return await solved(self.solver, each.sample)

        try:
            answers = map_in_order(predict, affordable(block, engine), room=lambda: engine.places if engine else BLOCK)
            async with aclosing(answers):
                async for now in answers:
                    meta = now.meta
                    if first.accepts(now.links, answered=now.answered, calls=meta.get("calls"), reason=now.reason):
                        outcomes[now.outcome] += 1
                        calls += meta.get("calls", 0)
                        costs.append(meta.get("cost", 0.0))
        finally:
            for model in self.models:
                await model.aclose()
        return Receipt(
            shard=number,
            worker=this_worker(),
            left=len(block) - outcomes.total(),
            pictures=outcomes.total(),
            outcomes=dict(outcomes),
            calls=calls,
            dollars=sum_of(costs),
            seconds=time.monotonic() - begun,
            ended=time.time(),
        )

    @cached_property
    def _engine(self) -> Engine | None:
        engine = self.solver.engine or engine_of(self.models)
        if engine is not None and self.ask is not None:
            share(engine, self.ask)
        return engine


def ask_samples(
    solver: Solver,
    sample_epochs: Sequence[SampleEpoch],
    workers: Workers,
    *,
    ledger: Ledger | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> list[Receipt]:
    """Has workers answer samples, so that every call is on record; one that fails is asked again by the evaluation.

    Args:
        solver: answers a sample.
        sample_epochs: what is to be answered.
        workers: that have it answered side by side.
        ledger: of the budget, in a file; None where there is none, or the records bring one that is shared.
        on_progress: called with the number of samples that are answered.

    Returns:
        A receipt of each block that was read.

    Raises:
        UsageError: the solver cannot be sent to workers, or not be made there.
        CallError: one block ended with what all others would end with, too.
    """
    blocks = [sample_epochs[start : start + BLOCK] for start in range(0, len(sample_epochs), BLOCK)]
    reader = SampleReader(solver=solver, blocks=blocks)
    ended: list[Receipt] = []
    with closing(workers.receipts(reader, range(len(blocks)), ledger=ledger)) as receipts:
        for receipt in receipts:
            ended.append(receipt)
            on_progress(sum(each.pictures for each in ended))
            if (kind := FATAL.get(receipt.kind)) is not None:
                raise kind(receipt.error or "", hint=f"So ended a block of samples on {receipt.worker}.")
            if receipt.error:
                _log.warning("A worker (%s): %s The others are left to this process.", receipt.worker, receipt.error)
            if receipt.left or receipt.error:
                break
    return ended
