"""`Task`, the base class of tasks: which samples there are, what solves them, and how answers are scored.

A task is a class. Its fields are its options, so that each is checked, listed and kept with a run; its methods give
samples, a solver and a scorer:

```python
class OddOrNot(Task):
    \"\"\"Whether a picture has anything odd about it.\"\"\"

    name = "odd-or-not"
    data: Path
    \"\"\"File with a picture and its answer a line.\"\"\"
    vlm: ModelLike
    \"\"\"Sees the picture.\"\"\"

    def samples(self) -> Sequence[Sample]: ...
    def solver(self) -> Solver: ...
    def scorer(self) -> Scorer: ...

run = evaluate(OddOrNot(data="odd.jsonl", vlm="openai:gpt-4o"))
```
"""

from __future__ import annotations

import inspect
import os
import sys
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from typing_extensions import override

from askance.errors import UsageError
from askance.evals.evaluation import Evaluation
from askance.evals.part import Answerer, Part, Question, check_answerers
from askance.evals.sample import Sample, SampleQuestion
from askance.evals.suite_registry import SUITES, package_of
from askance.evals.task_options import ROLES, Options, way_to_give, wrong_value
from askance.models import get_model

Value = TypeVar("Value")

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass

    from askance.chat import JsonObject
    from askance.evals.scorer import Scorer
    from askance.evals.solver import SolverLike
    from askance.models import Engine, Model

    class TaskType(ModelMetaclass):
        """Tells type checkers that a task is made with the options of its parts, too, and not with its fields alone."""

        def __call__(cls: type[Value], **options: Any) -> Value: ...  # noqa: N805  # a class is its instance
else:
    TaskType = type(Options)

WORKSPACE = ("engine", "prompts", "allow_folders")
"""Options that the command line fills in, and no file of a task or a grid."""


