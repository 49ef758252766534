"""Tasks: samples, a solver, and how answers are scored; and the names under which they are found.

A task is made by a function that says what it takes:

```python
@task("captions/odd")
def odd(data: Path, *, vlm: ModelLike, seed: int = 0) -> Task: ...
```
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from askance.chains import Chain
from askance.errors import UsageError
from askance.evals.solving import ChainSolver
from askance.evals.values import Sample, Score, grouped_by_picture
from askance.models import get_model

if TYPE_CHECKING:
    from askance.evals.figures import Metric
    from askance.evals.solving import Solver
    from askance.models import Engine, Model
    from askance.nodes import Node

ScoreFunction: TypeAlias = Callable[[Sample, Any], "Score | Awaitable[Score]"]
"""From a sample and the answer to it to what that is worth."""


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How the answers to a task are scored, which needs neither its data nor its models."""

    score: ScoreFunction
    metrics: tuple[Metric, ...]
    """The first is the one that stands for the task."""
    if_wrong: Callable[[Sample], Score]
    """The score of a sample whose answer is wrong: what non-answers count as, and the lower bound."""
    if_right: Callable[[Sample], Score]
    """The score of a sample whose answer is right: the upper bound."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures has to know."""
    judges: tuple[Node[Any, Any], ...] = ()
    """Nodes that scoring asks: reached before the first sample is answered, and closed when the run ends."""
    closing: tuple[Closes, ...] = ()
    """What else it holds open until then, such as an embedder."""
    questions: Callable[[Sample], int | Sequence[int]] = lambda _: 0
    """How often the judges are asked about one answer to a sample, each or one by one, for the plan of a run."""


class Closes(Protocol):
    """Holds something open."""

    async def aclose(self) -> None:
        """Lets go of it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task that is ready to be run."""

    samples: Sequence[Sample]
    """Those that share a picture and name no group become one, which is called by the digest."""
    solver: Solver
    """A chain, a Runnable or a function: from a sample to a prediction, or to the answer itself."""
    scoring: Scoring | Callable[[Engine], Scoring] | None = None
    """How answers are scored, or what says so once it has the run's engine; None is what the definition names."""
    name: str = ""
    label: str = ""
    """What its run is called in tables; by default its models. It tells no run from another."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it was made with, as JSON: part of what tells one run from another."""
    models: Mapping[str, Model] = field(default_factory=dict[str, "Model"])
    """The models that it was made with, by role (`vlm`, `llm`); a definition fills them in."""
    notes: tuple[str, ...] = ()
    """What there is to say of the data, such as samples that had to be left out."""
    origin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Where its definition is found, where its name does not say it, as JSON; a run keeps it to be scored again."""

    def __post_init__(self) -> None:
        if isinstance(self.solver, Chain):
            object.__setattr__(self, "solver", ChainSolver(self.solver))
        object.__setattr__(self, "samples", grouped_by_picture(self.samples))


Made = TypeVar("Made")

ROLES = ("vlm", "llm", "combiner")
"""Options of a task that are models: what sees the picture, what reasons over words, and what makes T_V."""

MakeScoring: TypeAlias = "Scoring | Callable[..., Scoring]"


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A task by name: the function that makes it, and how its answers are scored."""

    name: str
    make: Callable[..., Task]
    scoring: MakeScoring | None
    solver: Callable[..., Solver] | None
    """Makes the solver from models and options alone, so that a run can be run again without its data."""
    summary: str
    origin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """For a task of somebody's own: `task`, the file that it stands in, and what else it takes to score its runs."""

    @property
    def takes(self) -> Mapping[str, inspect.Parameter]:
        """The options of the task, by name."""
        return inspect.signature(self.make).parameters

    def __call__(self, **options: Any) -> Task:
        """The task, ready to be run.

        Args:
            options: those of the function; None is not given.

        Raises:
            UsageError: an option that it does not take, or one that it needs and is not there.
        """
        given = {name: value for name, value in options.items() if value is not None}
        unknown = [name for name in given if name not in self.takes]
        if unknown:
            raise UsageError(
                f"The task {self.name!r} takes no {unknown[0]!r}.", hint=f"It takes {', '.join(self.takes)}."
            )
        for name, parameter in self.takes.items():
            if parameter.default is parameter.empty and name not in given:
                raise UsageError(f"The task {self.name!r} needs {name!r}.", hint=_needed(name))
        roles = {role: get_model(given[role]) for role in ROLES if role in given}
        made = self.make(**{**given, **roles})

        def scoring(engine: Engine) -> Scoring:
            return self.scored(engine, made.options)

        return replace(made, name=self.name, models=roles, scoring=made.scoring or scoring, origin=self.origin)

    def solved_by(self, models: Mapping[str, Model], options: Mapping[str, Any]) -> Solver:
        """The solver of a run, without its data.

        Args:
            models: by role.
            options: as a run keeps them, and the run's `engine` and `samples`; the solver gets those that it takes.

        Raises:
            UsageError: the definition says nothing of it.
        """
        if self.solver is None:
            raise UsageError(
                f"The task {self.name!r} makes its solver only with its data.",
                hint="Name what makes it in the decorator: `@task(name, solver=…)`.",
            )
        return _called(self.solver, {**options, **models})

    def scored(self, engine: Engine, options: Mapping[str, Any]) -> Scoring:
        """How answers are scored.

        Args:
            engine: for what scoring itself asks, such as similarities.
            options: as a run keeps them; those that are not the scoring's are left out.

        Raises:
            UsageError: the definition says nothing of it.
        """
        if self.scoring is None:
            raise UsageError(
                f"The task {self.name!r} brings its scoring only with its data.",
                hint="Name it in the decorator: `@task(name, scoring=…)`.",
            )
        return (
            self.scoring if isinstance(self.scoring, Scoring) else _called(self.scoring, {**options, "engine": engine})
        )


