"""Inputs and answers of nodes as pydantic models, and the fields of the JSON object that a node asks for.

The schema that is *sent* is part of the key of recorded answers, so it must not depend on the version of pydantic:
`schema_of` makes it from the fields that a node names, with their limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from askance.nodes.result import Unreadable

if TYPE_CHECKING:
    from askance.chat import JsonObject


class TypedInput(BaseModel):
    """What a node is asked about: checked as it is made, frozen, and equal by value.

    Raises:
        ValidationError: a value of another type, a field too many, or one that is missing.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", arbitrary_types_allowed=True)


class TypedAnswer(BaseModel):
    """What a node answers: checked as it is made, frozen, equal by value, and written and read as JSON.

    Raises:
        ValidationError: a value of another type, a field too many, or one that is missing.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class TextAnswer(TypedAnswer):
    """An answer that is one text; untrusted, since a model wrote it about a picture that may hold text."""

    text: str

    def __str__(self) -> str:
        return self.text


def _plain_value(value: object) -> object:
    return value.text if isinstance(value, TextAnswer) else value


Words = Annotated[str, BeforeValidator(_plain_value)]
"""A text; a `TextAnswer` is taken as its text."""
Texts = Annotated[tuple[str, ...], Field(strict=False)]
"""Texts in their order, given as a tuple or a list."""


def faults(error: Exception) -> str:
    """What is wrong with the values of an input or an answer, in one line."""
    if not isinstance(error, ValidationError):
        return str(error)
    errors = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors(include_url=False)]
    return "; ".join(f"{place}: {fault}" if place else fault for place, fault in errors)


@dataclass(frozen=True, slots=True)
class AnswerField:
    """One field of the JSON object that a node asks for."""

    name: str
    """Its name in the object."""
    schema: JsonObject
    """JSON Schema of its value."""
    fills: str = ""
    """The field of the answer that it fills; empty for one that is asked for and not kept, such as the reasoning."""
    read: Callable[[Mapping[str, Any], str], Any] | None = None
    """Gives the value for the answer from the object and the field's name; raises `Unreadable` where there is none."""


def schema_of(fields: Iterable[AnswerField]) -> JsonObject:
    """JSON Schema of an object with all of `fields`, and no others."""
    properties = {field.name: field.schema for field in fields}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def text_schema(*, least: int | None = None, among: Sequence[str] = ()) -> JsonObject:
    """Schema of a text of at least `least` characters, or of one of the texts in `among`.

    Limits that are None are left out, here and below.
    """
    return {"type": "string", **({"enum": [*among]} if among else _limits(minLength=least))}


def number_schema(most: int) -> JsonObject:
    """Schema of a whole number from 1 to `most`."""
    return {"type": "integer", **_limits(minimum=1, maximum=most)}


def list_schema(items: JsonObject, *, least: int | None = None, most: int | None = None) -> JsonObject:
    """Schema of a list with `least` to `most` items, each of the schema `items`."""
    return {"type": "array", "items": items, **_limits(minItems=least, maxItems=most)}


def _limits(**limits: int | None) -> JsonObject:
    return {name: limit for name, limit in limits.items() if limit is not None}


def text_field(data: Mapping[str, Any], field: str) -> str:
    """The text `field` of a JSON reply.

    Raises:
        Unreadable: it is not there, not text, or blank.
    """
    value = data.get(field)
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"the JSON object needs `{field}` with a text that is not empty")
    return value


def note_field(data: Mapping[str, Any], field: str) -> str:
    """The text `field` of a JSON reply where it may be left out, such as a reason; empty where there is none."""
    value = data.get(field)
    return value if isinstance(value, str) else ""


def text_list(data: Mapping[str, Any], field: str) -> list[str]:
    """The list of texts `field` of a JSON reply, without blank ones.

    Raises:
        Unreadable: it is not there or not a list of texts.
    """
    value: object = data.get(field)
    if not isinstance(value, list):
        raise Unreadable(f"the JSON object needs `{field}` with a list of texts")
    texts = cast("list[object]", value)
    if not all(isinstance(text, str) for text in texts):
        raise Unreadable(f"every item of `{field}` must be a text")
    return [text.strip() for text in cast("list[str]", texts) if text.strip()]
