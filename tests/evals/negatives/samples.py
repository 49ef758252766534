"""A writer whose negatives are known, and statements to write them for."""

from __future__ import annotations

import json
import re
from typing import Any

from askance.chat import ChatRequest
from askance.evals.negatives import TrueStatements
from askance.models import ScriptedModel
from tests.scripted import ENFORCED

SOURCES = (
    TrueStatements(
        key="0/10.jpg", true=("I should drink tea Because it is hot", "I should buy tea because it calms me ")
    ),
    TrueStatements(key="1/21.jpg", true=("I should fly Because it is fast",)),
)

_STATEMENT = re.compile(r"<<statement ([0-9a-f]+)\n(.*)\n\1>>", re.DOTALL)
_TASKS = {
    "Change the action,": "action",
    "Keep the action": "reason",
    "Exchange at least": "object",
    "Change one adjective": "adjective",
    "Write a statement": "statement",
    "Replace one verb": "verb",
    "Keep the first half": "causal",
}


def asked(request: ChatRequest) -> tuple[str, str]:
    """The kind and the true statement of a request."""
    text = request.messages[1].text
    found = _STATEMENT.search(text)
    assert found is not None
    return next(kind for words, kind in _TASKS.items() if words in text), found[2]


def negative(kind: str, statement: str) -> str:
    """What the writer makes of a statement."""
    return f"{statement.strip()} {kind}wise"


def writer(**changed: Any) -> ScriptedModel:
    """Writes `negative` of what it is asked; `changed` has other replies by kind."""

    def reply(request: ChatRequest) -> Any:
        kind, statement = asked(request)
        if kind in changed:
            return changed[kind]
        item = {"replaced": "", "replacement": f"{kind}wise", "statement": negative(kind, statement)}
        return json.dumps({"negatives": [item]})

    return ScriptedModel(reply, identity="writer", capabilities=ENFORCED)
