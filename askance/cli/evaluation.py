"""One `askance eval run`: its options, its task, its run, and what is seen of it while it goes on."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from askance.cli.exits import INTERRUPTED, OK, SOME
from askance.cli.figures import figures_text, run_form
from askance.cli.output import say_budget, table_of
from askance.cli.progress import Progress, calls_state
from askance.errors import UsageError
from askance.evals.catalog import find_task
from askance.evals.controls import controlled
from askance.evals.evaluation import LEDGER, aevaluate, configuration_of, place_of
from askance.evals.plan import plan_run
from askance.evals.predictions import BatchOptions, Turn
from askance.evals.suite.selection import read_names
from askance.evals.tables import shown_figure
from askance.evals.task import ROLES, WORKSPACE, kinds_of
from askance.prompts import overlay_prompts
from askance.workspace import Role

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from askance.chains import Plan
    from askance.cli.eval import EvaluationOptions
    from askance.cli.options import Calls
    from askance.cli.tally import Tally
    from askance.cli.workspace import CommandWorkspace
    from askance.evals import Evaluation, Run
    from askance.evals.evaluation import RunProgress as Done
    from askance.evals.task import Task
    from askance.models import Engine
    from askance.workspace import Workspace

_GENERAL = ("limit", "ids", "control")
"""Options that any task can be given: those that it does not take itself are seen to for it."""


def options_of(asked: EvaluationOptions, task: type[Task], work: Workspace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options for the task's function, and those that are left to be seen to.

    Raises:
        UsageError: an option is given that the task does not take, or one that cannot be read.
    """
    takes = task.takes()
    options = asked.for_task
    options |= _own(asked, takes)
    general = {name: value for name in _GENERAL if (value := getattr(asked, name)) is not None}
    options |= {name: value for name, value in general.items() if name in takes}
    if asked.seed is not None and "seed" in takes:
        options["seed"] = asked.seed
    for role in get_args(Role):
        if role not in options and role in takes and _wanted(takes[role], asked) and (name := work.named(role)):
            options[role] = name
    options |= {role: work.model(options[role]) for role in ROLES if options.get(role) is not None}
    shared = dict(zip(WORKSPACE, (work.engine, work.library), strict=True))
    options |= {name: value for name, value in shared.items() if name in task.model_fields}
    return options, {name: value for name, value in general.items() if name not in takes}


def _wanted(option: FieldInfo, asked: EvaluationOptions) -> bool:
    """Whether the settings file's model goes in: where there must be one, or where none is named at all."""
    named = any(role in asked.for_task for role in ROLES)
    return option.is_required() or not named


def _own(asked: EvaluationOptions, takes: Mapping[str, FieldInfo]) -> Mapping[str, Any]:
    """The options of the task that `-T` names."""
    found: dict[str, Any] = {}
    for text in asked.option or ():
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise UsageError(f"{text!r} is no option of a task.", hint="Write `-T name=value`.")
        found[name] = _value(value, kinds_of(takes[name]) if name in takes else ())
    return found


def _value(text: str, kinds: Collection[Any]) -> Any:
    """What a text stands for where one of `kinds` is taken: JSON, or else the text itself."""
    if Path in kinds or (str in kinds and not {int, float, bool} & {*kinds}):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


_SHARE = 20
"""The running score is worked out again when so many times as long has gone by as that takes."""


class Watching:
    """Says how far an evaluation is, beside its running score.

    Args:
        tally: the counts of calls.
        engine: of the run, whose models on this machine say what they do.
    """

    def __init__(self, tally: Tally, engine: Engine) -> None:
        self._calls = calls_state(tally, engine)
        self._done: Done | None = None
        self._score = ""
        self._next = 0.0
        self._progress = Progress("samples", state=lambda: self.line)

    def __call__(self, done: Done) -> None:
        self._done = done
        self._score_anew(done)
        self._progress.update(done.done, done.total)

    def __str__(self) -> str:
        if self._done is None:
            return "No sample is done."
        outcomes = _outcomes(self._done)
        return f"{self._done.done:,} of {self._done.total:,} samples: {outcomes or 'none'}"

    @property
    def line(self) -> str:
        """Running score, samples without an answer, calls and cost, as a bar has room for."""
        unanswered = "" if self._done is None else _outcomes(self._done, without="answered")
        return " · ".join(part for part in (self._score, unanswered, self._calls()) if part)

    def close(self) -> None:
        """Says no more of the progress."""
        self._progress.close()

    def say_unanswered(self, run: Run) -> None:
        """Lists on stderr the samples without an answer, and the ways out."""
        outcomes = run.totals.get("outcomes", {})
        lines = [_line(answer) for answer in run.unanswered()] if outcomes.keys() - {"answered"} else []
        if lines:
            print(f"\n{table_of(lines)}\n", file=sys.stderr)

    def _score_anew(self, progress: Done) -> None:
        start = time.monotonic()
        if start < self._next:
            return
        figure = progress.running()
        self._score = "" if figure is None else f"{progress.metric} {shown_figure(figure)}"
        end = time.monotonic()
        self._next = end + max(0.5, _SHARE * (end - start))


