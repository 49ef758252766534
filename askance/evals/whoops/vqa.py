"""Questions about weird images (section 4.2 of the WHOOPS! paper): exact match, and a judge in the place of BEM.

The paper's second figure, BEM, is that of a classifier whose weights are not at hand here. A judge that says whether
two answers to the question mean the same stands in its place; its figures are not BEM's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents import answer_from_description, answer_from_picture
from askance.chains.oddities import about_described, about_seen
from askance.evals.figures import mean
from askance.evals.judging import JUDGED, judged_score
from askance.evals.solving import ChainSolver
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample, Score
from askance.evals.whoops.answers import plain
from askance.evals.whoops.categories import by_category
from askance.evals.whoops.contexts import Roles, chain_of, view_of
from askance.evals.whoops.judged import Judging
from askance.evals.whoops.taking import Source, gold_caption, taken

if TYPE_CHECKING:
    from askance.agents import JudgeForm
    from askance.evals.whoops.judged import JudgeLike
    from askance.models import Engine, ModelLike

NAME = "whoops/vqa"

EXACT, STRICT = "exact match", "strict match"
NOTES = (
    "'exact match' compares without case, articles and punctuation, and with digits for number words",
    "'strict match' compares without case and superfluous blanks alone",
)
JUDGED_NOTE = "An answer that the judge gave no verdict on has no score in any figure; run without a judge for the rest"


def solver(
    *,
    context: str = "I",
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
) -> ChainSolver:
    """What answers, made without data.

    Args:
        context: what the answering model gets, see `askance.evals.whoops.contexts`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.

    Raises:
        UsageError: no such context, or a model is missing.
    """
    return ChainSolver(
        chain_of(
            "vqa",
            view_of(context, NAME),
            Roles(vlm=vlm, llm=llm, combiner=combiner),
            seen=(answer_from_picture, about_seen),
            described=(answer_from_description, about_described),
        )
    )


def scoring(
    *,
    engine: Engine | None = None,
    judge: JudgeLike | None = None,
    judge_form: JudgeForm = "rubric",
    judge_note: Mapping[str, Any] | None = None,
    categories: Sequence[str] = (),
) -> Scoring:
    """How answers are scored.

    Args:
        engine: whose records and mode the judge goes by.
        judge: a model, or the form of one as a run keeps it; None compares the words alone.
        judge_form: a rubric, or the paper's short question.
        judge_note: what a run has kept of its judge; None says that there is no card.
        categories: commonsense categories that there are.
    """
    judging = None if judge is None else Judging.of(judge, form=judge_form, engine=engine, note=judge_note)

    async def judged(sample: Sample, value: Any) -> Score:
        found = await judged_score(
            _needed(judging).judge,
            [sample.target["answer"]],
            str(value),
            question=sample.target["question"],
            note=_needed(judging).note,
        )
        values = {**_matches(sample, str(value)), JUDGED: found.values[JUDGED]}
        return Score(values=values, notes=found.notes, calls=found.calls)

    names = (EXACT, STRICT, *(() if judging is None else (JUDGED,)))
    plain_scoring = Scoring(
        judges=() if judging is None else (judging.judge,),
        questions=lambda _: 1,
        score=(lambda sample, value: Score(values=_matches(sample, str(value)))) if judging is None else judged,
        metrics=tuple(mean(name, summary=_SUMMARIES[name]) for name in names),
        if_wrong=lambda _: Score(values=dict.fromkeys(names, 0.0)),
        if_right=lambda _: Score(values=dict.fromkeys(names, 1.0)),
        notes=(*(() if judging is None else (judging.note.sentence, JUDGED_NOTE)), *NOTES),
    )
    return by_category(plain_scoring, categories, *(name for name in names if name != STRICT))


_SUMMARIES: Mapping[str, str] = {
    EXACT: "the answer is that of the data, by the usual normalisation",
    STRICT: "the answer is that of the data, but for case and blanks",
    JUDGED: "the answer means the same as that of the data",
}


def _needed(judging: Judging | None) -> Judging:
    if judging is None:
        raise AssertionError  # pragma: no cover  # asked only where there is a judge
    return judging


def _matches(sample: Sample, said: str) -> dict[str, float]:
    true = str(sample.target["answer"])
    return {
        EXACT: float(plain(said) == plain(true)),
        STRICT: float(" ".join(said.split()).casefold() == " ".join(true.split()).casefold()),
    }


@task(NAME, scoring=scoring, solver=solver)
def vqa(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    judge: ModelLike | None = None,
    judge_form: JudgeForm = "rubric",
    card: Path | None = None,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "I",
    ids: Path | None = None,
    limit: int | None = None,
    fold: int | None = None,
    seed: int = 0,
    engine: Engine | None = None,
) -> Task:
    """Answers to questions about weird images.

    Args:
        data: folder of the data set.
        judge: a model that says whether an answer means the same as that of the data; None compares words alone.
        judge_form: a `rubric`, which may be unclear, or the paper's `short` question.
        card: file with the judge's card, made by `askance judge card --json`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the answering model gets, see `askance.evals.whoops.contexts`.
        ids: file that lists the images.
        limit: images at most.
        fold: only the test images of this fold, from 0.
        seed: of the folds.
        engine: whose records and mode the judge goes by; by default those of the run.

    Raises:
        BadData: the data lack what the task needs, or the card cannot be read.
        UsageError: an option that cannot be.
    """
    view = view_of(context, NAME)
    source = Source(data=Path(data), ids=ids, limit=limit, fold=fold, seed=seed)
    found = taken(source, view, "questions")
    judging = None if judge is None else Judging.of(judge, form=judge_form, engine=engine, card=card)
    samples: list[Sample] = []
    for entry in found.entries:
        image = view.image_of(entry)
        samples += [
            Sample(
                id=f"{entry.id}#{place}",
                image=image,
                inputs={**view.links_of(gold_caption(entry)), "question": question},
                target={"answer": answer, "question": question},
                group=entry.id,
                tags=found.tags(entry),
            )
            for place, (question, answer) in enumerate(entry.questions)
        ]

    def scored(engine: Engine) -> Scoring:
        if judging is None:
            return scoring(categories=found.categories)
        model, note = judging.judge.model, judging.note.form()
        return scoring(engine=engine, judge=model, judge_form=judge_form, judge_note=note, categories=found.categories)

    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    return Task(
        samples=samples,
        solver=solver(context=context, vlm=vlm, llm=llm, combiner=combiner),
        scoring=scored,
        label=f"{roles.answering(view).id} ({view.name})",
        options={
            **source.form(),
            "context": context,
            "categories": list(found.categories),
            **({} if judging is None else judging.options),
        },
        notes=(f"{len(samples):,} questions", *found.notes),
    )
