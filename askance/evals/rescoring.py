"""Scoring a run again from its folder alone: another metric, a mended scorer, a check of what was written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from askance.errors import UsageError
from askance.evals.rerunning import rerun
from askance.evals.run import Run, line_of_answer
from askance.evals.run_folder import READ_BY, SAMPLES, SCORES, amending, write_lines
from askance.evals.scoring import figures_of, scored, unscored_note, write_scores
from askance.models import Engine
from askance.nodes.reply import READERS

if TYPE_CHECKING:
    from askance.evals.figures import Convention, Figure
    from askance.evals.run import Answer
    from askance.evals.tasks import Definition


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """A run after it was scored again, as it lies in its folder."""

    run: Run
    reread: int = 0
    """Samples whose chain was run again over the run's own records."""
    changed: tuple[str, ...] = ()
    """Ids of those that are answered otherwise now."""
    kept: tuple[str, ...] = ()
    """Ids of those that keep what they had, since a call that they would make is not among the records."""


async def rescore(
    run: Run, definition: Definition, *, reread: bool = False, convention: Convention | None = None
) -> Rescored:
    """Scores `run` again by the code of today, in its folder; done twice it changes nothing more.

    Args:
        run: finished or not.
        definition: of its task.
        reread: run the chain again first, over the run's own records, so that a mended parser takes effect.
        convention: what becomes of non-answers; None is what the run has.

    Raises:
        UsageError: the run has no samples, or the definition brings its scoring (or its solver) only with its data.
        ReplayMiss: a similarity or a verdict that the scoring needs is not among the run's records.
        StoreError: another process is writing the folder.
    """
    if not run.answers:
        raise UsageError(f"The run {str(run.path)!r} has no samples yet.", hint="Go on with it: `askance eval run`.")
    with amending(run.path) as change:
        fresh: list[Answer] = []
        changed: list[str] = []
        kept: list[str] = []
        if reread:
            async with aclosing(rerun(run, definition, own_prompts=True)) as again:
                async for each in again:
                    fresh.append(each.was)
                    if each.change in {"asked anew", "unrecorded"}:
                        kept.append(each.was.sample.id)
                    elif each.change == "different":
                        changed.append(each.was.sample.id)
                        fresh[-1] = replace(each.was, prediction=replace(each.now, meta=each.was.prediction.meta))
            if changed:
                write_lines(run.path / SAMPLES, (line_of_answer(answer) for answer in fresh))
        now = run.scored(fresh or run.answers, run.figures)
        answers, figures = await rescored(now, definition, convention=convention)
        write_scores(run.path / SCORES, answers)
        read_by = {READ_BY: READERS} if reread and not kept else {}
        change({**_described(now, definition, answers), **read_by, "figures": [figure.form() for figure in figures]})
    ids = tuple(dict.fromkeys(changed)), tuple(dict.fromkeys(kept))
    return Rescored(run=Run.open(run.path), reread=len(fresh), changed=ids[0], kept=ids[1])


def _described(run: Run, definition: Definition, answers: Sequence[Answer]) -> Mapping[str, Any]:
    """The entries of `run.json` that change beside the figures."""
    scoring = definition.scored(Engine(mode="replay", records=run.records), run.configuration["options"])
    outcomes = Counter(answer.prediction.outcome for answer in answers)
    return {
        "totals": {**run.totals, "samples": len(answers), "outcomes": dict(sorted(outcomes.items()))},
        "notes": [*scoring.notes, *run.data_notes, *unscored_note(answers)],
        **({"origin": dict(definition.origin)} if definition.origin else {}),
    }


async def rescored(
    run: Run, definition: Definition, *, convention: Convention | None = None
) -> tuple[Sequence[Answer], tuple[Figure, ...]]:
    """The scores and figures of `run` by the code of today; nothing is asked, the folder is not touched.

    Raises:
        UsageError: the definition brings its scoring only with its data.
        ReplayMiss: a similarity or a verdict that the scoring needs is not among the run's records.
    """
    engine = Engine(mode="replay", records=run.records)
    scoring = definition.scored(engine, run.configuration["options"])
    answers = [await scored(answer, scoring) for answer in run.answers]
    return answers, figures_of(answers, scoring, convention=convention or run.convention, seed=run.seed)
