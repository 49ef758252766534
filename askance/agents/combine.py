"""T_V: one text from what the tools said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.nodes import Result, TextAnswer, TextNode, skipped
from askance.nodes.answer import TypedInput, Words
from askance.tools import Objects, SceneText

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verbalizations(TypedInput):
    """What the tools said of one picture; what is None was not asked and is left out of the prompt."""

    objects: Objects | None = None
    scene_text: SceneText | None = None
    narration: Words | None = None
    unusual: Words | None = None


class Description(TextAnswer):
    """One description of a picture, combined from its verbalizations (T_V) or given."""


class Combiner(TextNode[Verbalizations, Description]):
    """Combines the verbalizations of one picture into one description (section 3.2, step i)."""

    prompt = "combine"
    takes = Verbalizations
    gives = Description
    field = "description"

    @override
    def unasked(self, subject: Verbalizations) -> Result[Description] | None:
        return None if self.variables(subject) else skipped("nothing was said of the picture that could be combined")

    @override
    def variables(self, subject: Verbalizations) -> Mapping[str, Any]:
        parts = {
            "objects": None if subject.objects is None else list(subject.objects.names),
            "scene_text": None if subject.scene_text is None else str(subject.scene_text),
            "narration": subject.narration,
            "unusual": subject.unusual,
        }
        return {name: value for name, value in parts.items() if value is not None}


combine = Combiner
