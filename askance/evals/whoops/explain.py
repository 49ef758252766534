"""The task of explaining in a sentence what is unusual (section 4.1 of the WHOOPS! paper).

A judge compares an explanation with five references (section 5.1). The paper does not say how five verdicts become one:
here `judged` is whether any of them is true, and `judged_per_reference` is their share. If people have judged
explanations of the run (`labels`), the share that they call right is given, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.explain import Explainer
from askance.agents.judge import QUESTION
from askance.errors import BadData
from askance.evals.judges import JUDGED, judged_score, judged_scoring, read_labels
from askance.evals.metric import mean
from askance.evals.sample import Sample, SampleQuestion, Score
from askance.evals.suite.answer_judge import NeededJudge
from askance.evals.whoops.task import WhoopsTask

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.scorer import Scorer
    from askance.evals.whoops.images import WeirdImage

PEOPLE, AGREED = "people", "judge agrees with people"
NOTES = (
    "'judged' is the same as one of the references or more, 'judged_per_reference' the share of references",
    "An answer that the judge gave no verdict on has no score: it counts as no answer",
)


class Explain(WhoopsTask):
    """What is unusual about an image, in one sentence."""

    name = "whoops/explain"
    agent = Explainer
    needs = ("explanations",)

    labels: Path | None = None
    """File with people's verdicts on explanations of this run: candidate, verdict or votes, and as id the image."""

    judge: NeededJudge
    """The judge that compares explanations with the references."""

    @cached_property
    def people(self) -> Mapping[str, Mapping[str, bool]]:
        """By image and explanation, people's verdicts."""
        return _people(self.labels, {entry.id for entry in self.subset.items})

    @override
    def samples_of(self, entry: WeirdImage) -> Iterator[Sample]:
        target = {"references": list(entry.explanations), "people": self.people.get(entry.id, {})}
        yield self.sample_of(entry, target=target)

    @override
    def answer_of(self, sample: Sample) -> str:
        return str(sample.target["references"][0])

    @override
    def question_of(self, sample: Sample) -> SampleQuestion:
        return SampleQuestion(QUESTION)

    @property
    def labelled(self) -> bool:
        """Whether people have judged explanations."""
        return bool(self.kept_or("labelled", lambda: self.labels is not None))

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "labelled": self.labelled}

    @override
    def scorer(self) -> Scorer:
        noted = self.judge.needed

        plain = judged_scoring(noted.judge, card=noted.note, notes=NOTES)

        async def score(sample: Sample, value: Any) -> Score:
            judged = await judged_score(noted.judge, sample.target["references"], str(value), note=noted.note)
            return replace(judged, values={**judged.values, **people_values(sample, str(value), judged.values[JUDGED])})

        people = (
            mean(PEOPLE, summary="of the explanations that people judged, the share that they call right"),
            mean(AGREED, summary="of those, the share on which the judge says the same"),
        )
        metrics = (*plain.metrics, *people) if self.labelled else plain.metrics
        return self.by_category(replace(plain, score=score, metrics=metrics), JUDGED)


def people_values(sample: Sample, explanation: str, judged: float) -> dict[str, float]:
    """People's verdict on an explanation, and whether the judge agrees; empty if there is no verdict."""
    verdicts: Mapping[str, bool] = sample.target.get("people", {})
    verdict = verdicts.get(explanation.strip())
    return {} if verdict is None else {PEOPLE: float(verdict), AGREED: float(verdict == bool(judged))}


def _people(path: Path | None, ids: set[str]) -> Mapping[str, Mapping[str, bool]]:
    """By image and explanation, people's verdicts; tied votes are left out.

    Raises:
        BadData: none is about an image of the task.
    """
    if path is None:
        return {}
    ratings: dict[str, dict[str, bool]] = {}
    for label in read_labels(path).rows:
        if label.id in ids and label.verdict is not None:
            ratings.setdefault(label.id, {})[label.candidate.strip()] = label.verdict
    if not ratings:
        raise BadData(
            f"The labels in {str(path)!r} are of none of the images.", hint="Their `id` is the `image_id` of the data."
        )
    return ratings
