"""The task of answering questions about weird images (section 4.2 of the WHOOPS! paper): exact match, and equivalence.

The paper scores by "strict exact match", which is `strict match` here; `exact match` is more lenient.

The paper's second figure, BEM, comes from a classifier whose weights are not part of this package. If you have them,
give them as `scorer`: `bem:FOLDER`. A judge that says whether two answers mean the same can replace it, or be added;
its figures are not those of BEM.

How answers are made comparable says `plain` in `askance.evals.suite.answer_match`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import Field
from typing_extensions import override

from askance.agents.explain import OpenAnswerer
from askance.amounts import many
from askance.evals.judges import JUDGED, judged_score
from askance.evals.metric import mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.answer_judge import AnswerJudge, NotedJudge
from askance.evals.suite.answer_match import plain, same_text
from askance.evals.whoops.task import WhoopsTask
from askance.models import ScorerLike, get_scorer

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.whoops.images import WeirdImage
    from askance.models import RecordedScorer

EXACT, STRICT = "exact match", "strict match"
EQUIVALENCE, EQUIVALENT = "equivalence", "equivalence > 0.5"
NOTES = (
    "'exact match' compares without case, articles and punctuation, and with digits for number words",
    "'strict match' compares without case and superfluous blanks alone, and is what the paper's ExactM stands beside",
)
JUDGED_NOTE = "An answer that the judge gave no verdict on has no score in any figure; run without a judge for the rest"


class Vqa(WhoopsTask):
    """Answers to questions about weird images."""

    name = "whoops/vqa"
    agent = OpenAnswerer
    needs = ("questions",)

    classifier: ScorerLike | None = Field(default=None, alias="scorer")
    """A scorer that says how surely two answers are equivalent, such as `bem:FOLDER`."""

    judge: AnswerJudge = AnswerJudge()
    """A judge beside exact match."""

    @cached_property
    def asked(self) -> tuple[Sample, ...]:
        """The samples; they are made once."""
        return tuple(super().samples())

    @override
    def answer_of(self, sample: Sample) -> str:
        return str(sample.target["answer"])

    @override
    def samples_of(self, entry: WeirdImage) -> Iterator[Sample]:
        first = self.sample_of(entry, target=None)
        for place, (question, answer) in enumerate(entry.questions):
            yield replace(
                first,
                id=f"{entry.id}#{place}",
                inputs={**first.inputs, "question": question},
                target={"answer": answer, "question": question},
            )

    @override
    def samples(self) -> Sequence[Sample]:
        return self.asked

    @override
    def notes(self) -> tuple[str, ...]:
        return (many(len(self.asked), "question"), *super().notes())

    @property
    def _recorded(self) -> RecordedScorer | None:
        return None if self.classifier is None else get_scorer(self.classifier, engine=self.engine)

    @override
    def kept(self) -> JsonObject:
        recorded = self._recorded
        return {**super().kept(), **({} if recorded is None else {"scorer": recorded.form()})}

    @override
    def scorer(self) -> Scorer:
        noted, recorded = self.judge.noted, self._recorded

        async def score(sample: Sample, value: Any) -> Score:
            matched = _matched(sample, str(value))
            if noted is not None:
                matched = _both(matched, await _judged(noted, sample, str(value)))
            return matched if recorded is None else _both(matched, await _scored(recorded, sample, str(value)))

        names = (
            EXACT,
            STRICT,
            *(() if noted is None else (JUDGED,)),
            *(() if recorded is None else (EQUIVALENCE, EQUIVALENT)),
        )
        plain_scorer = Scorer(
            judges=() if noted is None else (noted.judge,),
            questions=lambda _: 1,
            closing=() if recorded is None else (recorded,),
            score=(lambda sample, value: _matched(sample, str(value))) if noted is recorded is None else score,
            metrics=tuple(mean(name, summary=_SUMMARIES[name]) for name in names),
            if_wrong=lambda _: Score(values=dict.fromkeys(names, 0.0)),
            if_right=lambda _: Score(values=dict.fromkeys(names, 1.0)),
            notes=(
                *(() if noted is None else (noted.note.sentence, JUDGED_NOTE)),
                *(() if recorded is None else (f"'{EQUIVALENCE}' is the mean score that {recorded.id} gives answers",)),
                *NOTES,
            ),
        )
        return self.by_category(plain_scorer, *(name for name in names if name != STRICT))


_SUMMARIES: Mapping[str, str] = {
    EXACT: "the answer is that of the data, by the usual normalisation; more lenient than the paper",
    STRICT: "the answer is that of the data, but for case and blanks, as in the paper",
    JUDGED: "the answer means the same as that of the data",
    EQUIVALENCE: "how surely the answer is equivalent to that of the data, by a classifier",
    EQUIVALENT: "the classifier is more sure than not",
}


async def _judged(noted: NotedJudge, sample: Sample, answered: str) -> Score:
    answer, question = [sample.target["answer"]], sample.target["question"]
    judged = await judged_score(noted.judge, answer, answered, question=question, note=noted.note)
    return replace(judged, values={JUDGED: judged.values[JUDGED]})


async def _scored(scorer: RecordedScorer, sample: Sample, answer: str) -> Score:
    about = {"question": str(sample.target["question"]), "reference": str(sample.target["answer"])}
    (score,) = await scorer.score_texts(about, [answer])
    return Score(
        values={EQUIVALENCE: score, EQUIVALENT: float(score > 0.5)},
        notes={"scorer": str(scorer.id)},
        calls=scorer.keys(about, [answer]),
    )


def _matched(sample: Sample, answer: str) -> Score:
    true = str(sample.target["answer"])
    return Score(values={EXACT: float(plain(answer) == plain(true)), STRICT: float(same_text(answer, true))})


def _both(one: Score, other: Score) -> Score:
    return Score(
        values={**one.values, **other.values},
        notes={**one.notes, **other.notes},
        calls=(*one.calls, *other.calls),
    )
