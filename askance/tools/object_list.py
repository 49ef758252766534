"""V: the objects in a picture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.atypicality import distinct
from askance.nodes import Unreadable
from askance.tools.tool import ImageTool, Value, as_texts, text_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.images import Image

MOST_OBJECTS = 5
"""The paper asks for up to five (section 3.2)."""

LONGEST_NAME = 80
"""Characters of a name; what is longer is no name, and may be text from the picture that speaks to a model."""

_BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects(Value):
    """The main objects in a picture, most important first: one to five names, each once."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", as_texts(self.names))

    def __str__(self) -> str:
        return ", ".join(self.names)


class ObjectList(ImageTool[Objects]):
    """Lists the main objects that are visible in the image, at most five."""

    prompt = "objects"
    gives = Objects

    @override
    def schema(self, subject: Image) -> Mapping[str, Any]:
        names = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": MOST_OBJECTS}
        return {
            "type": "object",
            "properties": {"objects": names},
            "required": ["objects"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Image) -> Objects:
        return _objects(text_list(data, "objects"))

    @override
    def read_text(self, text: str, subject: Image) -> Objects:
        lines = [_BULLET.sub("", line) for line in text.strip().splitlines()]
        names = [name.strip().rstrip(".") for line in lines for name in line.split(",")]
        return _objects([name for name in names if name])


def _objects(names: Sequence[str]) -> Objects:
    too_long = next((name for name in names if len(name) > LONGEST_NAME), None)
    if too_long is not None:
        raise Unreadable(f"{too_long[:40]!r}… is no name of an object; name each in at most {LONGEST_NAME} characters")
    found = distinct(names)
    if not found:
        raise Unreadable("no object is named; name at least one")
    return Objects(names=tuple(found[:MOST_OBJECTS]))


objects = ObjectList
