"""The task of writing an inference about a region, which a judge holds to those of people.

The paper leaves such figures out (footnote 8): what is always true, such as "somebody took this photograph", scores
well by them. So a run is read beside its control, `--control swapped-region`, in which the same model writes about
regions of other pictures; what it is right about there, it did not see. Answers that speak of the marks on the picture,
such as "a pink rectangle", are counted. A VLM may rate what was written beside (`-T rater=…`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import override

from askance.agents.region import InferenceWriter, speaks_of_mark
from askance.chains import REGION, region_of
from askance.errors import UsageError
from askance.evals.judges import JUDGED, PER_REFERENCE, judged_score
from askance.evals.metric import mean
from askance.evals.part import Question
from askance.evals.sample import REGIONS, Sample, SampleQuestion, Score
from askance.evals.scorer import Scorer
from askance.evals.sherlock.pools import SHOW, view_of
from askance.evals.sherlock.rater import PLAUSIBLE, InferenceRating
from askance.evals.sherlock.task import RegionTask, facts_of
from askance.evals.suite.answer_judge import NeededJudge
from askance.evals.suite.any_solver import AnySolver
from askance.evals.suite.context import LOOKING, PICTURE, InContext
from askance.evals.suite.selection import Subset

if TYPE_CHECKING:
    from askance.evals.sherlock.instance import Instance
    from askance.evals.solver import Solver
    from askance.images.regions import Box

QUESTION = "What can be inferred from the highlighted region of the image?"
"""What inferences answer, as a judge is told; it sees no picture."""

MARKED = "speaks of marks"
NOTES = (
    "'judged' is the same as an inference of people about the region; others may be as true",
    "Read it beside a run with --control swapped-region: what is judged true there was not seen",
    "An answer that the judge gave no verdict on has no score: it counts as no answer",
)


class InferenceModel(InContext):
    """A model that writes about a region that it sees; an investigator would not know of the region."""

    settings = InContext.settings | LOOKING
    contexts: tuple[str, ...] = (PICTURE,)

    @override
    def solver(self, question: Question) -> Solver:
        if self.vlm is None:
            raise UsageError("There is no model that sees the picture.", hint="Give a `vlm`.")
        return super().solver(question)


class InferenceJudge(NeededJudge):
    """A judge that holds inferences to those of people."""

    judge_form: Literal["short", "rubric"] = "rubric"
    """A rubric, by which a judge may be unclear; or a short question, true or false."""


class InferenceWriting(RegionTask):
    """What can be inferred from a region, in one sentence."""

    name = "sherlock/inference"
    headlines = (JUDGED, PLAUSIBLE)

    model: InferenceModel = InferenceModel()
    """The model that answers."""
    other: AnySolver = AnySolver()
    """A solver in its place."""
    judge: InferenceJudge
    """The judge that compares inferences with those of people."""
    rated: InferenceRating = InferenceRating()
    """A VLM that rates inferences, whatever people wrote."""

    @cached_property
    @override
    def subset(self) -> Subset[Sequence[Instance]]:
        """The regions of the corpus; the instances of one region are one item."""
        by_region: dict[tuple[str, tuple[Box, ...]], list[Instance]] = {}
        for instance in self.dataset.instances:
            by_region.setdefault((instance.url, instance.boxes), []).append(instance)
        regions: tuple[Sequence[Instance], ...] = tuple(map(tuple, by_region.values()))
        return self.chosen(
            Subset(items=regions, noun="regions", notes=(f"{len(regions):,} regions of the corpus",)),
            names=lambda some: (*(each.id for each in some), some[0].url),
            url=lambda some: some[0].url,
        )

    @override
    def regions(self) -> Iterator[Sample]:
        for first, *others in self.subset.items:
            references = [each.inference for each in (first, *others)]
            yield self.sample_of(
                first.id, first.url, [first.boxes], target={"references": references}, tags=facts_of(first)
            )

    @override
    def question(self) -> Question:
        return Question(
            name="infer",
            agent=InferenceWriter,
            asks=region_of,
            needs=(REGION,),
            given=(REGION.name,),
            inputs=self._given,
            measured=self.rated.measured,
        )

    def _given(self, sample: Sample) -> Mapping[str, Any]:
        """What the chain is given: the picture and the region."""
        (boxes,) = sample.inputs[REGIONS]
        view = view_of(boxes, show=sample.inputs[SHOW])
        return {"name": sample.id, "image": sample.image, REGION.name: view, **self.rated.given(boxes)}

    @override
    def question_of(self, sample: Sample) -> SampleQuestion:
        return SampleQuestion(QUESTION)

    @override
    def scorer(self) -> Scorer:
        noted = self.judge.needed

        async def score(sample: Sample, value: Any) -> Score:
            judged = await judged_score(
                noted.judge, _references(sample), str(value), question=QUESTION, note=noted.note
            )
            return Score(
                values={**judged.values, MARKED: float(speaks_of_mark(str(value)))},
                notes=judged.notes,
                calls=judged.calls,
            )

        plain = Scorer(
            judges=(noted.judge,),
            questions=lambda sample: len(_references(sample)),
            score=score,
            metrics=(
                mean(JUDGED, summary="says the same as an inference of people about the region"),
                mean(PER_REFERENCE, summary="share of these inferences that it says the same as"),
                mean(MARKED, better="lower", summary="speaks of the marks of the region as if they were seen"),
            ),
            if_wrong=lambda _: Score(values={JUDGED: 0.0, PER_REFERENCE: 0.0, MARKED: 0.0}),
            if_right=lambda _: Score(values={JUDGED: 1.0, PER_REFERENCE: 1.0, MARKED: 0.0}),
            notes=(noted.note.sentence, *NOTES),
        )
        return self.broken_down(self.rated.scorer(plain))


def _references(sample: Sample) -> Sequence[str]:
    target: Mapping[str, Any] = sample.target
    return target["references"]
