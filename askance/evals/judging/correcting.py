"""What the rate of a run would be but for the errors of the judge that measured it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from askance import statistics
from askance.errors import UsageError
from askance.evals.judging.asking import digest_of
from askance.evals.judging.scores import JUDGED
from askance.statistics import Estimate, Judged

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.judging.card import JudgeCard
    from askance.evals.run import Answer, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRate:
    """A run's rate as its judge has it, and corrected in two ways."""

    measured: Estimate
    rogan_gladen: Estimate
    """By the errors on the card."""
    powered: Estimate
    """By labels of answers of this very run; without any it is `no data`."""
    labelled: int
    """Answers of the run with a label."""
    unscored: int
    """Answers and samples without a verdict, which are left out."""
    notes: tuple[str, ...] = ()

    def form(self) -> JsonObject:
        """The rates as JSON."""
        return {**asdict(self), "notes": list(self.notes)}


def corrected_rate(card: JudgeCard, run: Run, *, value: str = JUDGED, seed: int = 0) -> CorrectedRate:
    """The rate of `run`, whose answers the judge of `card` has scored.

    Args:
        card: the judge's.
        run: finished or not.
        value: name of the score that is 1 where the judge says yes.
        seed: of the bootstraps.

    Raises:
        UsageError: the run has no such scores, or another judge's.
    """
    scored = [answer for answer in run.answers if answer.score is not None and value in answer.score.values]
    if not scored:
        raise UsageError(
            f"The run {str(run.path)!r} has no score {value!r}.", hint="Name a run whose answers a judge has scored."
        )
    _check(card, run, scored)
    rows = [(answer, float(answer.score.values[value])) for answer in scored if answer.score is not None]
    judged = _judged(rows)
    truths = _truths(card)
    labelled = [(answer, score) for answer, score in rows if _name(answer) in truths]
    others = [(answer, score) for answer, score in rows if _name(answer) not in truths]
    cases = [case for case in card.labelled if case.says is not None]
    corrected = statistics.clustered_rogan_gladen(
        judged,
        Judged(scores=[float(bool(case.says)) for case in cases], clusters=[case.group for case in cases]),
        [bool(case.truth) for case in cases],
        seed=seed,
    )
    powered = statistics.prediction_powered_mean(
        [float(truths[_name(answer)]) for answer, _ in labelled], _judged(labelled), _judged(others)
    )
    return CorrectedRate(
        measured=statistics.mean_estimate(judged.scores, judged.clusters, seed=seed, binary=True),
        rogan_gladen=corrected,
        powered=powered,
        labelled=len(labelled),
        unscored=len(run.answers) - len(scored),
        notes=tuple(_notes(scored, corrected)),
    )


def _judged(rows: Sequence[tuple[Answer, float]]) -> Judged:
    return Judged(scores=[score for _, score in rows], clusters=[answer.sample.cluster for answer, _ in rows])


def _name(answer: Answer) -> tuple[str, str]:
    return answer.sample.id, digest_of(str(answer.prediction.value))


def _truths(card: JudgeCard) -> Mapping[tuple[str, str], bool]:
    """By sample and answer, whether people say that it means the same as any of its references."""
    said: dict[tuple[str, str], bool] = defaultdict(bool)
    for case in card.labelled:
        if case.id:
            said[case.id, case.candidate] |= bool(case.truth)
    return dict(said)


def _check(card: JudgeCard, run: Run, scored: Sequence[Answer]) -> None:
    for answer in scored:
        notes: Mapping[str, Any] = answer.score.notes if answer.score is not None else {}
        judge: Mapping[str, Any] = notes.get("judge") or {}
        if judge.get("digest") != card.digest:
            who = judge.get("judge", "nobody that it names")
            raise UsageError(
                f"The run {str(run.path)!r} was judged by {who}, and the card is that of {card.judge}.",
                hint="Another model, form, temperature or prompt is another judge: make it a card of its own.",
            )


def _notes(scored: Sequence[Answer], corrected: Estimate) -> list[str]:
    notes: list[str] = []
    if corrected.value is None:
        notes.append(
            "By the card the judge is no better than chance, or one kind of label is missing: its rate cannot be "
            "corrected by Rogan and Gladen."
        )
    if any(len(answer.score.notes.get("references", ())) > 1 for answer in scored if answer.score is not None):
        notes.append(
            "The run's answers are held against several references each and the card's candidates against one: over "
            "several, false alarms add up, and Rogan and Gladen's correction does not know of it."
        )
    return notes
