"""The taxonomy of atypicality that relates two objects, its statement templates, and all statements over some objects."""

from __future__ import annotations

from typing import Literal

Relation = Literal["TR1", "TR2", "OIO", "OR"]
RELATIONS: tuple[Relation, ...] = ("TR1", "TR2", "OIO", "OR")
