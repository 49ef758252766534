"""T: the text in a picture, read by a VLM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.tools.tool import ImageTool, Value, as_texts, text_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.images import Image

NO_TEXT = "NO TXT"
"""What the paper's protocol answers where a picture holds no text (Listing 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneText(Value):
    """The lines of text in a picture, none where there is no text.

    Whoever made the picture wrote them: they are untrusted and enter later prompts only behind a fence.
    """

    lines: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", as_texts(self.lines))

    def __str__(self) -> str:
        return "\n".join(self.lines) or NO_TEXT


class SceneTextReader(ImageTool[SceneText]):
    """Reads the text that is visible in the image."""

    prompt = "scene_text"
    gives = SceneText

    @override
    def schema(self, subject: Image) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {"lines": {"type": "array", "items": {"type": "string"}}},
            "required": ["lines"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Image) -> SceneText:
        return scene_text_of(text_list(data, "lines"))

    @override
    def read_text(self, text: str, subject: Image) -> SceneText:
        return scene_text_of([line.strip() for line in text.splitlines() if line.strip()])


def scene_text_of(lines: list[str]) -> SceneText:
    """The lines, none where the only one says that there is no text."""
    if len(lines) == 1 and lines[0].strip(" .'\"`").upper() == NO_TEXT:
        lines = []
    return SceneText(lines=tuple(lines))


scene_text = SceneTextReader
