"""Running a run's chain again against the run's own records: what would be answered now, and what asked anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from askance.chains.stream import in_order
from askance.evals.run_folder import PROMPTS, links_of_today
from askance.evals.solving import solved
from askance.models import Engine, use_draw
from askance.models.factory import model_from_form
from askance.prompts import overlay_prompts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from askance.chat import JsonObject
    from askance.evals.run import Answer, Run
    from askance.evals.solving import Solver
    from askance.evals.tasks import Definition
    from askance.evals.values import Prediction

Change = Literal["same", "different", "asked anew", "unrecorded"]
"""The prediction is equal; another one is read from the same records; a request is not on record; it is no answer, and
the call that gave none has left no record."""

UNDER_WAY = 16
"""Samples under way at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """One sample of a run, run again."""

    was: Answer
    now: Prediction
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Links that the run may know by an earlier name, each with its name of today."""

    @property
    def change(self) -> Change:
        """What became of it."""
        was, now = _named_as(self.was.prediction, self.now, self.names), self.now
        missed = {name for name, link in now.links.items() if link.get("error") == "ReplayMiss"}
        if any(was.links.get(name, _NONE)["outcome"] not in _WITHOUT_RECORD for name in missed):
            return "asked anew"
        forms = [_form(each, missed, named=was.links.keys() == self.was.prediction.links.keys()) for each in (was, now)]
        if forms[0] != forms[1]:
            return "different"
        return "same" if was.answered or not missed else "unrecorded"


_NONE: Mapping[str, Any] = {"outcome": "answered"}
_WITHOUT_RECORD = frozenset({"failed", "skipped"})
"""Outcomes of calls that leave no record."""


def _named_as(was: Prediction, now: Prediction, names: Mapping[str, str]) -> Prediction:
    """`was` with the names that links have in `now`."""
    return replace(
        was, links={name if name in now.links else names.get(name, name): link for name, link in was.links.items()}
    )


def _form(prediction: Prediction, missed: Collection[str], *, named: bool) -> JsonObject:
    """All of a prediction that stays when it is made again.

    Args:
        prediction: as it was or is.
        missed: links whose calls are not made.
        named: whether links have the names that they had.
    """
    form = prediction.form()
    del form["meta"]
    if missed:  # the words for what failed are of its time
        form["outcome"], form["reason"] = prediction.answered, None
    if missed or not named:
        form["links"] = {
            name: (link["outcome"], link["calls"]) for name, link in prediction.links.items() if name not in missed
        }
    if not named:  # what links say stands elsewhere now; the answer is the same or not
        del form["trace"]
    return form


def solver_of(run: Run, definition: Definition) -> Solver:
    """The run's solver over the run's own records, which asks nobody.

    Raises:
        UsageError: the definition makes its solver only with its data, or the run does not describe its models.
    """
    engine = Engine(mode="replay", records=run.records)
    models = {role: model_from_form(form, engine) for role, form in run.configuration["models"].items()}
    samples = list({answer.sample.id: answer.sample for answer in run.answers}.values())
    return definition.solved_by(models, {**run.configuration["options"], "engine": engine, "samples": samples})


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
    with overlay_prompts(kept) if own_prompts and kept.is_dir() else nullcontext():
        solver = solver_of(run, definition)

    names = links_of_today(run.configuration)

    async def again(answer: Answer) -> Rerun:
        with use_draw(answer.epoch):
            return Rerun(was=answer, now=await solved(solver, answer.sample), names=names)

    async for each in in_order(again, run.answers, room=lambda: UNDER_WAY):
        yield each