def _outcomes(progress: Done, *, without: str = "") -> str:
    counts = sorted(progress.outcomes.items())
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts if outcome != without)


def _line(answer: Any) -> dict[str, Any]:
    """An answer as the table of what has none takes it."""
    prediction = answer.prediction
    name = answer.sample.id if not answer.epoch else f"{answer.sample.id} (epoch {answer.epoch})"
    # A solver's own link repeats the prediction, whose reason is the better one.
    links = {name: form for name, form in prediction.links.items() if name != "solver"}
    return {"image": name, "outcome": prediction.outcome, "reason": prediction.reason, "links": links}


def evaluate_by(asked: EvaluationOptions, calls: Calls) -> int:
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

    def __init__(self, asked: EvaluationOptions, task: Evaluation, work: CommandWorkspace) -> None:
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
        if self._engine.budget is not None:
            asyncio.run(say_budget(self._engine.budget, self._left(run) if run.left else None))
        return OK if run.totals["outcomes"].keys() <= {"answered"} and not run.left else SOME

    async def _evaluated(self, watching: Watching) -> Run:
        asked = self._asked
        batches = None
        if asked.batch:
            from askance.cli.output import Status

            batches = BatchOptions(on_progress=Status())
        return await aevaluate(
            self._task,
            out=self._place,
            engine=self._engine,
            epochs=asked.epochs,
            convention=asked.convention.value if asked.convention else "wrong",
            seed=asked.seed or 0,
            batches=batches,
            on_progress=watching,
        )

    def _say(self, run: Run, watching: Watching) -> None:
        if self._asked.as_json:
            print(json.dumps(run_form(run)))
        else:
            print(figures_text(run))
        watching.say_unanswered(run)
        print(f"{self._tally}\nThe run is in {self._place}.", file=sys.stderr)

    async def _left(self, run: Run) -> Plan:
        """The plan of what the budget had nothing left for."""
        there = {(answer.sample.id, answer.epoch) for answer in run.answers}
        turns = [turn for turn in _turns(self._asked, self._task) if (turn.sample.id, turn.epoch) not in there]
        return await plan_run(self._task, turns, self._engine)

    def _interrupted(self, watching: Watching) -> None:
        print(
            f"{watching}\n{self._tally}\nInterrupted. The same command goes on where this one stopped; what is on "
            f"record is not asked again. The run is in {self._place}.",
            file=sys.stderr,
        )


def _task(asked: EvaluationOptions, task: type[Task], work: Workspace) -> Evaluation:
    """The task with the samples that are asked for; what it takes itself is its own affair."""
    options, rest = options_of(asked, task, work)
    with overlay_prompts(*work.library.overlays):
        found = task(**options).evaluation()
    if asked.label is not None:
        found = replace(found, label=asked.label)
    if "ids" in rest:
        found = found.with_ids(read_names(rest["ids"]))
    if "limit" in rest:
        found = found.limited(rest["limit"])
    if "control" in rest:
        found = controlled(found, rest["control"], seed=asked.seed or 0)
    return found


def _turns(asked: EvaluationOptions, task: Evaluation) -> list[Turn]:
    return [Turn(sample=sample, epoch=epoch) for epoch in range(asked.epochs) for sample in task.samples]


async def _plan(asked: EvaluationOptions, task: Evaluation, engine: Engine) -> int:
    """Prints what the run would ask and cost; returns the exit code."""
    from askance.cli.output import print_plan

    found = await plan_run(task, _turns(asked, task), engine)
    print_plan(found, engine, as_json=asked.as_json)
    return OK


def _check(asked: EvaluationOptions, calls: Calls) -> None:
    """Refuses options that go with no others."""
    if asked.batch and calls.record_mode != "auto":
        raise UsageError(
            "`--batch` reads its answers from the records, so it goes with no other mode.",
            hint="Leave one of them out.",
        )
    if calls.record_mode == "live":
        raise UsageError(
            "`--mode live` leaves answers on record as they are, so no run could keep what was answered.",
            hint="Use `--mode refresh`, which records the new answers.",
        )
