"""What a tool and an agent are made of: a prompt, a model, and a parser for what the model writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.nodes.result import Call, Failure, Result, Unreadable, given, no_answer, skipped

if TYPE_CHECKING:
    from askance.nodes.node import Node

__all__ = ["Call", "Failure", "Node", "Result", "Unreadable", "given", "no_answer", "skipped"]


def __getattr__(name: str) -> object:
    if name == "Node":  # with it comes LangChain, unless the process leaves it out
        from askance.nodes.node import Node

        return Node
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
