"""What the image tools share: one question about one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from typing_extensions import override

from askance.images import Image
from askance.nodes import Node, Unreadable
from askance.tools.calling import tool_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.tools import BaseTool

Out = TypeVar("Out", bound="Value")
_TEXT = frozenset({str})
Text = TypeVar("Text", bound="TextValue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A typed result: frozen, equal by value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextValue(Value):
    """A typed result that is one text; untrusted, since a model wrote it about a picture that may hold text.

    Raises:
        TypeError: it is no text.
    """

    text: str

    def __post_init__(self) -> None:
        as_text(self.text)

    def __str__(self) -> str:
        return self.text


class ImageTool(Node[Image, Out]):
    """One question about one picture; takes an `Image` or anything that `Image.load` takes but a URL."""

    @override
    def accept(self, given: Any) -> Image:
        return Image.load(given)

    @override
    def pictures(self, subject: Image) -> tuple[Image, ...]:
        return (subject,)

    def as_tool(self, images: Mapping[str, Image] | Image) -> BaseTool:  # pyright: ignore[reportIncompatibleMethodOverride]  # LangChain's takes a schema; a tool of pictures takes the pictures
        """A LangChain tool that an agent can call on the pictures given here, and on no others.

        Args:
            images: one picture (the tool then takes no argument), or pictures by the names that the agent may use. A
                name is never a path: what an agent writes gives no permission to read a file.
        """
        return tool_of(self, images)


class TextTool(ImageTool[Text]):
    """An image tool whose answer is one free text."""

    field: str
    """Name of the text in the JSON form."""

    @override
    def schema(self, subject: Image) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {self.field: {"type": "string", "minLength": 1}},
            "required": [self.field],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Image) -> Text:
        return self.read_text(text_field(data, self.field), subject)

    @override
    def read_text(self, text: str, subject: Image) -> Text:
        return self.gives(text=text.strip())


def as_text(value: object) -> str:
    """`value`, which is text.

    Raises:
        TypeError: it is not.
    """
    if not isinstance(value, str):
        msg = f"{value!r} is no text"
        raise TypeError(msg)
    return value


def as_texts(values: object) -> tuple[str, ...]:
    """`values`, a list of texts, as a tuple.

    Raises:
        TypeError: it is none, or one of them is no text.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        msg = f"{values!r} is no list of texts"
        raise TypeError(msg)
    texts = tuple(cast("Sequence[str]", values))
    if not _TEXT.issuperset(map(type, texts)):
        for text in texts:
            as_text(text)
    return texts


def text_field(data: Mapping[str, Any], field: str) -> str:
    """The text `field` of a JSON reply.

    Raises:
        Unreadable: it is not there, not text, or blank.
    """
    found = data.get(field)
    if not isinstance(found, str) or not found.strip():
        raise Unreadable(f"the JSON object needs `{field}` with a text that is not empty")
    return found


def text_list(data: Mapping[str, Any], field: str) -> list[str]:
    """The list of texts `field` of a JSON reply, without blank ones.

    Raises:
        Unreadable: it is not there or not a list of texts.
    """
    found: Any = data.get(field)
    if not isinstance(found, list):
        raise Unreadable(f"the JSON object needs `{field}` with a list of texts")
    texts: list[Any] = found  # pyright: ignore[reportUnknownVariableType]
    if not all(isinstance(text, str) for text in texts):
        raise Unreadable(f"every item of `{field}` must be a text")
    return [text.strip() for text in texts if text.strip()]
