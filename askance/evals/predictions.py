"""The stream of predictions: many samples under way, online or by batches, out in the order of the samples."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from askance import chains
from askance.concurrency import map_in_order
from askance.errors import UsageError
from askance.evals.sample import Prediction, Sample
from askance.evals.solver import ChainSolver, plain, solved
from askance.models import use_draw

if TYPE_CHECKING:
    from pathlib import Path

    from askance.evals.solver import Solver
    from askance.models import Engine, Model
    from askance.models.batch.batches import BatchProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One sample in one epoch."""

    sample: Sample
    epoch: int

    @property
    def name(self) -> str:
        """What tells it from the other turns of a run."""
        return f"{self.sample.id}\n{self.epoch}"


Predictions: TypeAlias = AsyncGenerator[tuple[Turn, Prediction], None]
Stream: TypeAlias = Callable[[Sequence[Turn]], Predictions]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """That a run asks through the batch interface."""

    folder: Path | None = None
    """For what is under way; by default in the run's folder."""
    on_progress: Callable[[BatchProgress], None] | None = None
    """Hears of every step."""


def models_of(solver: Solver) -> list[Model]:
    """The models that a solver asks, each once, as far as it says so."""
    if isinstance(solver, ChainSolver):
        return list(dict.fromkeys(node.model for node in solver.chain.nodes))
    return list(getattr(solver, "models", ()))


def online(solver: Solver, engine: Engine) -> Stream:
    """Asks as many at once as keep the models busy; begins no more when the budget is used up."""

    async def predict(turn: Turn) -> tuple[Turn, Prediction]:
        with use_draw(turn.epoch):
            return turn, await solved(solver, turn.sample)

    def stream(turns: Sequence[Turn]) -> Predictions:
        guard = engine.budget
        return map_in_order(
            predict,
            takewhile(lambda _: guard is None or not guard.used_up, turns),
            room=lambda: engine.places,
        )

    return stream


def in_batches(solver: Solver, folder: Path, on_progress: Callable[[BatchProgress], None] | None = None) -> Stream:
    """Asks by the provider's batch interface, an epoch after the other.

    Args:
        solver: a chain.
        folder: for what is under way.
        on_progress: of every step.

    Raises:
        UsageError: the solver is no chain, so that nobody can tell what it will ask.
    """
    if not isinstance(solver, ChainSolver):
        raise UsageError("Only a chain can be asked by batches.", hint="Leave `--batch` out.")

    async def stream(turns: Sequence[Turn]) -> Predictions:
        for epoch in sorted({turn.epoch for turn in turns}):
            some = [turn for turn in turns if turn.epoch == epoch]
            inputs = [solver.given(turn.sample) for turn in some]
            batches = chains.read_in_batches(solver.chain, inputs, folder=folder / str(epoch), on_progress=on_progress)
            async with aclosing(batches) as readings:
                for turn in some:
                    with use_draw(epoch):  # for the readings alone: what scores them is of no draw
                        reading = await anext(readings)
                    yield turn, plain(solver.prediction(reading, turn.sample))
        await asyncio.to_thread(_remove_empty, folder)

    return stream


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # what is not empty is still needed
        folder.rmdir()
