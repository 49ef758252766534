"""`Options`: an object whose fields are options, so that each is checked, listed and kept with a run.

A task is one, and so is each part that a task is composed of (`askance.evals.part`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError

from askance.errors import UsageError
from askance.models import Model, ModelLike, get_model
from askance.models.factory import model_from_form

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from askance.chat import JsonObject
    from askance.models import Engine
else:
    Engine = Any  # pydantic would look into it

Value = TypeVar("Value")

ROLES = ("vlm", "llm", "combiner")
"""Options that are models: `vlm` sees the picture, `llm` reasons over words, `combiner` makes T_V."""


FOLD = "{fold}"
"""In the name of a model: the fold of the data that a task is run on."""

_FOLDED = (*ROLES, "scorer", "embedder")


def of_own_fold(options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` with the fold in the place of `FOLD` in names of models: each fold has a model of its own.

    Raises:
        UsageError: a model is named so where the task is run on no single fold.
    """
    named = [name for name in _FOLDED if isinstance(options.get(name), str) and FOLD in options[name]]
    fold = str(options.get("fold", ""))
    if named and not fold.isdecimal():
        raise UsageError(
            f"{options[named[0]]!r} names a model for each fold, and the task is run on no single one.",
            hint="Give one: --fold 0. The figures of all folds: one run of each, then `askance compare`.",
        )
    return {**options, **{name: options[name].replace(FOLD, fold) for name in named}}


class Options(BaseModel):
    """An object whose fields are options.

    Give each field a type, a default unless it is required, and below it a docstring of one line.
    """

    model_config = ConfigDict(
        arbitrary_types_allowed=True, defer_build=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    settings: ClassVar[frozenset[str]] = frozenset({"engine"})
    """Fields that are no options: whoever writes or runs the task sets them."""

    engine: Engine | None = Field(default=None, exclude=True, repr=False)
    """Its records, mode and budget are used; by default the engine of the models."""

    _run: Mapping[str, Any] | None = PrivateAttr(default=None)
    """What a run has kept, if the object was made from a run."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:  # what is made from a run has only the options that the run kept
                raise UsageError(f"Nothing says which `{name}` to take.", hint=way_to_give(name))
            return super().__getattr__(name)

    @classmethod
    def option_fields(cls) -> Mapping[str, FieldInfo]:
        """The fields that are options, by the name of the field."""
        return {name: each for name, each in cls.model_fields.items() if name not in cls.settings}

    @classmethod
    def takes(cls) -> Mapping[str, FieldInfo]:
        """The options that users can give, by name."""
        return {each.alias or name: each for name, each in cls.option_fields().items()}

    def values(self) -> dict[str, Any]:
        """The values of the options, by name."""
        return {each.alias or name: getattr(self, name) for name, each in self.option_fields().items()}

    def kept(self) -> JsonObject:
        """The options as a run keeps them, as part of its configuration.

        Models and paths are left out: models are kept by role, and of files their content tells runs apart.
        """
        named = {name for name, each in self.option_fields().items() if not is_named(each)}
        return self.model_dump(mode="json", by_alias=True, include=named, exclude_none=True)

    @property
    def models(self) -> Mapping[str, Model]:
        """The models among the options, by role."""
        by_role = {role: getattr(self, role) for role in ROLES if role in self.option_fields()}
        return {role: get_model(model) for role, model in by_role.items() if model is not None}

    def model_of(self, given: ModelLike) -> Model:
        """The model that an option gives; that of a run that is scored again answers from its records only."""
        if isinstance(given, Mapping) and self.engine is not None:
            return model_from_form(cast("Mapping[str, Any]", given), self.engine)
        return get_model(given, engine=self.engine)

    def kept_or(self, name: str, make: Callable[[], Value]) -> Value:
        """A value that comes from the data or from files, and that a run keeps with its options.

        Args:
            name: under which a run keeps it.
            make: makes it; called only if the object was not made from a run.
        """
        return make() if self._run is None else self._run.get(name, ())

    @classmethod
    def of_kept(cls, options: Mapping[str, Any], *, task: str, **fields: Any) -> Self:
        """The object with the options that a run has kept; those that it does not have any more are left out.

        Args:
            options: values by name of the option; models are those of the run, made anew.
            task: name of the task, for messages.
            fields: further fields, which are not checked.

        Raises:
            UsageError: a value is not allowed, or names a file or a spec: a run may be a stranger's.
        """
        known = {each.alias or name: (name, each) for name, each in cls.option_fields().items()}
        for name, value in options.items():
            if name in known and is_made(known[name][1]) and not isinstance(value, (Mapping, NoneType, Model)):
                raise UsageError(
                    f"The run names {str(value)[:80]!r} as its {name!r}, and what only a run names is not loaded.",
                    hint="A run describes what it was made with, and names none of it; run the task anew.",
                )
        own = {known[name][0]: value for name, value in options.items() if name in known}
        return cls.model_construct(
            **{**fields, **{name: cls._checked(name, value, task) for name, value in own.items()}}
        )

    @classmethod
    def _checked(cls, name: str, value: Any, task: str) -> Any:
        """The value of one field, checked and converted."""
        try:
            return _adapter(cls, name).validate_python(value)
        except ValidationError as error:
            option = cls.model_fields[name]
            raise wrong_value(option.alias or name, option, value, task=task) from error


def way_to_give(name: str) -> str:
    """How an option is given, in words."""
    ways = {"data": "--data FOLDER", "vlm": "--vlm MODEL", "llm": "--llm MODEL"}
    return f"Give {ways.get(name, f'-T {name}=…')} on the command line, or `{name}=` in Python."


def wrong_value(name: str, option: FieldInfo, value: Any, *, task: str) -> UsageError:
    """The error for a value that an option of a task cannot have."""
    return UsageError(
        f"The option {name!r} of the task {task!r} cannot be {value!r}.", hint=f"It takes {type_in_words(option)}."
    )


@cache
def _adapter(options: type[Options], name: str) -> TypeAdapter[Any]:
    """Checks the values of one option."""
    config = ConfigDict(arbitrary_types_allowed=True)
    return TypeAdapter(options.model_fields[name].rebuild_annotation(), config=config)


# --- what an option takes ---

_WORDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    tuple: "a list of texts",
    Sequence: "a list of texts",
}

_BOUNDS: Mapping[str, str] = {"ge": "from", "le": "to"}


def type_in_words(each: FieldInfo) -> str:
    """What an option takes, in words: `a path`, or `one of easy, hard`."""
    bounds = [
        f"{word} {getattr(limit, name)}"
        for limit in each.metadata
        for name, word in _BOUNDS.items()
        if hasattr(limit, name)
    ]
    return " ".join([" or ".join(dict.fromkeys(map(_in_words, kinds_of(each)))), *bounds])


def _in_words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(f'`{each}`' for each in get_args(kind))}"
    return kind if isinstance(kind, str) else _WORDS.get(get_origin(kind) or kind, "a value")


def kinds_of(each: FieldInfo) -> Sequence[Any]:
    """The types that an option takes, without None; a text such as `a model` stands for what is made from a name."""
    return [*_kinds(each.rebuild_annotation())]


def is_named(each: FieldInfo) -> bool:
    """Whether an option is a path or the name of a model."""
    return Path in kinds_of(each) or is_made(each)


def is_made(each: FieldInfo) -> bool:
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