class Task(Options, metaclass=TaskType):
    """A task. Its fields are its options and its parts, and the first line of its docstring is its summary.

    Give each option a type, a default unless it is required, and below it a docstring of one line. What answers, what
    is shown before and what is measured beside are parts (`askance.evals.part`), whose options are the task's.
    """

    settings = frozenset(WORKSPACE)

    name: ClassVar[str] = ""
    """Name by which the task is found, such as `pittads/mac`."""

    def __init__(self, **options: Any) -> None:
        """Makes the task; an option that is None counts as not given.

        Raises:
            UsageError: the task has no such option, a required one is missing, or a value is not allowed.
        """
        stated = {name: value for name, value in options.items() if value is not None}
        stated |= {role: get_model(stated[role]) for role in ROLES if role in stated and role in type(self).takes()}
        engine = stated.get("engine") or next((stated[role].engine for role in ROLES if role in stated), None)
        every = dict(stated)
        try:
            for field, part in type(self).prototypes().items():
                own = {name: stated.pop(name) for name in part.takes() if name in stated}
                stated[field] = part.set(own, task=self.name, engine=engine, stated=every)
            super().__init__(**stated)
        except ValidationError as error:
            raise self._refused(error) from error
        self.check()

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuses options that would hide an attribute of every task."""
        super().__init_subclass__(**more)
        hidden = next((name for name in inspect.get_annotations(cls) if name != "name" and hasattr(Task, name)), None)
        if hidden is not None:
            raise UsageError(
                f"The task {cls.name!r} has an option called {hidden!r}, which every task has itself.",
                hint="Give it another name, and write `Field(alias=…)` where it is to be called so all the same.",
            )

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        """Refuses two options of one name."""
        super().__pydantic_init_subclass__(**more)
        owners = dict.fromkeys(super().takes(), "the task itself")
        for field, part in cls.prototypes().items():
            twice = next((name for name in part.takes() if name in owners), None)
            if twice is not None:
                raise UsageError(
                    f"The task {cls.name!r} has two options called {twice!r}: of {owners[twice]} and of its {field!r}.",
                    hint="Give one of them another name.",
                )
            owners |= dict.fromkeys(part.takes(), f"its {field!r}")

    # --- its parts ---

    @classmethod
    def prototypes(cls) -> Mapping[str, Part]:
        """By field, the parts with the options that they have by default."""
        kinds = {name: (each, each.annotation) for name, each in cls.model_fields.items()}
        return {
            name: each.default if isinstance(each.default, Part) else kind.model_construct()
            for name, (each, kind) in kinds.items()
            if isinstance(kind, type) and issubclass(kind, Part)
        }

    @property
    def parts(self) -> Sequence[Part]:
        """The parts, in the order of the fields."""
        return [getattr(self, field) for field in type(self).prototypes()]

    @property
    def answerer(self) -> Answerer:
        """Who answers: the one that an option chooses, else the first.

        Raises:
            UsageError: the task has no answerer.
        """
        answerers = [part for part in self.parts if isinstance(part, Answerer)]
        if not answerers:
            raise UsageError(f"Nothing answers the task {self.name!r}.", hint="Give it a `solver()` of its own.")
        return next((each for each in answerers if each.is_chosen), answerers[0])

    @classmethod
    @override
    def option_fields(cls) -> Mapping[str, FieldInfo]:
        prototypes = cls.prototypes()
        return {name: each for name, each in super().option_fields().items() if name not in prototypes}

    @classmethod
    @override
    def takes(cls) -> Mapping[str, FieldInfo]:
        """The options that users can give, by name: its own and those of its parts, in the order of the fields."""
        parts, own, options = cls.prototypes(), cls.option_fields(), dict[str, FieldInfo]()
        for name in cls.model_fields:
            if name in parts:
                options |= parts[name].preset()
            elif name in own:
                options[own[name].alias or name] = own[name]
        return options

    def check(self) -> None:
        """Checks options that depend on each other; not called for a task that is made from a run.

        Whoever overrides it calls `super().check()` first.

        Raises:
            UsageError: they do not go together.
        """
        options = self._options()
        for part in self.parts:
            part.check(options)
        check_answerers([part for part in self.parts if isinstance(part, Answerer)])

    def _options(self) -> dict[str, Any]:
        """The values of all options by name."""
        return self.values() | {name: value for part in self.parts for name, value in part.values().items()}

    # --- what it asks, and how answers are scored ---

    @abstractmethod
    def samples(self) -> Sequence[Sample]:
        """The samples, read from the data. Samples that share a picture and name no group are put into one group."""

    @abstractmethod
    def scorer(self) -> Scorer:
        """How answers are scored."""

    def question(self) -> Question:
        """What is asked, for whoever answers; a task with a `solver()` of its own needs none."""
        raise UsageError(
            f"The task {self.name!r} does not say what it asks.", hint="Give it a `question()`, or a `solver()`."
        )

    def solver(self) -> SolverLike:
        """A `Solver`; or a chain, a Runnable or a function: it takes a sample and gives a prediction, or the answer.

        By default the answerer's.
        """
        samples = partial(self.kept_or, "samples", self.samples)
        return self.answerer.solver(replace(self.question(), samples=samples))

    def question_of(self, sample: Sample) -> SampleQuestion:
        """What answers to `sample` answer, as `askance judge prefer` tells its judges; they see no picture.

        By default the sample's own `question`, where it has one, or else a neutral question.
        """
        own: Any = sample.inputs.get("question")
        return SampleQuestion(own) if isinstance(own, str) and own.strip() else SampleQuestion()

    def words(self) -> tuple[str, ...]:
        """What tells its own options apart in the name of a run."""
        return ()

    def label(self) -> str:
        """Name of its run in tables; by default that of its models. Runs that differ in it alone are the same run."""
        parts = self.parts
        if not any(isinstance(part, Answerer) for part in parts):
            return ""
        answerer = self.answerer
        others = [part for part in parts if not isinstance(part, Answerer)]
        words = [*answerer.words(), *self.words(), *(word for part in others for word in part.words())]
        name = f"{answerer.label()} ({', '.join(words)})" if words else answerer.label()
        return f"{name}{answerer.suffix()}"

    def notes(self) -> tuple[str, ...]:
        """Notes on the data for the reader of the figures, such as how many samples were left out."""
        return ()

    def ids_left_out(self) -> Collection[str]:
        """Ids of the data that are no samples of this run, such as those of other folds."""
        return ()

    @override
    def kept(self) -> JsonObject:
        """The options as a run keeps them, as part of its configuration: its own, and those of its parts.

        Models and paths are left out: models are kept by role, and of files their content tells runs apart.
        """
        joined = super().kept()
        for part in self.parts:
            joined |= part.kept()
        return joined

    @property
    @override
    def models(self) -> Mapping[str, Model]:
        """The models that the task was made with, by role."""
        return dict(super().models) | {role: model for part in self.parts for role, model in part.models.items()}

    def evaluation(self) -> Evaluation:
        """The task with its samples read and its solver made."""
        samples = self.samples()
        prepared = Evaluation(
            samples=samples,
            solver=self.solver(),
            scorer=lambda engine: self.with_engine(engine).scorer(),
            name=self.name,
            label=self.label(),
            options=self.kept(),
            models=self.models,
            notes=(*self.notes(), *(note for part in self.parts for note in part.notes())),
            origin=self.origin(),
        )
        left_out = self.ids_left_out()
        for part in self.parts:
            prepared = part.prepared(prepared, left_out=left_out)
        return prepared

    def evaluation_of_first(self, count: int) -> Evaluation:
        """The evaluation of the first `count` samples; a task that can read them alone reads no others.

        Raises:
            UsageError: `count` is below 1.
        """
        return self.evaluation().limited(count)

    def with_engine(self, engine: Engine) -> Self:
        """The task with another engine; what it has read of its data stays."""
        fields = type(self).prototypes()
        return self.model_copy(
            update={"engine": engine, **{name: getattr(self, name).with_engine(engine) for name in fields}}
        )

    # --- made from a run ---

    @classmethod
    def of_run(
        cls,
        options: Mapping[str, Any],
        *,
        models: Mapping[str, Model] | None = None,
        engine: Engine | None = None,
        samples: Sequence[Sample] = (),
    ) -> Self:
        """The task of a run, made without the data: it can solve and score.

        Args:
            options: as the run keeps them; those that the task does not have any more are left out.
            models: by role.
            engine: its records and mode are used.
            samples: the samples of the run.

        Raises:
            UsageError: the value of an option is not allowed, or names a file or a spec: a run may be a stranger's.
        """
        fields = {**options, **(models or {})}
        parts = {
            field: part.from_kept(fields, task=cls.name, engine=engine) for field, part in cls.prototypes().items()
        }
        own = cls.of_kept(fields, task=cls.name, **parts, engine=engine)
        own._run = {**options, "samples": samples}
        return own

    # --- its class ---

    @classmethod
    def replaces_models(cls, options: Mapping[str, Any]) -> bool:
        """Whether options, by name, choose what takes the place of models: then the settings file's are not used."""
        answerers = [part for part in cls.prototypes().values() if isinstance(part, Answerer)]
        return any(each.replaces_models(options) for each in answerers)

    @classmethod
    def summary(cls) -> str:
        """What the task is, in one line."""
        return (inspect.getdoc(cls) or "").partition("\n")[0]

    @classmethod
    def origin(cls) -> JsonObject:
        """The file with the class, as a path from here; empty for a task of a suite, which is found by its name."""
        suite = cls.name.partition("/")[0]
        if package_of(cls.__module__) in map(package_of, SUITES.modules(suite)):
            return {}
        file = Path(getattr(sys.modules.get(cls.__module__), "__file__", None) or "")
        return {"task": f"{Path(os.path.relpath(file)).as_posix()}@{cls.name}"} if file.is_file() else {}

    @classmethod
    def _refused(cls, error: ValidationError) -> UsageError:
        """The error for the first option that is wrong."""
        errors = error.errors(include_url=False)
        first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
        name = str(first["loc"][0]) if first["loc"] else ""
        takes = cls.takes()
        if first["type"] == "extra_forbidden" or name not in takes:
            return UsageError(f"The task {cls.name!r} takes no {name!r}.", hint=f"It takes {', '.join(takes)}.")
        if first["type"] == "missing":
            return UsageError(f"The task {cls.name!r} needs {name!r}.", hint=way_to_give(name))
        return wrong_value(name, takes[name], first["input"], task=cls.name)


def evaluation_of(task: Task | Evaluation) -> Evaluation:
    """`task` itself if it is an `Evaluation`, else the one that the task makes.

    Raises:
        UsageError: `task` is no task, such as the class of one, or its name.
    """
    if isinstance(task, Evaluation):
        return task
    source: Any = task
    if isinstance(source, str):
        raise UsageError(
            f"{source!r} is a text, not a task.", hint=f'Make one: `find_task("{source}")(data=…, vlm=…)`.'
        )
    if isinstance(source, type):
        name = source.__name__
        raise UsageError(f"{name!r} is a class, not a task.", hint=f"Make one: `{name}(data=…, vlm=…)`.")
    if not hasattr(source, "evaluation"):
        raise UsageError(f"A {type(task).__name__} is no task.", hint="Give a `Task`, or an `Evaluation`.")
    return task.evaluation()


def defined() -> dict[str, type[Task]]:
    """The tasks that this process has loaded, by name; of several with one name, the last one."""
    tasks: dict[str, type[Task]] = {}
    waiting: list[type[Task]] = [Task]
    while waiting:
        task = waiting.pop(0)
        waiting.extend(task.__subclasses__())
        if "name" in vars(task) and task.name:
            tasks[task.name] = task
    return tasks
