"""Holding a pack against what it says of itself: records, scores, figures, tables; and what a chain says today."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from askance.errors import AskanceError
from askance.evals.rerunning import Change, rerun
from askance.evals.rescoring import rescored
from askance.evals.run_folder import CALLS
from askance.replay import verify

if TYPE_CHECKING:
    from askance.evals.figures import Figure
    from askance.evals.packs import Pack
    from askance.evals.run import Answer, Run
    from askance.evals.tasks import Definition

SHOWN = 3
"""Examples of one kind of difference."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What became of one run of a pack."""

    name: str
    task: str
    samples: int
    records: int
    differences: tuple[str, ...] = ()
    """What is not as the pack says, in words."""
    again: Mapping[Change, int] = field(default_factory=dict["Change", int])
    """By what became of them: samples that were run again, where that was asked for."""
    changed: tuple[str, ...] = ()
    """The first few of those that are not the same, in words."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What became of a pack."""

    digest: str
    runs: tuple[Checked, ...]
    tables: Mapping[str, str]
    """Text of each table, made anew."""
    differing: tuple[str, ...]
    """Names of tables that are not as they were."""

    @property
    def sound(self) -> bool:
        """Whether everything is as the pack says."""
        return not self.differing and not any(run.differences for run in self.runs)


async def check(
    pack: Pack,
    *,
    find: Callable[[Run], Definition],
    tables: Callable[[Sequence[Run]], Mapping[str, str]],
    again: bool = False,
) -> Report:
    """Verifies and scores what was answered, and makes the tables anew.

    Args:
        pack: opened, so that its digests are right already.
        find: the definition of a run's task.
        tables: text of the tables of some runs, by file name.
        again: whether the chains are also run again, against the pack's records.
    """
    runs = [await _checked(run, find, again=again) for run in pack.runs]
    made = tables([run for run, _ in runs])
    names = sorted({*made, *pack.tables})
    differing = tuple(name for name in names if made.get(name) != pack.tables.get(name))
    return Report(digest=pack.digest, runs=tuple(checked for _, checked in runs), tables=made, differing=differing)


async def _checked(run: Run, find: Callable[[Run], Definition], *, again: bool) -> tuple[Run, Checked]:
    """The run with its figures made anew, and what differs."""
    differences = list(_records(run))
    results: Counter[Change] = Counter()
    changed: list[str] = []
    fresh = run
    try:
        definition = find(run)
        answers, figures = await rescored(run, definition)
        differences += [*_scores(run.answers, answers), *_figures(run.figures, figures)]
        fresh = run.scored(answers, figures)
        if again and definition.solver is None:
            changed.append("it is not run again: the task makes its solver only with its data")
        elif again:
            async for each in rerun(run, definition):
                results[each.change] += 1
                if each.change != "same" and len(changed) < SHOWN:
                    changed.append(_said(each.was, each.change, each.now.reason))
    except AskanceError as error:
        differences.append(f"it cannot be scored again: {error.message}")
    checked = Checked(
        name=run.path.name,
        task=run.task,
        samples=len(run.answers),
        records=len(run.records),
        differences=tuple(differences),
        again=dict(results),
        changed=tuple(changed),
    )
    return fresh, checked


def _records(run: Run) -> Iterator[str]:
    """What is wrong with the records: keys that are not their request's, and answers that rest on none."""
    for problem in verify(run.records):
        yield f"the record {problem.key[:12]}: {problem.message}"
    missing = [answer.sample.id for answer in run.answers if any(run.records.get(key) is None for key in answer.keys)]
    if missing:
        examples = ", ".join(map(repr, missing[:SHOWN]))
        yield f"{len(missing)} samples rest on records that are not in {CALLS}, such as {examples}"


def _scores(was: Sequence[Answer], now: Sequence[Answer]) -> Iterator[str]:
    differing = [old.sample.id for old, new in zip(was, now, strict=True) if not _same_score(old, new)]
    if differing:
        examples = ", ".join(map(repr, differing[:SHOWN]))
        yield f"{len(differing)} samples are scored differently now, such as {examples}"


def _same_score(was: Answer, now: Answer) -> bool:
    if was.score is None or now.score is None:
        return was.score is now.score
    old, new = was.score.values, now.score.values
    return old.keys() == new.keys() and all(_equal(old[name], new[name]) for name in old)


def _figures(was: Sequence[Figure], now: Sequence[Figure]) -> Iterator[str]:
    old, new = ({figure.metric: figure for figure in figures} for figures in (was, now))
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"{name} is no metric of the task any more"
        elif name not in old:
            yield f"{name} is a metric that the pack does not have"
        elif not _equal(old[name].value, new[name].value) or old[name].samples != new[name].samples:
            yield f"{name} was {_shown(old[name].value)} and is {_shown(new[name].value)}"


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _said(was: Answer, change: Change, reason: str | None) -> str:
    first = (reason or "").partition("\n")[0]
    return f"{was.sample.id!r}: {change}{f' ({first})' if first else ''}"
