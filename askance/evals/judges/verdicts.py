"""Labelled pairs with the verdicts of a judge, and the judge's figures over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from askance import statistics
from askance.statistics import Interval, Resampling

if TYPE_CHECKING:
    from askance.agents import VerdictValue
    from askance.chat import JsonObject
    from askance.statistics import Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """The label and the verdicts of one pair, without its texts."""

    group: str
    """Pairs of one group are resampled together."""
    id: str
    """The sample of a run that the candidate answers; empty where the labels do not say."""
    candidate: str
    """sha256 of the candidate, hex; it finds the same answer in a run."""
    truth: bool | None
    """Whether people say that both texts mean the same; None where their votes tie."""
    votes: tuple[bool | None, ...] = ()
    """What each person says, None where one said nothing."""
    verdicts: tuple[VerdictValue | None, ...] = ()
    """The judge's, one for each draw, None where it is unscored. The first one counts; tied votes have none."""
    swapped: VerdictValue | None = None
    """The judge's verdict with reference and candidate in each other's place."""
    members: tuple[VerdictValue | None, ...] = ()
    """What each member of a panel says."""
    outcome: str = "answered"
    """Of the first draw."""
    reason: str = ""
    """Why the first draw is unscored, cut."""

    @property
    def verdict(self) -> VerdictValue | None:
        """What the judge says."""
        return self.verdicts[0] if self.verdicts else None

    @property
    def says(self) -> bool | None:
        """Whether the judge says that both mean the same; `unclear` counts as no, and None is unscored."""
        return None if self.verdict is None else self.verdict == "true"

    def form(self) -> JsonObject:
        """The pair as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_form(cls, form: dict[str, Any]) -> JudgedPair:
        """The pair that `form` stands for."""
        fields: dict[str, Any] = {
            name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for name, value in form.items()
        }
        return cls(**fields)


def digest_of(text: str) -> str:
    """sha256 of a text, hex."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --- figures ---


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFigure:
    """One figure of a card."""

    name: str
    value: float | None
    """None where there is nothing to compute it from."""
    interval: Interval | None
    pairs: int
    """How many it is computed from."""
    share: bool
    """Whether it is a share; else it is a measure of agreement: 0 is chance, 1 the most."""


def figures_of_pairs(pairs: Sequence[JudgedPair], *, seed: int = 0) -> tuple[CardFigure, ...]:
    """All figures of a card.

    `accuracy` stands beside the `base rate`, that of always giving the more frequent label. `flip rate` is the share of
    pairs whose verdict changes when reference and candidate change places; `self-consistency` that of pairs of draws
    with the same verdict.

    Args:
        pairs: labelled pairs, judged.
        seed: of the bootstraps.
    """
    labelled = [pair for pair in pairs if pair.truth is not None]
    return (
        *_accuracy_figures(labelled, seed),
        *_agreement_figures(labelled, seed),
        *_consistency_figures(labelled, seed),
        *_rater_figures(pairs, seed),
    )


def _accuracy_figures(labelled: Sequence[JudgedPair], seed: int) -> Iterator[CardFigure]:
    scored = [pair for pair in labelled if pair.says is not None]
    more = 2 * sum(bool(pair.truth) for pair in scored) >= len(scored)
    yield share_figure("accuracy", [(pair.says == pair.truth, pair.group) for pair in scored], seed)
    yield share_figure("base rate", [(pair.truth == more, pair.group) for pair in scored], seed)
    yield share_figure("sensitivity", [(pair.says is True, pair.group) for pair in scored if pair.truth], seed)
    yield share_figure("specificity", [(pair.says is False, pair.group) for pair in scored if not pair.truth], seed)
    yield share_figure("unscored", [(pair.says is None, pair.group) for pair in labelled], seed)


def _agreement_figures(labelled: Sequence[JudgedPair], seed: int) -> Iterator[CardFigure]:
    resampling = Resampling(seed=seed, clusters=[pair.group for pair in labelled])
    truth, answers = [pair.truth for pair in labelled], [pair.says for pair in labelled]
    both = list(zip(truth, answers, strict=True))
    yield coefficient_figure("cohen kappa", statistics.cohen_kappa(truth, answers, resampling=resampling))
    yield coefficient_figure("gwet ac1", statistics.gwet_ac1(both, resampling=resampling))
    yield coefficient_figure("krippendorff alpha", statistics.krippendorff_alpha(both, resampling=resampling))


