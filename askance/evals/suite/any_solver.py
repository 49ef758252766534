"""`AnySolver`: any solver in the place of a model, by `-T solver=…`.

| `solver` | what answers |
|---|---|
| `random`, `longest`, `majority` | a baseline that looks at nothing (`askance.evals.baselines`) |
| `clip:FOLDER` and the like | an encoder of pictures and texts, which ranks the options |
| `FILE.py:NAME` | a `Solver`, a chain, a Runnable or a function of your own; a class is made without arguments |

In Python it is the object itself. `investigator` takes the place of no model: it is how the task's own models answer
(`askance.evals.suite.context`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from pydantic import Field
from typing_extensions import override

from askance.errors import UsageError
from askance.evals.baselines import LongestOption, MajoritySolver, RandomSolver
from askance.evals.part import Answerer, Question
from askance.evals.solver import Solver, SolverLike, as_solver
from askance.evals.suite.context import INVESTIGATOR
from askance.evals.suite.ranker import FusionSolver
from askance.models.encoders.picture_scorer import SCORERS
from askance.python_file import is_python, load_object
from askance.registry import near

if TYPE_CHECKING:
    from askance.chat import JsonObject

    AnySolverLike: TypeAlias = str | Mapping[str, Any] | SolverLike
else:
    AnySolverLike = Annotated[Any, "a solver"]

BASELINES: Mapping[str, Callable[[Question], Solver]] = {
    "random": lambda question: RandomSolver(count=question.count, seed=question.seed),
    "longest": lambda question: LongestOption(count=question.count),
    "majority": lambda question: MajoritySolver(question.samples(), count=question.count),
}
"""By name, what looks neither at the picture nor at what is said of it."""


class AnySolver(Answerer):
    """A solver in the place of a model: a baseline, an encoder, or one of your own."""

    chosen_by = ("solver",)
    noun = "a solver"
    alone = ("A solver takes the place of models.", "Leave out `solver`, or the models.")

    chosen: AnySolverLike | None = Field(default=None, alias="solver")
    """Answers in place of a model: random, longest, majority; an encoder such as clip:FOLDER; or FILE.py:NAME; or
    investigator, by which the task's models look around with tools before they answer."""

    @classmethod
    @override
    def replaces_models(cls, options: Mapping[str, Any]) -> bool:
        return super().replaces_models(options) and options.get("solver") != INVESTIGATOR

    @property
    @override
    def is_chosen(self) -> bool:
        return super().is_chosen and not self._investigates

    @property
    def _investigates(self) -> bool:
        """Whether the task's own models answer, with tools."""
        return self.chosen in (INVESTIGATOR, {"name": INVESTIGATOR})

    @override
    def check(self, options: Mapping[str, Any]) -> None:
        """Checks that no examples are shown, which only models read.

        Raises:
            UsageError: they are; or there is no such solver.
        """
        if self._investigates and "tools" not in options:
            raise UsageError(
                f"The task {self._task!r} asks nothing that can be investigated.",
                hint="`askance eval list TASK` shows whether a task takes `tools`.",
            )
        if not self.is_chosen:
            return
        if options.get("shots"):
            raise UsageError("Examples are shown to a model, and a solver answers.", hint="Leave out the examples.")
        _ = self._chosen_solver

    @cached_property
    def _chosen_solver(self) -> str | Solver:
        """The solver; or the name of what is made for a question.

        Raises:
            UsageError: there is no such solver.
        """
        chosen: Any = self.chosen
        if isinstance(chosen, Mapping):
            return str(cast("Mapping[str, Any]", chosen).get("name", ""))
        if not isinstance(chosen, str):
            return as_solver(chosen)
        if is_python(chosen):
            return as_solver(load_object(chosen))
        name = chosen.partition(":")[0]
        if chosen not in BASELINES and name not in SCORERS:
            raise UsageError(
                f"There is no solver {chosen!r}.",
                hint=f"{near(name, [*BASELINES, INVESTIGATOR, *SCORERS.names()])}There are {', '.join(BASELINES)}, "
                f"{INVESTIGATOR}, encoders such as clip:FOLDER, and FILE.py:NAME.",
            )
        return chosen

    @property
    @override
    def looks(self) -> bool:
        return self._chosen_solver not in BASELINES

    @override
    def label(self) -> str:
        own_solver = self._chosen_solver
        return (
            own_solver
            if isinstance(own_solver, str)
            else str(own_solver.form().get("solver") or type(own_solver).__name__)
        )

    @override
    def kept(self) -> JsonObject:
        if self._investigates:
            return {"solver": {"name": INVESTIGATOR}}
        if not self.is_chosen:
            return {}
        own_solver = self._chosen_solver
        return {"solver": {"name": own_solver} if isinstance(own_solver, str) else own_solver.form()}

    @override
    def solver(self, question: Question) -> Solver:
        """The solver.

        Raises:
            UsageError: it chooses among options, and the question has none; or only a run names it.
        """
        own_solver = self._chosen_solver
        if not isinstance(own_solver, str):
            return own_solver
        if isinstance(self.chosen, Mapping) and own_solver not in BASELINES:
            raise UsageError(
                "The run names a solver of its own, and what only a run names is not loaded.", hint="Run the task anew."
            )
        if not question.count:
            raise UsageError(
                f"The solver {own_solver!r} chooses among options, and the task {self._task!r} asks for words.",
                hint="Give a model, or a solver of your own: FILE.py:NAME.",
            )
        if own_solver in BASELINES:
            return BASELINES[own_solver](question)
        return FusionSolver(own_solver, count=question.count, engine=self.engine)
