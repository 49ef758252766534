"""What a tool and an agent are made of: a prompt, a model, and a parser for what the model writes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from askance.nodes.result import Call, Failure, Result, Unreadable, given, no_answer, skipped

if TYPE_CHECKING:
    from askance.nodes.answer import AnswerField, TextAnswer, TypedAnswer
    from askance.nodes.node import Node, TextNode

__all__ = [
    "AnswerField",
    "Call",
    "Failure",
    "Node",
    "Result",
    "TextAnswer",
    "TextNode",
    "TypedAnswer",
    "Unreadable",
    "given",
    "no_answer",
    "skipped",
]

_HOMES = {"AnswerField": "answer", "TextAnswer": "answer", "TypedAnswer": "answer", "Node": "node", "TextNode": "node"}
"""What loads when it is first asked for: with answers comes pydantic, with nodes LangChain unless it is left out."""


def __getattr__(name: str) -> object:
    if home := _HOMES.get(name):
        return getattr(import_module(f"askance.nodes.{home}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
