"""One question about one picture each: objects, scene text, narration, what is unusual, a caption."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# This one is named like its module, which would stand in its place.
from askance.tools.ocr import RecognizedText, TextBox, ocr

if TYPE_CHECKING:
    from askance.tools.vision import (
        NO_TEXT,
        Caption,
        ImageTool,
        Narration,
        Objects,
        SceneText,
        Unusual,
        caption,
        narration,
        objects,
        scene_text,
        unusual,
    )

__all__ = [
    "NO_TEXT",
    "Caption",
    "ImageTool",
    "Narration",
    "Objects",
    "RecognizedText",
    "SceneText",
    "TextBox",
    "Unusual",
    "caption",
    "narration",
    "objects",
    "ocr",
    "scene_text",
    "unusual",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("askance.tools.vision"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
