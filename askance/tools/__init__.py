"""One question about one picture each: objects, scene text, narration, what is unusual, a caption."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.tools.descriptions import Caption, Narration, Unusual, caption, narration, unusual
    from askance.tools.object_list import Objects, objects
    from askance.tools.rapid_ocr import ReadText, TextBox, ocr
    from askance.tools.text_reader import NO_TEXT, SceneText, scene_text
    from askance.tools.tool import ImageTool, TextValue, Value, text_field, text_list

_HOMES = {
    "descriptions": (
        "Caption",
        "Narration",
        "Unusual",
        "caption",
        "narration",
        "unusual",
    ),
    "object_list": (
        "Objects",
        "objects",
    ),
    "rapid_ocr": (
        "ReadText",
        "TextBox",
        "ocr",
    ),
    "text_reader": (
        "NO_TEXT",
        "SceneText",
        "scene_text",
    ),
    "tool": (
        "ImageTool",
        "TextValue",
        "Value",
        "text_field",
        "text_list",
    ),
}
"""Modules and what is shown of them; each is loaded when something of it is first asked for."""

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


def __getattr__(name: str) -> object:
    for home, shown in _HOMES.items():
        if name in shown:
            return getattr(import_module(f"askance.tools.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
