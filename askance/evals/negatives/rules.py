"""What becomes of a negative that something is wrong with: it is dropped, flagged for a person, or left alone.

Only what makes an option set wrong is dropped by default: a negative that is true. What makes it easy is flagged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from askance.errors import BadData
from askance.evals.negatives.wording import Limits
from askance.evals.suite.files import read_map

if TYPE_CHECKING:
    from askance.chat import JsonObject

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
"""What each rule says of a negative that breaks it."""

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

_HINT = 'A file of rules reads like {"actions": {"part": "drop"}, "thresholds": {"most_places": 2}}.'


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(Limits):
    """From where on a rule is broken."""

    least_similar: float = 0.3
    """Lowest cosine similarity to the statement that the negative was made from."""
    most_similar: float = 0.98
    """Highest one; above it an embedder hardly sees a difference."""
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
    """The rules in a JSON file; what it leaves out is as by default.

    Raises:
        BadData: no such file, a rule, an action or a threshold that does not exist.
    """
    content = read_map(path)
    actions, thresholds = (_section(content, name, path) for name in ("actions", "thresholds"))
    unknown = [name for name in content if name not in {"actions", "thresholds"}]
    unknown += [name for name in actions if name not in RULES]
    numbers: dict[str, Any] = {name: type(value) for name, value in asdict(Thresholds()).items()}
    unknown += [name for name in thresholds if name not in numbers]
    if unknown:
        raise BadData(
            f"The file {str(path)!r} has {unknown[0]!r}, which is no rule or threshold.",
            hint=f"Rules: {', '.join(RULES)}. Thresholds: {', '.join(numbers)}.",
        )
    for rule, action in actions.items():
        if action not in get_args(Action):
            raise BadData(f"The file {str(path)!r}: {action!r} is no action for the rule {rule!r}.", hint=_HINT)
    for name, value in thresholds.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise BadData(f"The file {str(path)!r}: the threshold {name!r} cannot be {value!r}.", hint=_HINT)
    read: dict[str, Any] = {name: numbers[name](value) for name, value in thresholds.items()}
    return Rules(actions={**DEFAULTS, **cast("dict[Rule, Action]", actions)}, thresholds=Thresholds(**read))


def _section(content: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    section: Any = content.get(name, {})
    if not isinstance(section, dict):
        raise BadData(f"The file {str(path)!r}: {name!r} is no object.", hint=_HINT)
    return cast("dict[str, Any]", section)