def _consistency_figures(labelled: Sequence[JudgedPair], seed: int) -> Iterator[CardFigure]:
    resampling = Resampling(seed=seed, clusters=[pair.group for pair in labelled])
    both = [pair for pair in labelled if pair.verdict is not None and pair.swapped is not None]
    if any(pair.swapped is not None for pair in labelled):
        yield share_figure("flip rate", [(pair.verdict != pair.swapped, pair.group) for pair in both], seed)
    if any(len(pair.verdicts) > 1 for pair in labelled):
        draws = [pair.verdicts for pair in labelled]
        yield coefficient_figure("self-consistency", statistics.pairwise_agreement(draws, resampling=resampling))
    if any(len(pair.members) > 1 for pair in labelled):
        members = [pair.members for pair in labelled]
        yield coefficient_figure("members, alpha", statistics.krippendorff_alpha(members, resampling=resampling))
        yield coefficient_figure("members, pairs", statistics.pairwise_agreement(members, resampling=resampling))


def _rater_figures(pairs: Sequence[JudgedPair], seed: int) -> Iterator[CardFigure]:
    voted = [pair for pair in pairs if sum(vote is not None for vote in pair.votes) > 1]
    if not voted:
        return
    votes = [pair.votes for pair in voted]
    resampling = Resampling(seed=seed, clusters=[pair.group for pair in voted])
    yield coefficient_figure("people, pairs", statistics.pairwise_agreement(votes, resampling=resampling))
    yield coefficient_figure("people, ac1", statistics.gwet_ac1(votes, resampling=resampling))
    yield coefficient_figure("people, alpha", statistics.krippendorff_alpha(votes, resampling=resampling))


def share_figure(name: str, rows: Sequence[tuple[bool, str]], seed: int) -> CardFigure:
    """The share of rows that are true, each with its group."""
    values, groups = [float(value) for value, _ in rows], [group for _, group in rows]
    estimate = statistics.mean_estimate(values, groups, seed=seed, binary=True)
    interval = None if estimate.value is None else estimate.interval
    return CardFigure(name=name, value=estimate.value, interval=interval, pairs=len(rows), share=True)


def coefficient_figure(name: str, agreement: Agreement) -> CardFigure:
    """A measure of agreement as a figure of a card."""
    share = agreement.measure == "pairwise agreement"
    return CardFigure(name=name, value=agreement.value, interval=agreement.interval, pairs=agreement.items, share=share)


# --- votes beside labels ---

VotesBy: TypeAlias = Literal["draws", "members"]
"""Whose votes they are: several draws of one judge, or the members of a panel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """A point of the reliability curve: pairs on which the same share of the votes says true."""

    said: float
    """That share; `unclear` does not say true, and votes that cannot be read are left out."""
    pairs: int
    value: float
    """The share of these pairs that people call true."""
    interval: Interval | None

    def form(self) -> JsonObject:
        """The point as JSON, its interval as two numbers."""
        limits = None if self.interval is None else [self.interval.low, self.interval.high]
        return {"said": self.said, "pairs": self.pairs, "value": self.value, "interval": limits}


def votes_of(pairs: Sequence[JudgedPair]) -> VotesBy | None:
    """Whose votes `pairs` have; None if each has one vote."""
    if any(len(pair.members) > 1 for pair in pairs):
        return "members"
    return "draws" if any(len(pair.verdicts) > 1 for pair in pairs) else None


def reliability_of(pairs: Sequence[JudgedPair], *, seed: int = 0) -> tuple[Reliability, ...]:
    """The reliability curve: the share of pairs that people call true, by the share of votes that say true.

    Empty where there is one vote each.

    Args:
        pairs: labelled pairs, judged.
        seed: of the bootstraps of whole groups.
    """
    by = votes_of(pairs)
    by_confidence: dict[float, list[JudgedPair]] = {}
    for pair in pairs if by is not None else ():
        votes = [each for each in (pair.members if by == "members" else pair.verdicts) if each is not None]
        if votes and pair.truth is not None:
            by_confidence.setdefault(votes.count("true") / len(votes), []).append(pair)
    return tuple(_point(confidence, by_confidence[confidence], seed) for confidence in sorted(by_confidence))


def _point(confidence: float, pairs: Sequence[JudgedPair], seed: int) -> Reliability:
    values, groups = [float(bool(pair.truth)) for pair in pairs], [pair.group for pair in pairs]
    estimate = statistics.mean_estimate(values, groups, seed=seed, binary=True)
    return Reliability(said=confidence, pairs=len(pairs), value=estimate.value or 0.0, interval=estimate.interval)


def reliability_summary(pairs: Sequence[JudgedPair], *, seed: int) -> Mapping[str, JsonObject]:
    """The reliability curve for the summary of a card; empty if each pair has one vote."""
    by = votes_of(pairs)
    if by is None:
        return {}
    return {"reliability": {"by": by, "points": [each.form() for each in reliability_of(pairs, seed=seed)]}}
