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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError

from askance.errors import UsageError
from askance.evals.evaluation import Evaluation
from askance.evals.sample import SampleQuestion
from askance.evals.suite_registry import SUITES, package_of
from askance.models import get_model

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from askance.chat import JsonObject
    from askance.evals.sample import Sample
    from askance.evals.scorer import Scorer
    from askance.evals.solver import SolverLike
    from askance.models import Engine, Model
else:
    Engine = Any  # pydantic would look into it

Found = TypeVar("Found")

ROLES = ("vlm", "llm", "combiner")
"""Options that are models: `vlm` sees the picture, `llm` reasons over words, `combiner` makes T_V."""

WORKSPACE = ("engine", "prompts", "allow_folders")
"""Options that the command line fills in, and no file of a task or a grid."""


class Task(BaseModel):
    """A task. Its fields are its options, and the first line of its docstring is its summary.

    Give each field a type, a default unless it is required, and below it a docstring of one line.
    """

    model_config = ConfigDict(
        arbitrary_types_allowed=True, defer_build=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    name: ClassVar[str] = ""
    """Name by which the task is found, such as `pittads/mac`."""

    instead_of_models: ClassVar[tuple[str, ...]] = ()
    """Options that take the place of models; with one of them the settings file's models are not used."""

    engine: Engine | None = Field(default=None, exclude=True, repr=False)
    """Its records, mode and budget are used; by default the engine of the models."""

    _run: Mapping[str, Any] | None = PrivateAttr(default=None)
    """Options that a run has kept, if the task was made from a run."""

    def __init__(self, **options: Any) -> None:
        """Makes the task; an option that is None counts as not given.

        Raises:
            UsageError: the task has no such option, a required one is missing, or a value is not allowed.
        """
        given = {name: value for name, value in options.items() if value is not None}
        given |= {role: get_model(given[role]) for role in ROLES if role in given and role in type(self).model_fields}
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise self._refused(error) from error
        self.check()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:  # a task made from a run has only the options that the run kept
                raise UsageError(f"Nothing says which `{name}` to take.", hint=_needed(name))
            return super().__getattr__(name)

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuses options that would hide an attribute of every task."""
        super().__init_subclass__(**more)
        hidden = next((name for name in inspect.get_annotations(cls) if name != "name" and hasattr(Task, name)), None)
        if hidden is not None:
            raise UsageError(
                f"The task {cls.name!r} has an option called {hidden!r}, which every task has itself.",
                hint="Give it another name, and write `Field(alias=…)` where it is to be called so all the same.",
            )

    def check(self) -> None:
        """Checks options that depend on each other; not called for a task that is made from a run.

        Whoever overrides it calls `super().check()` first.

        Raises:
            UsageError: they do not go together.
        """

    @abstractmethod
    def samples(self) -> Sequence[Sample]:
        """The samples, read from the data. Samples that share a picture and name no group are put into one group."""

    @abstractmethod
    def solver(self) -> SolverLike:
        """A `Solver`; or a chain, a Runnable or a function: it takes a sample and gives a prediction, or the answer."""

    @abstractmethod
    def scorer(self) -> Scorer:
        """How answers are scored."""

    def question_of(self, sample: Sample) -> SampleQuestion:
        """What answers to `sample` answer, as `askance judge prefer` tells its judges; they see no picture.

        By default the sample's own `question`, where it has one, or else a neutral question.
        """
        own: Any = sample.inputs.get("question")
        return SampleQuestion(own) if isinstance(own, str) and own.strip() else SampleQuestion()

    def label(self) -> str:
        """Name of its run in tables; by default that of its models. Runs that differ in it alone are the same run."""
        return ""

    def notes(self) -> tuple[str, ...]:
        """Notes on the data for the reader of the figures, such as how many samples were left out."""
        return ()

    def kept(self) -> JsonObject:
        """The options as a run keeps them, as part of its configuration.

        Models and paths are left out: models are kept by role, and of files their content tells runs apart.
        """
        told = {name for name, each in type(self).model_fields.items() if not _is_named(each)}
        return self.model_dump(mode="json", by_alias=True, include=told, exclude_none=True)

    @property
    def models(self) -> Mapping[str, Model]:
        """The models that the task was made with, by role."""
        given = {role: getattr(self, role) for role in ROLES if role in type(self).model_fields}
        return {role: model for role, model in given.items() if model is not None}

    def evaluation(self) -> Evaluation:
        """The task with its samples read and its solver made."""
        return Evaluation(
            samples=self.samples(),
            solver=self.solver(),
            scorer=lambda engine: self.model_copy(update={"engine": engine}).scorer(),
            name=self.name,
            label=self.label(),
            options=self.kept(),
            models=self.models,
            notes=self.notes(),
            origin=self.origin(),
        )

    def evaluation_of_first(self, count: int) -> Evaluation:
        """The evaluation of the first `count` samples; a task that can read them alone reads no others.

        Raises:
            UsageError: `count` is below 1.
        """
        return self.evaluation().limited(count)

    def found(self, name: str, look: Callable[[], Found]) -> Found:
        """A value that comes from the data and that a run keeps with its options.

        Args:
            name: under which a run keeps it.
            look: finds it in the data; called only if the task was not made from a run.
        """
        return look() if self._run is None else self._run.get(name, ())

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
        fields = {each.alias or name: (name, each) for name, each in cls.model_fields.items()}
        for name, value in options.items():
            if name in fields and _is_made(fields[name][1]) and not isinstance(value, (Mapping, NoneType)):
                raise UsageError(
                    f"The run names {str(value)[:80]!r} as its {name!r}, and what only a run names is not loaded.",
                    hint="A run describes what it was made with, and names none of it; run the task anew.",
                )
        there = {fields[key][0]: value for key, value in {**options, **(models or {})}.items() if key in fields}
        made = cls.model_construct(**{name: cls._checked(name, value) for name, value in there.items()}, engine=engine)
        made._run = {**options, "samples": samples}
        return made

    @classmethod
    def takes(cls) -> Mapping[str, FieldInfo]:
        """The options that users can give, by name."""
        return {each.alias or name: each for name, each in cls.model_fields.items() if name not in WORKSPACE}

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
            return UsageError(f"The task {cls.name!r} needs {name!r}.", hint=_needed(name))
        return cls._wrong(name, first["input"])

    @classmethod
    def _checked(cls, name: str, value: Any) -> Any:
        """The value of one option, checked and converted."""
        try:
            return _adapter(cls, name).validate_python(value)
        except ValidationError as error:
            raise cls._wrong(cls.model_fields[name].alias or name, value) from error

    @classmethod
    def _wrong(cls, name: str, value: Any) -> UsageError:
        return UsageError(
            f"The option {name!r} of the task {cls.name!r} cannot be {value!r}.",
            hint=f"It takes {type_in_words(cls.takes()[name])}.",
        )


def _needed(name: str) -> str:
    ways = {"data": "--data FOLDER", "vlm": "--vlm MODEL", "llm": "--llm MODEL"}
    return f"Give {ways.get(name, f'-T {name}=…')} on the command line, or `{name}=` in Python."


def defined() -> dict[str, type[Task]]:
    """The tasks that this process has loaded, by name; of several with one name, the last one."""
    found: dict[str, type[Task]] = {}
    waiting: list[type[Task]] = [Task]
    while waiting:
        task = waiting.pop(0)
        waiting.extend(task.__subclasses__())
        if "name" in vars(task) and task.name:
            found[task.name] = task
    return found


@cache
def _adapter(task: type[Task], name: str) -> TypeAdapter[Any]:
    """Checks the values of one option."""
    config = ConfigDict(arbitrary_types_allowed=True)
    return TypeAdapter(task.model_fields[name].rebuild_annotation(), config=config)


_WORDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    tuple: "a list of texts",
    Sequence: "a list of texts",
}


def type_in_words(each: FieldInfo) -> str:
    """What an option takes, in words: `a path`, or `one of easy, hard`."""
    bounds = [
        f"{word} {getattr(limit, name)}"
        for limit in each.metadata
        for name, word in _BOUNDS.items()
        if hasattr(limit, name)
    ]
    return " ".join([" or ".join(dict.fromkeys(map(_in_words, kinds_of(each)))), *bounds])


_BOUNDS: Mapping[str, str] = {"ge": "from", "le": "to"}


def _in_words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(f'`{each}`' for each in get_args(kind))}"
    return kind if isinstance(kind, str) else _WORDS.get(get_origin(kind) or kind, "a value")


def kinds_of(each: FieldInfo) -> Sequence[Any]:
    """The types that an option takes, without None; a text such as `a model` stands for what is made from a name."""
    return [*_kinds(each.rebuild_annotation())]


def _is_named(each: FieldInfo) -> bool:
    """Whether an option is a path or the name of a model."""
    return Path in kinds_of(each) or _is_made(each)


def _is_made(each: FieldInfo) -> bool:
    """Whether an option takes an object, which a text names: a model, an embedder, a retriever."""
    return any(isinstance(kind, str) for kind in kinds_of(each))


def _kinds(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        named = [each for each in more if isinstance(each, str)]
        yield from named or _kinds(inner)
    elif get_origin(annotation) in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _kinds(each)
    elif annotation is not NoneType:
        yield annotation
