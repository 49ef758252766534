"""The rate of a run by its judge, corrected for the errors of that judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from askance import statistics
from askance.errors import UsageError
from askance.evals.judges.scores import JUDGED
from askance.evals.judges.verdicts import digest_of
from askance.statistics import ClusteredScores, Estimate

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.judges.card import JudgeCard
    from askance.evals.run import Run, SampleResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRate:
    """The rate of a run by its judge, as measured and corrected in two ways."""

    measured: Estimate
    rogan_gladen: Estimate
    """Corrected by the errors on the judge's card."""
    powered: Estimate
    """Corrected by labels of answers of this very run; without any it is `no data`."""
    labelled: int
    """Answers of the run with a label."""
    unscored: int
    """Answers and samples without a verdict, which are left out."""
    notes: tuple[str, ...] = ()

    @property
    def ways(self) -> Mapping[str, Estimate]:
        """The rates, by the name of the method."""
        return {
            "as judged": self.measured,
            "Rogan–Gladen": self.rogan_gladen,
            f"prediction-powered, {self.labelled:,} labelled": self.powered,
        }

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
    _check_judge(card, run, scored)
    rows = [(answer, float(answer.score.values[value])) for answer in scored if answer.score is not None]
    judged = _scores_of(rows)
    truths = _truths(card)
    labelled = [(answer, score) for answer, score in rows if _key_of(answer) in truths]
    others = [(answer, score) for answer, score in rows if _key_of(answer) not in truths]
    pairs = [pair for pair in card.labelled if pair.says is not None]
    corrected = statistics.clustered_rogan_gladen(
        judged,
        ClusteredScores(scores=[float(bool(pair.says)) for pair in pairs], clusters=[pair.group for pair in pairs]),
        [bool(pair.truth) for pair in pairs],
        seed=seed,
    )
    powered = statistics.prediction_powered_mean(
        [float(truths[_key_of(answer)]) for answer, _ in labelled], _scores_of(labelled), _scores_of(others)
    )
    return CorrectedRate(
        measured=statistics.mean_estimate(judged.scores, judged.clusters, seed=seed, binary=True),
        rogan_gladen=corrected,
        powered=powered,
        labelled=len(labelled),
        unscored=len(run.answers) - len(scored),
        notes=tuple(_notes_on(scored, corrected)),
    )


def _scores_of(rows: Sequence[tuple[SampleResult, float]]) -> ClusteredScores:
    return ClusteredScores(scores=[score for _, score in rows], clusters=[answer.sample.cluster for answer, _ in rows])


def _key_of(answer: SampleResult) -> tuple[str, str]:
    return answer.sample.id, digest_of(str(answer.prediction.value))


def _truths(card: JudgeCard) -> Mapping[tuple[str, str], bool]:
    """By sample and answer, whether people say that it means the same as any of its references."""
    said: dict[tuple[str, str], bool] = defaultdict(bool)
    for pair in card.labelled:
        if pair.id:
            said[pair.id, pair.candidate] |= bool(pair.truth)
    return dict(said)


def _check_judge(card: JudgeCard, run: Run, scored: Sequence[SampleResult]) -> None:
    for answer in scored:
        notes: Mapping[str, Any] = answer.score.notes if answer.score is not None else {}
        judge: Mapping[str, Any] = notes.get("judge") or {}
        if judge.get("digest") != card.digest:
            who = judge.get("judge", "nobody that it names")
            raise UsageError(
                f"The run {str(run.path)!r} was judged by {who}, and the card is that of {card.judge}.",
                hint="Another model, form, temperature or prompt is another judge: make it a card of its own.",
            )


def _notes_on(scored: Sequence[SampleResult], corrected: Estimate) -> list[str]:
    notes: list[str] = []
    if corrected.value is None:
        notes.append(
            "By its card the judge is no better than chance, or one kind of label is missing: the rate cannot be "
            "corrected by Rogan and Gladen."
        )
    if any(len(answer.score.notes.get("references", ())) > 1 for answer in scored if answer.score is not None):
        notes.append(
            "The run's answers are held against several references each and the card's candidates against one. Over "
            "several references false alarms add up, which Rogan and Gladen's correction does not account for."
        )
    return notes
