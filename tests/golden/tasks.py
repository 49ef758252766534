"""What each packaged task is with each set of its options: its label, what it keeps and notes, its plan, keys, figures.

A case that is refused has the sentence instead.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from askance.errors import AskanceError
from askance.evals import Run, aevaluate
from askance.evals.analysis.rescore import rescored
from askance.evals.controls import controlled
from askance.evals.evaluation import Evaluation
from askance.evals.metric import Figure
from askance.evals.run_plan import planning
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.task import Task, evaluation_of
from askance.evals.task_catalog import packaged
from askance.models import Engine
from askance.replay import MemoryStore
from tests.draws import few_draws
from tests.golden.task_cases import CONTROL, Cases, Options, cases_of
from tests.golden.task_worlds import World

TASKS: Mapping[str, type[Task]] = packaged()
CASES: Mapping[str, Cases] = cases_of(TASKS)
"""By name of the task."""

DIGITS = 8
"""Of a key: enough to tell those of a task apart."""

DRAWS = 20
"""Of an interval, which is held against what it was and told to nobody."""

JsonObject = dict[str, Any]


def file_of(task: str) -> str:
    """The golden file of a task."""
    return f"tasks/{task.replace('/', '-')}.json"


def outcomes(task: str, world: World) -> str:
    """What comes of all cases of a task, as JSON with a line for each part of a case.

    The first case is whole. Of each other one there is what differs from it; null stands for what the first alone has.
    """
    with few_draws(DRAWS):
        found = asyncio.run(_outcomes(task, world))
    first, *others = found
    entries = [_entry(first, found[first]), *(_entry(name, _change(found[name], found[first])) for name in others)]
    return world.told("{\n" + ",\n".join(entries) + "\n}\n")


async def _outcomes(task: str, world: World) -> dict[str, JsonObject]:
    return {name: await _outcome(task, case, world) for name, case in CASES[task].named().items()}


def _entry(name: str, outcome: Mapping[str, Any]) -> str:
    lines = (f"    {_json(part)}: {_json(value, sort=part == 'kept')}" for part, value in outcome.items())
    return f"  {_json(name)}: {{\n" + ",\n".join(lines) + "\n  }" if outcome else f"  {_json(name)}: {{}}"


def _change(outcome: JsonObject, first: JsonObject) -> JsonObject:
    """What of an outcome is otherwise than in the first case; all of one that is refused."""
    if "refused" in outcome:
        return outcome
    return {
        part: _others(outcome.get(part), first.get(part))
        for part in {**first, **outcome}
        if outcome.get(part) != first.get(part)
    }


def _others(now: Any, was: Any) -> Any:
    """What a part is now; of one that has parts itself those that are otherwise than they were."""
    if isinstance(now, dict) and isinstance(was, dict):
        new, old = cast("JsonObject", now), cast("JsonObject", was)
        return {name: new.get(name) for name in {**old, **new} if new.get(name) != old.get(name)}
    return cast("Any", now)


def _json(value: Any, *, sort: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=sort)


@dataclass(frozen=True, slots=True)
class _Made:
    """A case under way."""

    task: str
    case: Options
    world: World
    engine: Engine

    def evaluation(self) -> Evaluation:
        control = self.case.get(CONTROL)
        options = {name: value for name, value in self.case.items() if name != CONTROL}
        made = TASKS[self.task](**self.world.options(options, self.engine), engine=self.engine)
        return evaluation_of(made) if control is None else controlled(made, control)


async def _outcome(task: str, case: Options, world: World) -> JsonObject:
    def made() -> _Made:
        return _Made(task, case, world, Engine(records=MemoryStore()))

    ready = made()
    try:
        evaluation = ready.evaluation()
    except AskanceError as error:
        return {"refused": str(error)}
    found: JsonObject = {
        "label": evaluation.label,
        "kept": dict(evaluation.options),
        "notes": list(evaluation.notes),
        "plan": await _plan(made()),
    }
    with TemporaryDirectory() as place:
        try:
            run = await aevaluate(evaluation, out=Path(place) / "run", engine=ready.engine)
        except AskanceError as error:
            return {**found, "stopped": str(error)}
        again = await _again(run, task)
        return {**found, **_keys(run, ready.engine.recorder.records), "figures": _figures(run.figures), **again}


async def _plan(ready: _Made) -> Any:
    """By who asks, the numbers of calls whose request is known, and of those that depend on others."""
    try:
        with planning():
            task = ready.evaluation()
        epochs = [SampleEpoch(sample=sample, epoch=0) for sample in task.samples]
        plan = await run_job(task, epochs, ready.engine).plan()
    except AskanceError as error:
        return str(error)
    return [f"{line.link} by {line.model}: {line.known} + {line.dependent}" for line in plan.links]


def _keys(run: Run, records: Any) -> JsonObject:
    """The keys of the requests of each sample in order, and a digest of those of what is computed."""
    asked = {answer.sample.id: " ".join(_calls(answer)) for answer in run.answers}
    other = sorted(record.key for kind in ("embed", "score", "search") for record in records.of_kind(kind))
    computed = {"computed": f"{len(other)}: {sha256(' '.join(other).encode()).hexdigest()[:DIGITS]}"} if other else {}
    return {"keys": asked, **computed}


def _calls(answer: Any) -> Iterator[str]:
    for link in answer.prediction.links.values():
        yield from (key[:DIGITS] for key in link.get("calls", ()))
    if answer.score is not None:
        yield from (key[:DIGITS] for key in answer.score.calls)


async def _again(run: Run, task: str) -> JsonObject:
    """The figures that a task which is made of the run alone gives, where they are others."""
    try:
        _, figures = await rescored(run, TASKS[task])
    except AskanceError as error:
        return {"again": str(error)}
    return {} if figures == run.figures else {"again": _figures(figures)}


def _figures(figures: Iterable[Figure]) -> JsonObject:
    return {figure.metric: _figure(figure) for figure in figures}


def _figure(figure: Figure) -> str:
    """Value and interval; the bounds where an answer is missing; and counts of answers, samples and clusters."""
    interval = figure.interval
    between = "" if interval is None else f" [{_number(interval.low)}, {_number(interval.high)}]"
    open_to = f" {_number(figure.if_wrong)} to {_number(figure.if_right)}" if figure.answered < figure.samples else ""
    return f"{_number(figure.value)}{between}{open_to} of {figure.answered}/{figure.samples}/{figure.clusters}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"
