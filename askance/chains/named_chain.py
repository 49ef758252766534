"""Chains by name: those of the package and those that installed packages bring, with the options that each declares.

A chain is made by a function, and its keyword-only parameters with a `Field` are the chain's options:

```python
def surprise(
    vlm: ModelLike,
    llm: ModelLike | None = None,
    *,
    tone: Annotated[Literal["dry", "warm"], Field(description="How it is told.")] = "dry",
    prompts: PromptLibrary | None = None,
) -> Chain: ...
```

From these `NamedChain.options` is made, a model of pydantic, and from that the flags of `askance run` and what a run
folder keeps. An option with an `alias` is called so outside of Python. To list the names of chains loads none of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from askance.errors import UsageError
from askance.registry import Registry

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from askance.chains.chain import Chain
    from askance.chat import JsonObject
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary

CHAINS = Registry(
    group="askance.chains",
    what="chain",
    built_in={
        "verbalize": "askance.chains.catalog:verbalize",
        "atypicality": "askance.chains.catalog:atypicality",
        "action-reason": "askance.chains.catalog:action_reason",
        "end-to-end": "askance.chains.catalog:end_to_end",
        "explain": "askance.chains.catalog:explain",
        "identify": "askance.chains.catalog:identify",
        "ask": "askance.chains.catalog:ask",
        "brainstorm": "askance.chains.cartoon:brainstorm",
        "infer": "askance.chains.region_inference:infer",
        "investigate": "askance.investigator.investigate:investigate",
    },
)
"""By name, the function that makes the chain."""

CHOOSING: Mapping[str, frozenset[str]] = {
    "action-reason": frozenset(),
    "end-to-end": frozenset(),
    "investigate": frozenset({"choose", "statement"}),
}
"""Those of them that choose among the options of each picture; where goals are named, with these alone."""


@dataclass(frozen=True, kw_only=True)
class NamedChain:
    """A chain as its name stands for it: before it has models."""

    name: str
    make: Callable[..., Chain]
    """Called with the VLM, the LLM or None, and by keyword `prompts`, a library or None, and the options."""

    @cached_property
    def options(self) -> type[BaseModel]:
        """Its options: each has a type, a default and a description, and is given by its name, or its alias.

        Raises:
            UsageError: one has a type that cannot be resolved.
        """
        from pydantic import ConfigDict, create_model  # the command that names a chain in its help needs none of it

        config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, protected_namespaces=())
        fields: dict[str, Any] = dict(self._declared())
        return create_model(f"options of {self.name}", __config__=config, **fields)

    @property
    def may_choose(self) -> bool:
        """Whether it may choose among the options of each picture; of a package's chain its name does not say it."""
        return self.name in CHOOSING or self.name not in CHAINS.built_in

    @property
    def option_names(self) -> list[str]:
        """What its options are called outside of Python."""
        return [option.alias or name for name, option in self.options.model_fields.items()]

    def with_options(self, values: Mapping[str, Any]) -> ChosenChain:
        """The chain with options that are given, by name or alias; the others have their defaults.

        Raises:
            UsageError: a value is not allowed, or one is missing.
        """
        from pydantic import ValidationError

        try:
            return ChosenChain(named=self, options=self.options(**values))
        except ValidationError as error:
            raise self._refused(error.errors(include_url=False)[0]) from error

    def _refused(self, error: Mapping[str, Any]) -> UsageError:
        """The error for an option that is wrong."""
        called, value = error["loc"][0], error["input"]
        if error["type"] in {"extra_forbidden", "missing"}:
            verb = "takes no" if error["type"] == "extra_forbidden" else "needs the option"
            takes = ", ".join(self.option_names) or "no options"
            return UsageError(f"The chain {self.name!r} {verb} {called!r}.", hint=f"It takes {takes}.")
        name, option = next(
            (name, option) for name, option in self.options.model_fields.items() if called in {name, option.alias}
        )
        if choices := choices_of(option):
            return UsageError(f"There is no {name} {value!r}.", hint=f"Choose one of {', '.join(choices)}.")
        return UsageError(
            f"The option {called!r} of the chain {self.name!r} cannot be {value!r}.", hint=f"{error['msg']}."
        )

    def _declared(self) -> Iterator[tuple[str, tuple[Any, Any]]]:
        """The options: name, type and default of each."""
        from pydantic.fields import FieldInfo

        for each in inspect.signature(self.make).parameters.values():
            if each.kind is each.KEYWORD_ONLY and each.name != "prompts":
                kind = self._resolved(each)
                if get_origin(kind) is Annotated and any(isinstance(part, FieldInfo) for part in get_args(kind)):
                    yield each.name, (kind, ... if each.default is each.empty else each.default)

    def _resolved(self, parameter: inspect.Parameter) -> Any:
        """The annotation of a parameter; None for one that names what only type checkers load and is no option."""
        namespace = getattr(inspect.unwrap(self.make), "__globals__", {})
        alone = type("Alone", (), {"__annotations__": {parameter.name: parameter.annotation}})
        try:
            return get_type_hints(alone, namespace, include_extras=True)[parameter.name]
        except (AttributeError, NameError, TypeError) as error:
            if "Annotated" not in str(parameter.annotation):
                return None
            raise UsageError(
                f"The type of the option {parameter.name!r} of the chain {self.name!r} cannot be read: {error}.",
                hint="Import it where the module is run, not under `TYPE_CHECKING`.",
            ) from error


@dataclass(frozen=True, kw_only=True)
class ChosenChain:
    """A chain with its options, before it has models."""

    named: NamedChain
    options: BaseModel

    @property
    def chooses(self) -> bool | None:
        """Whether it chooses among the options of each picture; None where only the chain that is made can say it."""
        if self.named.name not in CHAINS.built_in:
            return None
        goals = CHOOSING.get(self.named.name)
        return goals is not None and (not goals or getattr(self.options, "goal", None) in goals)

    @property
    def kept(self) -> JsonObject:
        """The options that are given, as a run folder keeps them."""
        return self.options.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def make(self, vlm: ModelLike, llm: ModelLike | None = None, *, prompts: PromptLibrary | None = None) -> Chain:
        """The chain with these models."""
        options = {name: getattr(self.options, name) for name in self.options.model_fields_set}
        return self.named.make(vlm, llm, prompts=prompts, **options)


def types_of(option: FieldInfo) -> Sequence[Any]:
    """The types that an option may have, without None."""
    several = get_origin(option.annotation) in {Union, UnionType}
    return [each for each in (get_args(option.annotation) if several else (option.annotation,)) if each is not NoneType]


def is_repeated(option: FieldInfo) -> bool:
    """Whether an option is a sequence of what a text can be, so that it is given once for each."""
    types = types_of(option)
    if len(types) != 1 or get_origin(types[0]) is not Sequence:
        return False
    (each,) = get_args(types[0])
    return each is str or str in get_args(each)


def choices_of(option: FieldInfo) -> Sequence[str]:
    """The texts that an option can be, where it can be no others."""
    types = types_of(option)
    listed = [each for each in types if get_origin(each) is Literal]
    choices = [choice for each in listed for choice in get_args(each)]
    return choices if listed == types and all(isinstance(choice, str) for choice in choices) else ()


def find_chain(name: str) -> NamedChain | None:
    """The chain of a name; None where there is none.

    Raises:
        UsageError: it cannot be loaded.
    """
    return NamedChain(name=name, make=CHAINS.load(name)) if name in CHAINS else None
