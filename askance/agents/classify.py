"""Which categories of atypicality a picture has: from its description, or from the picture itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from askance.agents.categories import LABELS, LINES, Atypicalities, read_categories, read_category_list
from askance.errors import UsageError
from askance.images import Image
from askance.nodes import Node
from askance.tools import TextValue

if TYPE_CHECKING:
    from collections.abc import Mapping

Subject = TypeVar("Subject", str, Image)


class Classifier(Node[Subject, Atypicalities]):
    """What both classifiers share: the definitions, and how the labels are read."""

    gives = Atypicalities

    @override
    def schema(self, subject: Subject) -> Mapping[str, Any]:
        labels = {"type": "array", "items": {"type": "string", "enum": list(LABELS)}, "minItems": 1}
        return {
            "type": "object",
            "properties": {"categories": labels},
            "required": ["categories"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Subject) -> Atypicalities:
        return read_category_list(data, "categories")

    @override
    def read_text(self, text: str, subject: Subject) -> Atypicalities:
        return read_categories(text)


class DescriptionClassifier(Classifier[str]):
    """Gives a described picture the labels of its atypicalities (MAC, section 3.1); takes the description."""

    prompt = "classify_atypicality"

    @override
    def accept(self, given: Any) -> str:
        text = given.text if isinstance(given, TextValue) else given
        if not isinstance(text, str):
            raise UsageError(f"{text!r} is no description of a picture.", hint="Give a text.")
        return text

    @override
    def variables(self, subject: str) -> Mapping[str, Any]:
        return {"description": subject, "definitions": list(LINES)}


class PictureClassifier(Classifier[Image]):
    """Gives a picture that the model sees the labels of its atypicalities: the baseline of MAC."""

    prompt = "classify_from_picture"

    @override
    def accept(self, given: Any) -> Image:
        return Image.load(given)

    @override
    def pictures(self, subject: Image) -> tuple[Image, ...]:
        return (subject,)

    @override
    def variables(self, subject: Image) -> Mapping[str, Any]:
        return {"definitions": list(LINES)}


classify_atypicality = DescriptionClassifier
classify_from_picture = PictureClassifier
