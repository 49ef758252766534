"""Which link of a chain is to blame for wrong answers: each is replaced by itself, and what follows is asked again.

All other links are given as they were, so that a chain asks only what lies downstream of the one that was replaced; and
what is on record is not asked again. The results are kept in the run's folder: `blame.jsonl` has a line a trial,
`blame.json` what they come to, by what was put in the links' places.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.chains import Planner
from askance.chains.stream import in_order
from askance.errors import OverBudget, UsageError
from askance.evals.blame_cases import Case, Cases
from askance.evals.blame_files import LINES, SUMMARY, add_counts, held, read_lines, save, write_line
from askance.evals.evaluation import stop_if_hopeless
from askance.evals.predicting import models_of
from askance.evals.run_folder import write_lines
from askance.evals.solving import plain, solved
from askance.models import run_sync, use_draw
from askance.models.capabilities import endpoint_key
from askance.models.counters import RunCounters
from askance.models.factory import model_from_form

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.chat import JsonObject
    from askance.evals.blamed import Blame
    from askance.evals.run import Run
    from askance.evals.tasks import Definition
    from askance.evals.values import Prediction, Sample
    from askance.models import Engine, Model

Told: TypeAlias = Callable[[int, int], None]
"""Hears after each trial how many are done, and of how many."""


class Blaming:
    """The trials of a run, ready to be planned or made.

    Args:
        run: finished, with its scores.
        definition: of its task.
        engine: by which models are asked, and where answers are on record.
        options: those of `Cases`: `models`, `replacement`, `links`, `metric`.

    Raises:
        UsageError: as `Cases` says.
    """

    def __init__(self, run: Run, definition: Definition, *, engine: Engine, **options: Any) -> None:
        self.cases = Cases(run, definition, engine=engine, **options)
        self._run = run
        self.engine = engine
        self._solver = self.cases.solver

    async def planned(self) -> Plan:
        """What the trials would ask and cost; nothing is asked.

        Raises:
            UsageError: the mode is `replay`.
        """
        planner = Planner()
        walk = planner.chain(self._solver.chain)
        with planner.walking():
            for case in self.cases:
                await walk.read(case.given, draw=case.answer.epoch)
        return planner.plan()

    async def blame(self, *, out: Path | None = None, told: Told | None = None, seed: int = 0) -> Blame:
        """Makes the trials that are not made yet, and says what all of them come to.

        Args:
            out: folder for the results; by default the run's.
            told: of every step.
            seed: of the bootstraps.

        Raises:
            UsageError: nobody can be asked, since a model is known from the run alone.
            CallError: a model cannot be asked at all.
            StoreError: another process is writing the run, or a file cannot be written.
        """
        if not self.cases.wrong:
            return self.cases.summed([], left=0, seed=seed)
        folder = out or self._run.path
        with held(folder, own=out is None):
            made = {line["key"]: line for line in self.cases.still_true(read_lines(folder / LINES))}
            others = [line for line in read_lines(folder / LINES) if line["how"] != self.cases.replacement.name]
            write_lines(folder / LINES, [*others, *made.values()])
            todo = [case for case in self.cases if case.key not in made]
            if told is not None:
                told(len(made), len(made) + len(todo))
            async with self._counting(folder / SUMMARY) as counters:
                left = await self._make(todo, made, folder / LINES, told=told) if todo else 0
                trials = [await self.cases.trial(line) for line in made.values()]
            blame = replace(self.cases.summed(trials, left=left, seed=seed), counters=counters)
            save(folder / SUMMARY, blame, self._run)
        return blame

    @asynccontextmanager
    async def _counting(self, file: Path) -> AsyncGenerator[dict[str, Any]]:
        """Keeps what models and judges compute within it, however it ends, and gives it with what they did before."""
        scoring, total = self.cases.scoring, dict[str, Any]()
        judges = list(dict.fromkeys(judge.model for judge in scoring.judges))
        counting = await RunCounters.begun([*models_of(self._solver), *judges])
        try:
            yield total
        finally:
            for each in (*judges, *scoring.closing):
                await each.aclose()
            total |= add_counts(file, self.cases.replacement.name, self._run, counts=await counting.so_far())

    async def _make(self, todo: Sequence[Case], made: dict[str, JsonObject], file: Path, *, told: Told | None) -> int:
        """Makes trials and writes each down; how many the budget had nothing left for."""
        models, guard, done, reached = models_of(self._solver), self.engine.budget, 0, False
        for model in models:
            _know(model, self._run)
            await model.output_mode()
        affordable = takewhile(lambda _: guard is None or not guard.used_up, todo)
        try:
            with file.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
                async with aclosing(in_order(self._again, affordable, room=lambda: self.engine.places)) as trials:
                    async for case, now in trials:
                        if any(link.get("error") == OverBudget.__name__ for link in now.links.values()):
                            continue
                        _stop_if_nobody(now)
                        if not reached:
                            stop_if_hopeless(now)
                        reached |= now.answered and now.meta.get("calls", 0) > 0
                        line = made[case.key] = self.cases.line(case, now)
                        write_line(lines, line)
                        done += 1
                        if told is not None:
                            told(len(made), len(made) + len(todo) - done)
        finally:
            for model in models:
                await model.aclose()
        return len(todo) - done

    async def _again(self, case: Case) -> tuple[Case, Prediction]:
        async def solve(sample: Sample) -> Prediction:
            return self._solver.prediction(await self._solver.chain.ainvoke(case.given), sample)

        with use_draw(case.answer.epoch):
            return case, plain(await solved(solve, case.answer.sample))


_MAKING = ("models", "replacement", "links", "metric")


async def ablame(run: Run, definition: Definition, *, engine: Engine, **options: Any) -> Blame:
    """Which links of the chain of `run` are to blame for its wrong answers.

    Args:
        run: finished, with its scores.
        definition: of its task.
        engine: by which models are asked, and where answers are on record.
        options: those of `Cases`, and of `Blaming.blame`.

    Raises:
        UsageError: as `Cases` and `Blaming.blame` say.
    """
    making = {name: options.pop(name) for name in _MAKING if name in options}
    return await Blaming(run, definition, engine=engine, **making).blame(**options)


def blame(run: Run, definition: Definition, *, engine: Engine, **options: Any) -> Blame:
    """As `ablame`, from anywhere: scripts, threads, notebooks."""
    return run_sync(ablame(run, definition, engine=engine, **options))


def _know(model: Model, run: Run) -> None:
    """Has a model asked in the form in which the run asked it, where the records do not say."""
    record = None if model.known is not None else run.records.get(endpoint_key(model.id))
    if record is not None:
        from_run = model_from_form({**model.form(), "declared": record.response}, model.engine).known
        if from_run is not None:
            model.engine.endpoints[endpoint_key(model.id)] = from_run


def _stop_if_nobody(prediction: Prediction) -> None:
    """Ends the trials where a model is known from the run alone.

    Raises:
        UsageError: it is.
    """
    for link in prediction.links.values():
        if link.get("error") == UsageError.__name__:
            raise UsageError(
                str(link.get("reason") or prediction.reason),
                hint="Name the model: `--vlm SPEC`, or `models=` in Python.",
            )
