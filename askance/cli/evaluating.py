"""One `askance eval run`: its options, its task, its models, its run."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from askance.cli.evaluated import figures_text, run_form
from askance.cli.exits import INTERRUPTED, OK, SOME
from askance.cli.measuring import Watching
from askance.cli.taking import options_of
from askance.errors import UsageError
from askance.evals.catalog import find_task
from askance.evals.choosing import limited, read_ids, with_ids
from askance.evals.controls import controlled
from askance.evals.evaluation import LEDGER, aevaluate, configuration_of, place_of
from askance.evals.plan import plan_run
from askance.evals.predicting import Batching, Turn
from askance.prompts import overlaid

if TYPE_CHECKING:
    from pathlib import Path

    from askance.cli.workspace import Calls, CommandWorkspace
    from askance.evals import Convention, Run, Task
    from askance.evals.tasks import Definition
    from askance.models import Engine, Purse
    from askance.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The options of one `askance eval run`; None is not given."""

    task: str
    given: Mapping[str, Any]
    """`data`, `vlm`, `llm` and `context`, which only a task can take."""
    limit: int | None
    ids: Path | None
    seed: int | None
    epochs: int
    own: Sequence[str]
    """Options of the task, as `name=value`."""
    control: str | None
    convention: Convention
    label: str | None
    batch: bool
    out: Path | None
    as_json: bool


def evaluate_by(asked: Evaluation, calls: Calls) -> int:
    """Runs it; returns the exit code.

    Raises:
        UsageError: the options contradict each other, or name what is not there.
        StoreError: the records or the run folder cannot be opened.
        CallError: no call can succeed.
    """
    _check(asked, calls)
    with calls.open() as work:
        _ = work.config  # settings that cannot be used are told of before the task is
        task = _task(asked, find_task(asked.task), work)
        if calls.plan:
            return asyncio.run(_plan(asked, task, work.engine))
        return _Evaluating(asked, task, work).run()


class _Evaluating:
    """A run under way, and what is said of it."""

    def __init__(self, asked: Evaluation, task: Task, work: CommandWorkspace) -> None:
        self._asked = asked
        self._task = task
        self._engine = work.engine
        self._tally = work.tally
        self._place = asked.out or place_of(configuration_of(task, epochs=asked.epochs))
        work.keep_budget(self._place / LEDGER)  # nothing is written there before the run has its folder

    def run(self) -> int:
        """Runs it; returns the exit code."""
        watching = Watching(self._tally, self._engine)
        try:
            run = asyncio.run(self._evaluated(watching))
        except KeyboardInterrupt:
            watching.close()
            self._interrupted(watching)
            return INTERRUPTED
        finally:
            watching.close()
        self._say(run, watching)
        if self._engine.purse is not None:
            asyncio.run(self._say_budget(run, self._engine.purse))
        return OK if run.totals["outcomes"].keys() <= {"answered"} and not run.left else SOME

    async def _evaluated(self, watching: Watching) -> Run:
        asked = self._asked
        batches = None
        if asked.batch:
            from askance.cli.batching import Status

            batches = Batching(told=Status())
        return await aevaluate(
            self._task,
            out=self._place,
            engine=self._engine,
            epochs=asked.epochs,
            convention=asked.convention,
            seed=asked.seed or 0,
            batches=batches,
            told=watching,
        )

    def _say(self, run: Run, watching: Watching) -> None:
        if self._asked.as_json:
            print(json.dumps(run_form(run)))
        else:
            print(figures_text(run))
        watching.say_unanswered(run)
        print(f"{self._tally}\nThe run is in {self._place}.", file=sys.stderr)

    def _interrupted(self, watching: Watching) -> None:
        print(
            f"{watching}\n{self._tally}\nInterrupted. The same command goes on where this one stopped; what is on "
            f"record is not asked again. The run is in {self._place}.",
            file=sys.stderr,
        )

    async def _say_budget(self, run: Run, purse: Purse) -> None:
        """Says what was spent and, where that stopped the run, what is left to do and what it would cost."""
        await asyncio.to_thread(purse.close)
        balance, budget = await asyncio.to_thread(purse.ledger.balance), purse.ledger.budget
        lost = f", {budget.words(balance.lost)} of it by processes that were killed" if balance.lost.calls else ""
        print(f"Of the budget of {budget}, {budget.words(balance.spent)} spent{lost}.", file=sys.stderr)
        if run.left:
            from askance.cli.planning import left_text

            there = {(answer.sample.id, answer.epoch) for answer in run.answers}
            turns = [turn for turn in _turns(self._asked, self._task) if (turn.sample.id, turn.epoch) not in there]
            left = left_text(await plan_run(self._task, turns, self._engine))
            print(
                f"The next call might have passed the budget. {left}\n"
                "The same command with a larger --budget goes on; what is on record is not asked again.",
                file=sys.stderr,
            )


def _task(asked: Evaluation, definition: Definition, work: Workspace) -> Task:
    """The task with the samples that are asked for; what it takes itself is its own affair."""
    options, rest = options_of(asked, definition, work)
    with overlaid(*work.library.overlays):
        task = definition(**options)
    if asked.label is not None:
        task = replace(task, label=asked.label)
    if "ids" in rest:
        task = with_ids(task, read_ids(rest["ids"]))
    if "limit" in rest:
        task = limited(task, rest["limit"])
    if "control" in rest:
        task = controlled(task, rest["control"], seed=asked.seed or 0)
    return task


def _turns(asked: Evaluation, task: Task) -> list[Turn]:
    return [Turn(sample=sample, epoch=epoch) for epoch in range(asked.epochs) for sample in task.samples]


async def _plan(asked: Evaluation, task: Task, engine: Engine) -> int:
    """Prints what the run would ask and cost; returns the exit code."""
    from askance.cli.planning import plan_form, plan_text

    found = await plan_run(task, _turns(asked, task), engine)
    print(json.dumps(plan_form(found, engine)) if asked.as_json else plan_text(found, engine))
    return OK


def _check(asked: Evaluation, calls: Calls) -> None:
    """Refuses options that go with no others."""
    if asked.batch and calls.mode != "auto":
        raise UsageError(
            "`--batch` reads its answers from the records, so it goes with no other mode.",
            hint="Leave one of them out.",
        )
    if calls.mode == "live":
        raise UsageError(
            "`--mode live` leaves answers on record as they are, so no run could keep what was answered.",
            hint="Use `--mode refresh`, which records the new answers.",
        )
