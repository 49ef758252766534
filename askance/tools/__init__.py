"""One question about one picture each: objects, scene text, narration, what is unusual, a caption."""

from __future__ import annotations

from askance.tools.descriptions import Caption, Narration, Unusual, caption, narration, unusual
from askance.tools.object_list import Objects, objects
from askance.tools.ocr import ReadText, TextBox, ocr
from askance.tools.text_reader import NO_TEXT, SceneText, scene_text
from askance.tools.tool import ImageTool, TextValue, Value, text_field, text_list

__all__ = [
    "NO_TEXT",
    "Caption",
    "ImageTool",
    "Narration",
    "Objects",
    "ReadText",
    "SceneText",
    "TextBox",
    "TextValue",
    "Unusual",
    "Value",
    "caption",
    "narration",
    "objects",
    "ocr",
    "scene_text",
    "text_field",
    "text_list",
    "unusual",
]
