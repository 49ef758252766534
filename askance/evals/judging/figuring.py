"""The figures of a judge's card, each with an interval by whole groups of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from askance import statistics
from askance.statistics import Interval, Resampling

if TYPE_CHECKING:
    from askance.evals.judging.asking import Case
    from askance.statistics import Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFigure:
    """One figure of a card."""

    name: str
    value: float | None
    """None where there is nothing to compute it from."""
    interval: Interval | None
    pairs: int
    """That it is computed from."""
    share: bool
    """Whether it is a share; else it is a measure of agreement, 0 by chance alone and 1 at most."""


def figures_of_cases(cases: Sequence[Case], *, seed: int = 0) -> tuple[CardFigure, ...]:
    """All figures of a card.

    `accuracy` stands beside the `base rate`, that of always giving the more frequent label. `flip rate` is the share of
    pairs whose verdict changes when reference and candidate change places; `self-consistency` that of pairs of draws
    with the same verdict.

    Args:
        cases: labelled pairs, judged.
        seed: of the bootstraps.
    """
    labelled = [case for case in cases if case.truth is not None]
    return (
        *_rightness(labelled, seed),
        *_agreement(labelled, seed),
        *_steadiness(labelled, seed),
        *_people(cases, seed),
    )


def _rightness(labelled: Sequence[Case], seed: int) -> Iterator[CardFigure]:
    scored = [case for case in labelled if case.says is not None]
    more = 2 * sum(bool(case.truth) for case in scored) >= len(scored)
    yield _share("accuracy", [(case.says == case.truth, case) for case in scored], seed)
    yield _share("base rate", [(case.truth == more, case) for case in scored], seed)
    yield _share("sensitivity", [(case.says is True, case) for case in scored if case.truth], seed)
    yield _share("specificity", [(case.says is False, case) for case in scored if not case.truth], seed)
    yield _share("unscored", [(case.says is None, case) for case in labelled], seed)


def _agreement(labelled: Sequence[Case], seed: int) -> Iterator[CardFigure]:
    resampling = Resampling(seed=seed, clusters=[case.group for case in labelled])
    truth, said = [case.truth for case in labelled], [case.says for case in labelled]
    both = list(zip(truth, said, strict=True))
    yield _measured("cohen kappa", statistics.cohen_kappa(truth, said, resampling=resampling))
    yield _measured("gwet ac1", statistics.gwet_ac1(both, resampling=resampling))
    yield _measured("krippendorff alpha", statistics.krippendorff_alpha(both, resampling=resampling))


def _steadiness(labelled: Sequence[Case], seed: int) -> Iterator[CardFigure]:
    resampling = Resampling(seed=seed, clusters=[case.group for case in labelled])
    both = [case for case in labelled if case.verdict is not None and case.swapped is not None]
    if any(case.swapped is not None for case in labelled):
        yield _share("flip rate", [(case.verdict != case.swapped, case) for case in both], seed)
    if any(len(case.verdicts) > 1 for case in labelled):
        draws = [case.verdicts for case in labelled]
        yield _measured("self-consistency", statistics.pairwise_agreement(draws, resampling=resampling))
    if any(len(case.members) > 1 for case in labelled):
        members = [case.members for case in labelled]
        yield _measured("members, alpha", statistics.krippendorff_alpha(members, resampling=resampling))
        yield _measured("members, pairs", statistics.pairwise_agreement(members, resampling=resampling))


def _people(cases: Sequence[Case], seed: int) -> Iterator[CardFigure]:
    voted = [case for case in cases if sum(vote is not None for vote in case.votes) > 1]
    if not voted:
        return
    votes = [case.votes for case in voted]
    resampling = Resampling(seed=seed, clusters=[case.group for case in voted])
    yield _measured("people, pairs", statistics.pairwise_agreement(votes, resampling=resampling))
    yield _measured("people, ac1", statistics.gwet_ac1(votes, resampling=resampling))
    yield _measured("people, alpha", statistics.krippendorff_alpha(votes, resampling=resampling))


def _share(name: str, rows: Sequence[tuple[bool, Case]], seed: int) -> CardFigure:
    values, groups = [float(value) for value, _ in rows], [case.group for _, case in rows]
    estimate = statistics.mean_estimate(values, groups, seed=seed, binary=True)
    interval = None if estimate.value is None else estimate.interval
    return CardFigure(name=name, value=estimate.value, interval=interval, pairs=len(rows), share=True)


def _measured(name: str, found: Agreement) -> CardFigure:
    share = found.measure == "pairwise agreement"
    return CardFigure(name=name, value=found.value, interval=found.interval, pairs=found.items, share=share)
