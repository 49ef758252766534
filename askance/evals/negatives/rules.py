"""The rules of audits: which negatives are dropped, and which are flagged for a person to look at.

By default a negative is dropped if it makes its options wrong: because it is true, or says the same as another one. A
negative that makes its options too easy is flagged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from askance.chat import JsonObject
from askance.documents import schema_violation
from askance.errors import BadData
from askance.evals.negatives.edits import EditLimits
from askance.evals.suite.files import read_json

Rule: TypeAlias = Literal[
    "duplicate",
    "near duplicate",
    "repeated",
    "equivalent",
    "unclear",
    "unscored",
    "part",
    "similarity",
    "solvable",
    "telling",
]
Action: TypeAlias = Literal["drop", "flag", "off"]
Decision: TypeAlias = Literal["keep", "flag", "drop"]

RULES: Mapping[Rule, str] = {
    "duplicate": "has the words of a true statement of its image",
    "near duplicate": "differs from a true statement in order, articles or spelling alone",
    "repeated": "says what another negative of its image says",
    "equivalent": "means the same as a true statement, by the judge",
    "unclear": "may mean the same as a true statement, by the judge",
    "unscored": "the judge gave no verdict on it",
    "part": "changes something else than its kind says, or more",
    "similarity": "is too far from the statement it was made from, or too near",
    "solvable": "belongs to an image whose true options are found without it, in every order",
    "telling": "is known for a negative by its wording, where wording gives negatives away",
}
"""What is wrong with a negative that breaks a rule, in words."""

DEFAULTS: Mapping[Rule, Action] = {
    "duplicate": "drop",
    "near duplicate": "flag",
    "repeated": "drop",
    "equivalent": "drop",
    "unclear": "flag",
    "unscored": "flag",
    "part": "flag",
    "similarity": "flag",
    "solvable": "flag",
    "telling": "flag",
}

_SCHEMA = Path(__file__).with_name("rules.schema.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(EditLimits):
    """The values from which on a negative breaks a rule."""

    least_similar: float = 0.3
    """Lowest cosine similarity to the statement that the negative was made from."""
    most_similar: float = 0.98
    """Highest cosine similarity; above it an embedder hardly sees a difference."""
    telling: float = 0.9
    """Probability of being a negative by wording alone, from models that have not seen its image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one audit."""

    actions: Mapping[Rule, Action] = field(default_factory=lambda: dict(DEFAULTS))
    thresholds: Thresholds = field(default_factory=Thresholds)

    def decision(self, broken: tuple[Rule, ...]) -> Decision:
        """What becomes of a negative that breaks these rules."""
        actions = {self.actions[rule] for rule in broken}
        return "drop" if "drop" in actions else "flag" if "flag" in actions else "keep"

    def form(self) -> JsonObject:
        """The rules as JSON, as `read_rules` takes them."""
        return {"actions": dict(self.actions), "thresholds": asdict(self.thresholds)}


def read_rules(path: Path) -> Rules:
    """The rules in a JSON file; what the file leaves out has its default.

    Raises:
        BadData: there is no such file, or it has a rule, an action or a threshold that does not exist.
    """
    content: Any = read_json(path)
    if (wrong := schema_violation(content, _SCHEMA, whole="the file")) is not None:
        raise BadData(
            f"The file {str(path)!r} cannot be used as rules: {wrong}.",
            hint="`askance negatives rules` prints every rule, its action (drop, flag or off) and every threshold.",
        )
    return Rules(
        actions={**DEFAULTS, **content.get("actions", {})}, thresholds=Thresholds(**content.get("thresholds", {}))
    )
