"""Running a run's chain again against the run's own records: what would be answered now, and what asked anew."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from askance.chains.stream import in_order
from askance.evals.run_folder import PROMPTS
from askance.evals.solving import solved
from askance.models import Engine, drawing
from askance.models.described import described_model
from askance.prompts import overlaid

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from askance.evals.run import Answer, Run
    from askance.evals.solving import Solver
    from askance.evals.tasks import Definition
    from askance.evals.values import Prediction

Change = Literal["same", "different", "asked anew"]
"""The prediction is equal; another one is read from the same records; a request is not on record."""

UNDER_WAY = 16
"""Samples under way at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """One sample of a run, run again."""

    was: Answer
    now: Prediction

    @property
    def change(self) -> Change:
        """What became of it."""
        if any(link.get("error") == "ReplayMiss" for link in self.now.links.values()):
            return "asked anew"
        was, now = self.was.prediction.form(), self.now.form()
        del was["meta"], now["meta"]
        return "same" if was == now else "different"


def solver_of(run: Run, definition: Definition) -> Solver:
    """The run's solver over the run's own records, which asks nobody.

    Raises:
        UsageError: the definition makes its solver only with its data, or the run does not describe its models.
    """
    engine = Engine(mode="replay", records=run.records)
    models = {role: described_model(form, engine) for role, form in run.configuration["models"].items()}
    return definition.solved_by(models, {**run.configuration["options"], "engine": engine})


async def rerun(run: Run, definition: Definition, *, own_prompts: bool = False) -> AsyncGenerator[Rerun, None]:
    """Every sample of `run`, run again by the code of today, in the order of `run.answers`.

    Pictures are not needed: they are known by their digests.

    Args:
        run: with its records.
        definition: of its task.
        own_prompts: whether it is asked with the prompts that the run has kept, not with those of today.

    Raises:
        UsageError: the run cannot be run again without its data.
    """
    kept = run.path / PROMPTS
    with overlaid(kept) if own_prompts and kept.is_dir() else nullcontext():
        solver = solver_of(run, definition)

    async def again(answer: Answer) -> Rerun:
        with drawing(answer.epoch):
            return Rerun(was=answer, now=await solved(solver, answer.sample))

    async for each in in_order(again, run.answers, room=lambda: UNDER_WAY):
        yield each
