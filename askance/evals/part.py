"""What a task is composed of beside its data, its question and its scorer: values that other tasks may have as well.

| kind | what it says |
|---|---|
| answerer | who answers: a model in a context, an encoder, a baseline; recorded replies, and how each is read |
| examples | which answered questions are shown before |
| measure | further figures, such as perplexity, or those of a judge |

A task has them as fields, `model: InContext = InContext(context="T_V")`, whose default says what the options are by
default. The options of parts are options of the task by the same names. A task's label, its notes, the options that a
run keeps and its checks are joined from those of its parts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import PrivateAttr

from askance.chains import REPLY, Chain, Link
from askance.errors import UsageError
from askance.evals.task_options import ROLES, Options

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from askance.chains import Reading
    from askance.chains.chain import NodeLike
    from askance.chat import Json
    from askance.evals.evaluation import Evaluation
    from askance.evals.sample import Sample
    from askance.evals.solver import Solver
    from askance.models import Engine
    from askance.nodes import Read


class Part(Options):
    """A part of a task; its fields are options of the task."""

    _task: str = PrivateAttr(default="")
    """Name of the task, for messages."""

    def preset(self) -> Mapping[str, FieldInfo]:
        """The options that users can give, by name, with the defaults that they have here."""
        fields = {each.alias or name: name for name, each in type(self).model_fields.items()}
        return {
            name: _with_default(each, getattr(self, fields[name])) if fields[name] in self.model_fields_set else each
            for name, each in self.takes().items()
        }

    def set(
        self,
        options: Mapping[str, Any],
        *,
        task: str,
        engine: Engine | None,
        stated: Mapping[str, Any],  # noqa: ARG002  # a subclass depends on options of other parts
    ) -> Self:
        """The part with options set; others stay as they are.

        Args:
            options: values by name of the option.
            task: name of the task, for messages.
            engine: of the task.
            stated: all options that the task is given, by name.

        Raises:
            ValidationError: a value is not allowed.
        """
        known = {name: each.alias or name for name, each in type(self).model_fields.items()}
        own = {known[name]: getattr(self, name) for name in self.model_fields_set}
        part = type(self)(**{**own, **options, "engine": engine})
        part._task = task
        return part

    def with_engine(self, engine: Engine) -> Self:
        """The part with another engine."""
        fields: dict[str, Any] = {**dict(self), "engine": engine}
        part = type(self).model_construct(**fields)
        part._task, part._run = self._task, self._run
        return part

    def from_kept(self, kept: Mapping[str, Any], *, task: str, engine: Engine | None) -> Self:
        """The part as a run has kept it, made without the data.

        Args:
            kept: the options that the run keeps, and its models by role.
            task: name of the task, for messages.
            engine: its records and mode are used.

        Raises:
            UsageError: the value of an option is not allowed, or names a file or a spec.
        """
        fixed = {name: getattr(self, name) for name in self.model_fields_set}
        part = type(self).of_kept(kept, task=task, **{**fixed, "engine": engine})
        part._task, part._run = task, kept
        return part

    def check(self, options: Mapping[str, Any]) -> None:
        """Checks options that depend on each other; not called for a task that is made from a run.

        Args:
            options: all options of the task by name.

        Raises:
            UsageError: they do not go together.
        """

    def words(self) -> tuple[str, ...]:
        """What tells its options apart in the name of a run, which stands in parentheses there."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of the figures."""
        return ()

    def prepared(self, evaluation: Evaluation, *, left_out: Collection[str]) -> Evaluation:  # noqa: ARG002
        """The evaluation with what the part adds to its samples and notes.

        Args:
            evaluation: of the task.
            left_out: ids of the data that are no samples of it, such as those of other folds.

        Raises:
            BadData: the part does not fit the samples.
        """
        return evaluation


def _with_default(option: FieldInfo, value: Any) -> FieldInfo:
    field = copy(option)
    field.default = value
    return field


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a task asks, as every kind of answerer needs it. What only some need has a default."""

    name: str
    """Of the chain that answers."""
    agent: Callable[..., NodeLike] | None = None
    """Makes the node that answers, from a model and `sees` (whether it sees the picture)."""
    asks: Callable[[Reading], Any] = lambda _: None
    """Makes that node's input from a reading."""
    target: Link[Any] = REPLY
    """The link that the answer fills in."""
    needs: Collection[Link[Any]] = ()
    """Links that the answer needs beside what is shown of the picture, such as a caption; every sample brings them."""
    given: Collection[str] = ()
    """Links that every sample brings; they, and steps that only they need, are left out."""
    inputs: Callable[[Sample], Mapping[str, Any]] | None = None
    """Makes a chain's input from a sample; by default the picture and the sample's inputs."""
    value: Callable[[Reading, Sample], Json] | None = None
    """Makes the answer, as JSON, from a reading; by default that of the target."""
    measured: Callable[[Chain], Chain] = lambda chain: chain
    """Adds links to the chain that measures need."""

    count: int = 0
    """How many of a sample's options an answer has; 0 if there are no options."""
    samples: Callable[[], Sequence[Sample]] = tuple
    """The samples; whoever makes the solver adds them."""
    pooled: str = ""
    """The tag by whose value samples are held against each other; empty if each is answered alone."""
    seed: int = 0
    """Of random answers."""

    read: Callable[[Sample, Any], Json | Read[Any]] | None = None
    """Gives the answer that a recorded reply to a sample has; None if recorded replies are not read."""


class Answerer(Part):
    """Who answers."""

    chosen_by: ClassVar[tuple[str, ...]] = ()
    """Options of which any one chooses this answerer in place of the others, unless it is None or false."""
    noun: ClassVar[str] = ""
    """What it is, for messages, such as `a scorer`."""
    alone: ClassVar[tuple[str, str]] = ("", "")
    """Why no model can stand beside it, and the way out."""

    @classmethod
    def replaces_models(cls, options: Mapping[str, Any]) -> bool:
        """Whether options choose it in the place of models, by name of the option."""
        return any(name in options for name in cls.chosen_by if name not in ROLES)

    @property
    def is_chosen(self) -> bool:
        """Whether an option chooses it."""
        fields = {each.alias or name: name for name, each in type(self).model_fields.items()}
        values = (getattr(self, fields[option], None) for option in self.chosen_by)
        return any(value is not None and value is not False for value in values)

    @property
    def looks(self) -> bool:
        """Whether somebody looks at the picture."""
        return True

    @abstractmethod
    def label(self) -> str:
        """Its name in tables."""

    def suffix(self) -> str:
        """What stands behind the name and the words in parentheses, such as `, official reading`."""
        return ""

    @abstractmethod
    def solver(self, question: Question) -> Solver:
        """What answers the samples.

        Raises:
            UsageError: it cannot answer the question.
        """


def check_answerers(answerers: Sequence[Answerer]) -> None:
    """Checks that at most one answerer is chosen.

    Raises:
        UsageError: several are.
    """
    chosen = [each for each in answerers if each.is_chosen]
    if len(chosen) < 2:
        return
    sentence, hint = chosen[-1].alone
    if all(each.noun for each in chosen[:2]):
        one, other = chosen[:2]
        sentence = f"{one.noun.capitalize()} and {other.noun} both take the place of models."
        hint = f"Give `{one.chosen_by[0]}` or `{other.chosen_by[0]}`."
    raise UsageError(sentence, hint=hint)
