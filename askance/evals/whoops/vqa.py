"""Questions about weird images (section 4.2 of the WHOOPS! paper): exact match, and whether answers are equivalent.

The paper scores by "strict exact match", which is `strict match` here; `exact match` is more lenient.

The paper's second figure, BEM, is that of a classifier whose weights do not come along. Where they are at hand, they
are a `scorer`: `bem:FOLDER`. A judge that says whether two answers to the question mean the same can stand in its
place, or beside it; its figures are not BEM's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents import answer_from_description, answer_from_picture
from askance.amounts import many
from askance.chains.catalog import about_described, about_seen
from askance.evals.figures import mean
from askance.evals.judging import JUDGED, judged_score
from askance.evals.solving import ChainSolver
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample, Score
from askance.evals.whoops.answers import plain, same_text
from askance.evals.whoops.categories import by_category
from askance.evals.whoops.contexts import chain_of, view_of
from askance.evals.whoops.judged import Judging
from askance.evals.whoops.taking import Source, gold_caption, taken
from askance.models import get_scorer

if TYPE_CHECKING:
    from askance.agents import JudgeForm
    from askance.evals.whoops.judged import JudgeLike
    from askance.models import Engine, ModelLike, RecordedScorer, ScorerLike

NAME = "whoops/vqa"

EXACT, STRICT = "exact match", "strict match"
EQUIVALENCE, EQUIVALENT = "equivalence", "equivalence > 0.5"
NOTES = (
    "'exact match' compares without case, articles and punctuation, and with digits for number words",
    "'strict match' compares without case and superfluous blanks alone, and is what the paper's ExactM stands beside",
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
    scorer: ScorerLike | None = None,
    categories: Sequence[str] = (),
) -> Scoring:
    """How answers are scored.

    Args:
        engine: whose records and mode the judge goes by.
        judge: a model, or the form of one as a run keeps it; None compares the words alone.
        judge_form: a rubric, or the paper's short question.
        judge_note: what a run has kept of its judge; None says that there is no card.
        scorer: how surely an answer is equivalent, such as BEM; a spec, a scorer, or the form of one as a run keeps it.
        categories: commonsense categories that there are.
    """
    judging = None if judge is None else Judging.of(judge, form=judge_form, engine=engine, note=judge_note)
    recorded = None if scorer is None else get_scorer(scorer, engine=engine)

    async def score(sample: Sample, value: Any) -> Score:
        found = _matched(sample, str(value))
        if judging is not None:
            found = _both(found, await _judged(judging, sample, str(value)))
        return found if recorded is None else _both(found, await _scored(recorded, sample, str(value)))

    names = (
        EXACT,
        STRICT,
        *(() if judging is None else (JUDGED,)),
        *(() if recorded is None else (EQUIVALENCE, EQUIVALENT)),
    )
    plain_scoring = Scoring(
        judges=() if judging is None else (judging.judge,),
        questions=lambda _: 1,
        closing=() if recorded is None else (recorded,),
        score=(lambda sample, value: _matched(sample, str(value))) if judging is recorded is None else score,
        metrics=tuple(mean(name, summary=_SUMMARIES[name]) for name in names),
        if_wrong=lambda _: Score(values=dict.fromkeys(names, 0.0)),
        if_right=lambda _: Score(values=dict.fromkeys(names, 1.0)),
        notes=(
            *(() if judging is None else (judging.note.sentence, JUDGED_NOTE)),
            *(() if recorded is None else (f"'{EQUIVALENCE}' is the mean score that {recorded.id} gives answers",)),
            *NOTES,
        ),
    )
    return by_category(plain_scoring, categories, *(name for name in names if name != STRICT))


_SUMMARIES: Mapping[str, str] = {
    EXACT: "the answer is that of the data, by the usual normalisation; more lenient than the paper",
    STRICT: "the answer is that of the data, but for case and blanks, as in the paper",
    JUDGED: "the answer means the same as that of the data",
    EQUIVALENCE: "how surely the answer is equivalent to that of the data, by a classifier",
    EQUIVALENT: "the classifier is more sure than not",
}


async def _judged(judging: Judging, sample: Sample, said: str) -> Score:
    answer, question = [sample.target["answer"]], sample.target["question"]
    found = await judged_score(judging.judge, answer, said, question=question, note=judging.note)
    return replace(found, values={JUDGED: found.values[JUDGED]})


async def _scored(scorer: RecordedScorer, sample: Sample, said: str) -> Score:
    about = {"question": str(sample.target["question"]), "reference": str(sample.target["answer"])}
    (score,) = await scorer.score_texts(about, [said])
    return Score(
        values={EQUIVALENCE: score, EQUIVALENT: float(score > 0.5)},
        notes={"scorer": str(scorer.id)},
        calls=scorer.keys(about, [said]),
    )


def _matched(sample: Sample, said: str) -> Score:
    true = str(sample.target["answer"])
    return Score(values={EXACT: float(plain(said) == plain(true)), STRICT: float(same_text(said, true))})


def _both(one: Score, other: Score) -> Score:
    return Score(
        values={**one.values, **other.values},
        notes={**one.notes, **other.notes},
        calls=(*one.calls, *other.calls),
    )


@task(NAME, scoring=scoring, solver=solver)
def vqa(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    judge: ModelLike | None = None,
    judge_form: JudgeForm = "rubric",
    card: Path | None = None,
    scorer: ScorerLike | None = None,
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
        scorer: a classifier that says how surely two answers are equivalent, such as `bem:FOLDER`.
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
    recorded = None if scorer is None else get_scorer(scorer, engine=engine)
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
        return scoring(
            engine=engine,
            judge=None if judging is None else judging.judge.model,
            judge_form=judge_form,
            judge_note=None if judging is None else judging.note.form(),
            scorer=recorded,
            categories=found.categories,
        )

    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    return Task(
        samples=samples,
        solver=solver(context=context, vlm=vlm, llm=llm, combiner=combiner),
        scoring=scored,
        label=f"{roles.answering(picture=view.picture).id} ({view.name})",
        options={
            **source.form(),
            "context": context,
            "categories": list(found.categories),
            **({} if judging is None else judging.options),
            **({} if recorded is None else {"scorer": recorded.form()}),
        },
        notes=(many(len(samples), "question"), *found.notes),
    )
