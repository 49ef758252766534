"""`Evaluation`: a task with its samples read and its solver made, ready to be run, planned or put under a control."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from askance.errors import UsageError
from askance.evals.sample import Sample, grouped_by_picture
from askance.evals.solver import SolverLike, as_solver

if TYPE_CHECKING:
    from askance.chat import ModelId
    from askance.evals.scorer import Scorer
    from askance.models import Engine, Model


EXTRACTOR = "extractor"
"""The role of a model that reads replies which cannot be read otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """Vectors or scores that the making of samples rests on."""

    name: str
    """What they are, in a plan."""
    model: ModelId
    """That computes them."""
    keys: Collection[str]
    """Of all of them."""
    lacking: Collection[str]
    """Keys of those that are still to be computed."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A task with its samples read and its solver made. `Task.evaluation` makes one, or write one by hand."""

    samples: Sequence[Sample]
    """Samples that share a picture and name no group are put into one group, named by the picture's digest."""
    solver: SolverLike
    """A `Solver`; or a chain, a Runnable or a function, of which one is made."""
    scorer: Scorer | Callable[[Engine], Scorer]
    """How answers are scored; or a function that makes the scorer from the run's engine."""
    name: str = ""
    """Name of the task, such as `pittads/mac`."""
    label: str = ""
    """Name of the run in tables; by default that of its models. Two runs that differ in it alone are the same run."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The task's options as JSON. Runs with other options are other runs."""
    models: Mapping[str, Model] = field(default_factory=dict[str, "Model"])
    """The task's models, by role."""
    notes: tuple[str, ...] = ()
    """Notes on the data for the reader of the figures, such as how many samples were left out."""
    origin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Where the task is defined, if its name does not say so, as JSON. A run keeps it, to be scored again."""
    computed: tuple[Computed, ...] = ()
    """What the samples rest on, such as vectors by which examples were chosen; a plan counts it."""

    def __post_init__(self) -> None:
        samples: Sequence[Any] = self.samples
        others = [type(sample).__name__ for sample in samples if not isinstance(sample, Sample)]
        if others:
            raise UsageError(
                f"A sample is a {others[0]}.",
                hint='Write `Sample(id="1", image=Image.open("photo.jpg"), target=…)`.',
            )
        object.__setattr__(self, "solver", as_solver(self.solver))
        object.__setattr__(self, "samples", grouped_by_picture(self.samples))

    def with_extractor(self, model: Model) -> Evaluation:
        """The evaluation with a model that reads replies which cannot be read otherwise.

        Raises:
            UsageError: the solver reads no replies of a closed set of answers.
        """
        label = f"{self.label}, extracted by {model.id}" if self.label else ""
        models = {**self.models, EXTRACTOR: model}
        return replace(self, solver=as_solver(self.solver).with_extractor(model), models=models, label=label)

    def limited(self, count: int) -> Evaluation:
        """The evaluation of the first `count` samples.

        Raises:
            UsageError: `count` is below 1.
        """
        if count < 1:
            raise UsageError(f"A limit of {count} leaves no sample.", hint="Give at least 1.")
        if count >= len(self.samples):
            return self
        note = f"The first {count:,} of {len(self.samples):,} samples."
        return replace(self, samples=self.samples[:count], notes=(*self.notes, note))

    def with_ids(self, ids: Collection[str]) -> Evaluation:
        """The evaluation of the samples with these ids, in the task's order.

        Raises:
            UsageError: no sample has one of the ids.
        """
        wanted = dict.fromkeys(ids)
        known = {sample.id for sample in self.samples}
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise UsageError(
                f"{len(unknown):,} of {len(wanted):,} ids are those of no sample, such as {unknown[0]!r}.",
                hint=f"The samples of {self.name!r} have ids like {self.samples[0].id!r}." if self.samples else None,
            )
        note = f"{len(wanted):,} of {len(known):,} samples, by a list of ids."
        samples = [sample for sample in self.samples if sample.id in wanted]
        return replace(self, samples=samples, notes=(*self.notes, note))
