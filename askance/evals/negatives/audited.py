"""What an audit finds of each negative, and of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from askance.agents.judging import Verdict
    from askance.evals.negatives.blind import Blind
    from askance.evals.negatives.files import HardNegative
    from askance.evals.negatives.giveaways import GiveAways
    from askance.evals.negatives.rules import Decision, Rule, Rules
    from askance.evals.negatives.wording import Change, Sameness

Judged: TypeAlias = Literal["true", "false", "unclear", "unscored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One negative, and what was found of it."""

    negative: HardNegative
    same: Sameness
    """As the true statement that is nearest in wording."""
    nearest: str
    alike: float
    """How alike the two are in letters, from 0 to 1."""
    repeats: bool
    """Whether an earlier negative of the image says the same, but for case and punctuation."""
    change: Change
    verdicts: tuple[Verdict, ...] = ()
    """Of the judge, one for each true statement of the image; empty where none was asked."""
    similarity: float | None = None
    """Cosine with the statement that it was made from; None without an embedder."""
    chosen: float | None = None
    """How often a blind model took it for true, as a share of its answers; None where none was asked."""
    solved: bool | None = None
    """Whether a blind model told its image's true options in every order."""
    telling: float | None = None
    """Probability of being a negative by wording alone."""
    broken: tuple[Rule, ...] = ()
    decision: Decision = "keep"

    @property
    def equivalent(self) -> Judged | None:
        """Whether it means the same as any true statement; None where no judge was asked."""
        if not self.verdicts:
            return None
        said = {str(verdict) for verdict in self.verdicts}
        order: tuple[Judged, ...] = ("true", "unclear", "unscored", "false")
        return next(value for value in order if value in said)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an audit found."""

    rows: tuple[Audited, ...]
    rules: Rules
    give_aways: GiveAways
    blind: Blind | None = None
    judge: str | None = None
    """Name of the judge, where one was asked."""
    embedder: str | None = None
    decisions: Counter[Decision] = field(init=False)
    broken: Counter[Rule] = field(init=False)
    """How many negatives break each rule; one may break several."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "decisions", Counter(row.decision for row in self.rows))
        object.__setattr__(self, "broken", Counter(rule for row in self.rows for rule in row.broken))

    def dropped(self) -> Mapping[str, frozenset[str]]:
        """Texts to be taken out, by image."""
        texts: dict[str, set[str]] = {}
        for row in self.rows:
            if row.decision == "drop":
                texts.setdefault(row.negative.key, set()).add(row.negative.text)
        return {key: frozenset(found) for key, found in texts.items()}