def _called(function: Callable[..., Made], options: Mapping[str, Any]) -> Made:
    """What `function` makes of those of the options that it takes."""
    takes = inspect.signature(function).parameters
    named = [each for each in takes.values() if each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}]
    lacking = [each.name for each in named if each.default is each.empty and each.name not in options]
    if lacking:
        raise UsageError(f"Nothing says which `{lacking[0]}` to take.", hint=_needed(lacking[0]))
    return function(**{name: value for name, value in options.items() if name in takes})


def _needed(name: str) -> str:
    ways = {"data": "--data FOLDER", "vlm": "--vlm MODEL", "llm": "--llm MODEL"}
    return f"Give {ways.get(name, f'-T {name}=…')} on the command line, or `{name}=` in Python."


_defined: dict[str, Definition] = {}


def task(
    name: str, *, scoring: MakeScoring | None = None, solver: Callable[..., Solver] | None = None
) -> Callable[[Callable[..., Task]], Definition]:
    """Makes a function the definition of the task `name`; the first line of its docstring says what it is.

    Args:
        name: how the task is found, such as `pittads/mac`.
        scoring: how its answers are scored, or a function that says so, given `engine` and the options of scoring.
        solver: makes the solver from models by role and options; with it a run can be run again without its data.

    Raises:
        UsageError: a packaged task has that name. One of another file may have it: a file says which is meant.
    """

    def define(make: Callable[..., Task]) -> Definition:
        there = _defined.get(name)
        if there is not None and not there.origin and _place(there.make) != _place(make):
            raise UsageError(f"There is a task {name!r} already.", hint="Give yours another name.")
        summary = (inspect.getdoc(make) or "").partition("\n")[0]
        _defined[name] = Definition(
            name=name, make=make, scoring=scoring, solver=solver, summary=summary, origin=_origin(name, make)
        )
        return _defined[name]

    return define


def _place(make: Callable[..., Task]) -> tuple[str, str]:
    return make.__code__.co_filename, make.__qualname__


def _origin(name: str, make: Callable[..., Task]) -> Mapping[str, Any]:
    """The file of a task that is not the package's, seen from here."""
    file = Path(make.__code__.co_filename)
    if not file.is_file() or make.__module__.startswith(f"{__name__.partition('.')[0]}."):
        return {}
    return {"task": f"{Path(os.path.relpath(file)).as_posix()}@{name}"}


def defined() -> dict[str, Definition]:
    """The tasks that have been defined so far, by name."""
    return dict(sorted(_defined.items()))
