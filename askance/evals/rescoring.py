"""Scoring a run again from its folder alone: another metric, a mended scorer, a check of what was written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from askance.evals.scoring import figures_of, scored
from askance.models import Engine

if TYPE_CHECKING:
    from askance.evals.figures import Figure
    from askance.evals.run import Answer, Run
    from askance.evals.task import Definition


async def rescored(run: Run, definition: Definition) -> tuple[Sequence[Answer], tuple[Figure, ...]]:
    """The scores and figures of `run` by the code of today; nothing is asked, the folder is not touched.

    Raises:
        UsageError: the definition brings its scoring only with its data.
        ReplayMiss: a similarity or a verdict that the scoring needs is not among the run's records.
    """
    engine = Engine(mode="replay", records=run.records)
    scoring = definition.scored(engine, run.configuration["options"])
    answers = [await scored(answer, scoring) for answer in run.answers]
    return answers, figures_of(answers, scoring, convention=run.convention, seed=run.seed)
