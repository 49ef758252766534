"""Scores by a judge: each has a note of who judged, with a summary of the judge's card if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from askance.agents import canonical_judge, judge_references
from askance.agents.judge import QUESTION
from askance.errors import UsageError
from askance.evals.judges.card import JudgeCard, calls_of, digest_of_judge
from askance.evals.metric import mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.nodes import Result

if TYPE_CHECKING:
    from askance.agents import Judge
    from askance.chat import JsonObject

JUDGED = "judged"
"""Name of the value that is 1 where the candidate says the same as one of its references, else 0."""
PER_REFERENCE = "judged_per_reference"
"""Name of the value that is the share of references that it says the same as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeNote:
    """Who judged, and the summary of its card."""

    judge: str
    digest: str
    """Identifies the judge."""
    card: Mapping[str, Any] | None = None
    """The summary of its card; None without a card."""

    @classmethod
    def of(cls, judge: Judge, card: JudgeCard | None = None) -> JudgeNote:
        """The note of `judge`.

        Raises:
            UsageError: the card is another judge's.
        """
        digest = digest_of_judge(canonical_judge(judge))
        if card is not None and card.digest != digest:
            raise UsageError(
                f"The card is that of {card.judge}, and the judge is {judge}.",
                hint="Another model, form, temperature or prompt is another judge: make it a card of its own.",
            )
        return cls(judge=str(judge), digest=digest, card=None if card is None else card.summary())

    @property
    def sentence(self) -> str:
        """The note as a sentence for readers of the figures."""
        if self.card is None:
            return f"Judged by {self.judge}, which has no card: how often it is wrong is not known."
        accuracy, base, kappa = (_shown(self.card[name]) for name in ("accuracy", "base rate", "cohen kappa"))
        return (
            f"Judged by {self.judge}; on {self.card['pairs']:,} labelled pairs ({self.card['labels']}) its accuracy is "
            f"{accuracy} beside a base rate of {base}, and Cohen's κ {kappa}."
        )

    def form(self) -> JsonObject:
        """The note as JSON."""
        card = None if self.card is None else dict(self.card)
        return {"judge": self.judge, "digest": self.digest, "card": card}


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


async def judged_score(
    judge: Judge,
    references: Sequence[str],
    candidate: str,
    *,
    question: str = QUESTION,
    note: JudgeNote | None = None,
) -> Score:
    """The score of `candidate` beside its references, with the note of its judge.

    Args:
        judge: who judges.
        references: any of them is enough for `judged`; `judged_per_reference` is the share of them.
        candidate: what is judged.
        question: what all of them answer.
        note: of the judge, made once for many scores; None makes one that says that there is no card.

    Raises:
        CallError: the candidate is unscored; of the class that stands for the outcome.
    """
    judged = await judge_references(judge, references, candidate, question=question)
    verdict = judged.any_of
    if verdict.value is None:
        lost: Result[Score] = Result(outcome=verdict.outcome, reason=verdict.reason)
        return lost.unwrap()
    return Score(
        values={JUDGED: float(verdict.value == "true"), PER_REFERENCE: judged.share or 0.0},
        notes={
            "verdict": str(verdict),
            "reason": verdict.reason,
            "references": [str(each) for each in judged.each],
            "judge": (note or JudgeNote.of(judge)).form(),
        },
        calls=verdict.calls,
    )


def references_of(sample: Sample) -> Sequence[str]:
    """The references among the sample's target: a text or a list of them, or what it has as `references` or `answer`.

    Empty where it has none; numbers, such as those of right options, are none.
    """
    target: Any = sample.target
    if isinstance(target, Mapping):
        fields = cast("Mapping[str, Any]", target)
        target = fields.get("references", fields.get("answer"))
    if isinstance(target, str):
        return [target]
    listed = cast("Sequence[Any]", target) if isinstance(target, (list, tuple)) else ()
    return [each for each in listed if isinstance(each, str)]


def judged_scoring(
    judge: Judge,
    *,
    card: JudgeCard | JudgeNote | None = None,
    question: str | Callable[[Sample], str] = QUESTION,
    references: Callable[[Sample], Sequence[str]] = references_of,
    notes: tuple[str, ...] = (),
) -> Scorer:
    """Scores answers that are texts by a judge; the first of its notes says what is known of the judge.

    Args:
        judge: who judges; for a run that is to be scored again, made with the engine that the scoring is given.
        card: the judge's, or the note that was made of it.
        question: what answers and references answer, or from a sample to that.
        references: from a sample to its references.
        notes: what else a reader has to know.

    Raises:
        UsageError: the card is another judge's.
    """
    note, calls = card if isinstance(card, JudgeNote) else JudgeNote.of(judge, card), calls_of(judge)

    async def score(sample: Sample, value: Any) -> Score:
        sample_question = question if isinstance(question, str) else question(sample)
        return await judged_score(judge, references(sample), str(value), question=sample_question, note=note)

    return Scorer(
        judges=tuple(calls),
        questions=lambda sample: [count * len(references(sample)) for count in calls.values()],
        score=score,
        metrics=(
            mean(JUDGED, summary="says the same as one of its references"),
            mean(PER_REFERENCE, summary="share of its references that it says the same as"),
        ),
        if_wrong=lambda _: Score(values={JUDGED: 0.0, PER_REFERENCE: 0.0}),
        if_right=lambda _: Score(values={JUDGED: 1.0, PER_REFERENCE: 1.0}),
        notes=(note.sentence, *notes),
    )
