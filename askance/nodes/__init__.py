"""What a tool and an agent are made of: a prompt, a model, and a parser for what the model writes."""

from __future__ import annotations

from askance.nodes.node import Node, Unreadable
from askance.nodes.result import Call, Result, given, skipped

__all__ = ["Call", "Node", "Result", "Unreadable", "given", "skipped"]
