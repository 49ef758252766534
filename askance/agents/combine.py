"""T_V: one text from what the tools said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.questions import Verbalizations, question_of
from askance.nodes import Node, Result, skipped
from askance.tools import TextValue, text_field

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(TextValue):
    """One description of a picture, combined from its verbalizations (T_V) or given."""


class Combiner(Node[Verbalizations, Description]):
    """Combines the verbalizations of one picture into one description (section 3.2, step i).

    Takes `Verbalizations`; those that are None are left out of the prompt.
    """

    prompt = "combine"
    gives = Description

    @override
    def accept(self, given: Any) -> Verbalizations:
        if isinstance(given, Verbalizations):
            return given
        said = {link: value.text if isinstance(value, TextValue) else value for link, value in dict(given).items()}
        return question_of(Verbalizations, said)

    @override
    def unasked(self, subject: Verbalizations) -> Result[Description] | None:
        return None if self.variables(subject) else skipped("nothing was said of the picture that could be combined")

    @override
    def variables(self, subject: Verbalizations) -> Mapping[str, Any]:
        said = {
            "objects": None if subject.objects is None else list(subject.objects.names),
            "scene_text": None if subject.scene_text is None else str(subject.scene_text),
            "narration": subject.narration,
            "unusual": subject.unusual,
        }
        return {name: value for name, value in said.items() if value is not None}

    @override
    def schema(self, subject: Verbalizations) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {"description": {"type": "string", "minLength": 1}},
            "required": ["description"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Verbalizations) -> Description:
        return Description(text=text_field(data, "description").strip())

    @override
    def read_text(self, text: str, subject: Verbalizations) -> Description:
        return Description(text=text.strip())


combine = Combiner
