"""Example turns: questions with their answers, shown to a model in front of the question that it is asked.

The values of an example are as little trusted as those of a question. Its answer cannot be fenced, since a model copies
the form: untrusted text in it is a JSON string or one line, without marks of chat templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias, cast

from pydantic import BeforeValidator, ValidationError, field_validator, model_validator

from askance.errors import UsageError
from askance.images import Image
from askance.nodes.answer import Texts, TypedInput, faults

if TYPE_CHECKING:
    from askance.chat import Json, JsonObject

ExampleValue: TypeAlias = str | bool | int | Texts
"""A value of a prompt's input."""

ANSWER = "answer"
"""Name of the prompt's input that takes the answer of an example."""

_TAKEN = ("examples", "image")


def _picture(source: Any) -> Image | None:
    """The picture in `source`: anything that `Image.load` takes, or its form, of which only the digest is known."""
    if source is None or not isinstance(source, Mapping):
        return None if source is None else Image.load(source)
    form = cast("Mapping[str, Any]", source)
    if {*form} != {"name", "sha256"}:
        raise ValueError("a picture has `name` and `sha256`, and nothing else")
    return Image.from_form(form)


class Example(TypedInput):
    """A question and its answer, shown to a model in front of the question that it is asked.

    Raises:
        ValidationError: a value of another type, or a field that there is not.
        BadImage: the picture cannot be used.
    """

    values: Mapping[str, ExampleValue]
    """By name: what the agent is asked with, such as `description` and `options`, and inputs of its prompt's block
    `example:`."""
    answer: ExampleValue | None = None
    """The answer: the input `answer` of the prompt's block `example:`."""
    image: Annotated[Image | None, BeforeValidator(_picture)] = None
    """The picture, in front of the example's question."""

    @field_validator("values")
    @classmethod
    def _named(cls, values: Mapping[str, ExampleValue]) -> Mapping[str, ExampleValue]:
        for name in _TAKEN:
            if name in values:
                raise ValueError(f"`{name}` is no value of an example")
        return dict(values)

    @model_validator(mode="after")
    def _answered_once(self) -> Self:
        if self.answer is not None and ANSWER in self.values:
            raise ValueError(f"`{ANSWER}` is given twice, by itself and among the values")
        return self

    @property
    def variables(self) -> dict[str, ExampleValue]:
        """Its values, and its answer as `answer`."""
        return {**self.values, **({} if self.answer is None else {ANSWER: self.answer})}

    def form(self) -> JsonObject:
        """The example as JSON, with its picture's name and digest."""
        form: JsonObject = {"values": {name: _as_json(value) for name, value in self.values.items()}}
        if self.answer is not None:
            form["answer"] = _as_json(self.answer)
        if self.image is not None:
            form["image"] = self.image.form()
        return form

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Example:
        """The example in `form`; its picture is known by its digest only, and no file is read.

        Raises:
            UsageError: the form is malformed.
        """
        picture = form.get("image")
        if picture is not None and not isinstance(picture, Mapping):
            raise _no_example(form, "its picture has no `name` and `sha256`")
        return examples_of([form])[0]


def examples_of(examples: Any) -> tuple[Example, ...]:
    """The examples in `examples`, each an `Example` or a mapping of its fields.

    Raises:
        UsageError: one is neither, or what is given is no list.
        BadImage: a picture cannot be used.
    """
    if not isinstance(examples, (list, tuple)):
        raise _no_example(examples, "it is no list of examples")
    return tuple(each if isinstance(each, Example) else _example(each) for each in cast("Sequence[Any]", examples))


def _example(fields: Any) -> Example:
    try:
        return Example(**fields)
    except (TypeError, ValidationError) as error:
        raise _no_example(fields, faults(error)) from error


def _no_example(value: object, why: str) -> UsageError:
    return UsageError(
        f"{repr(value)[:80]} cannot be shown as an example: {why}.",
        hint="Give each example `values`, and where it has them `answer` and `image`.",
    )


def _as_json(value: ExampleValue) -> Json:
    return list(value) if isinstance(value, tuple) else value


Examples = Annotated[tuple[Example, ...], BeforeValidator(examples_of)]
"""Examples in their order, given as a list of them or of their forms."""
