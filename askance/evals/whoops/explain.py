"""Explaining in a sentence what is unusual (section 4.1 of the WHOOPS! paper), end to end or by a pipeline.

An explanation is held against five references by a judge (section 5.1). The paper does not say how five verdicts
become one; here `judged` asks for any of them, and `judged_per_reference` is their share. Where people have judged
explanations of the run (`labels`), the share of those that they call right stands beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents import explain_from_description, explain_from_picture
from askance.chains.catalog import about_described, about_seen
from askance.errors import BadData
from askance.evals.figures import mean
from askance.evals.judging import JUDGED, PER_REFERENCE, judged_score, read_labels
from askance.evals.solving import ChainSolver
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample, Score
from askance.evals.whoops.categories import by_category
from askance.evals.whoops.contexts import chain_of, view_of
from askance.evals.whoops.judged import Judging
from askance.evals.whoops.taking import Source, gold_caption, taken

if TYPE_CHECKING:
    from askance.agents import JudgeForm
    from askance.evals.whoops.judged import JudgeLike
    from askance.models import Engine, ModelLike

NAME = "whoops/explain"

PEOPLE, AGREED = "people", "judge agrees with people"
NOTES = (
    "'judged' is the same as one of the references or more, 'judged_per_reference' the share of references",
    "An answer that the judge gave no verdict on has no score: it counts as no answer",
)


def solver(
    *,
    context: str = "I",
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
) -> ChainSolver:
    """What explains, made without data.

    Args:
        context: what the explaining model gets, see `askance.evals.whoops.contexts`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.

    Raises:
        UsageError: no such context, or a model is missing.
    """
    return ChainSolver(
        chain_of(
            "explain",
            view_of(context, NAME),
            Roles(vlm=vlm, llm=llm, combiner=combiner),
            seen=(explain_from_picture, about_seen),
            described=(explain_from_description, about_described),
        )
    )


def scoring(
    *,
    engine: Engine,
    judge: JudgeLike,
    judge_form: JudgeForm = "short",
    judge_note: Mapping[str, Any] | None = None,
    categories: Sequence[str] = (),
    labelled: bool = False,
) -> Scoring:
    """How explanations are scored.

    Args:
        engine: whose records and mode the judge goes by.
        judge: a model, or the form of one as a run keeps it.
        judge_form: the paper's short question, or a rubric.
        judge_note: what a run has kept of its judge; None says that there is no card.
        categories: commonsense categories that there are.
        labelled: whether people have judged explanations.
    """
    judging = Judging.of(judge, form=judge_form, engine=engine, note=judge_note)

    async def score(sample: Sample, value: Any) -> Score:
        references = sample.target["references"]
        found = await judged_score(judging.judge, references, str(value), note=judging.note)
        return replace(found, values={**found.values, **people_values(sample, str(value), found.values[JUDGED])})

    people = (
        mean(PEOPLE, summary="of the explanations that people judged, the share that they call right"),
        mean(AGREED, summary="of those, the share on which the judge says the same"),
    )
    plain = Scoring(
        judges=(judging.judge,),
        questions=lambda sample: len(sample.target["references"]),
        score=score,
        metrics=(
            mean(JUDGED, summary="says the same as one of its references"),
            mean(PER_REFERENCE, summary="share of its references that it says the same as"),
            *(people if labelled else ()),
        ),
        if_wrong=lambda _: Score(values={JUDGED: 0.0, PER_REFERENCE: 0.0}),
        if_right=lambda _: Score(values={JUDGED: 1.0, PER_REFERENCE: 1.0}),
        notes=(judging.note.sentence, *NOTES),
    )
    return by_category(plain, categories, JUDGED)


def people_values(sample: Sample, said: str, judged: float) -> dict[str, float]:
    """What people say of an explanation, and whether the judge says the same; nothing where they were not asked."""
    verdicts: Mapping[str, bool] = sample.target.get("people", {})
    verdict = verdicts.get(said.strip())
    return {} if verdict is None else {PEOPLE: float(verdict), AGREED: float(verdict == bool(judged))}


@task(NAME, scoring=scoring, solver=solver)
def explain(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    judge: ModelLike,
    judge_form: JudgeForm = "short",
    card: Path | None = None,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "I",
    labels: Path | None = None,
    ids: Path | None = None,
    limit: int | None = None,
    fold: int | None = None,
    seed: int = 0,
    engine: Engine | None = None,
) -> Task:
    """What is unusual about an image, in one sentence.

    Args:
        data: folder of the data set.
        judge: the model that holds explanations against the references.
        judge_form: the paper's `short` question, true or false; or a `rubric`, which may be unclear.
        card: file with the judge's card, made by `askance judge card --json`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the explaining model gets, see `askance.evals.whoops.contexts`.
        labels: what people say of explanations of this run: candidate, verdict or votes, and as id the image.
        ids: file that lists the images.
        limit: images at most.
        fold: only the test images of this fold, from 0.
        seed: of the folds.
        engine: whose records and mode the judge goes by; by default those of the run.

    Raises:
        BadData: the data lack what the task needs, or the labels or the card cannot be read.
        UsageError: an option that cannot be.
    """
    view = view_of(context, NAME)
    source = Source(data=Path(data), ids=ids, limit=limit, fold=fold, seed=seed)
    found = taken(source, view, "explanations")
    judging = Judging.of(judge, form=judge_form, engine=engine, card=card)
    people = _people(labels, {entry.id for entry in found.entries})
    samples = [
        Sample(
            id=entry.id,
            image=view.image_of(entry),
            inputs=view.links_of(gold_caption(entry)),
            target={"references": list(entry.explanations), "people": people.get(entry.id, {})},
            group=entry.id,
            tags=found.tags(entry),
        )
        for entry in found.entries
    ]
    told: dict[str, Any] = {"categories": list(found.categories), "labelled": labels is not None}
    note = judging.note.form()

    def scored(engine: Engine) -> Scoring:
        return scoring(engine=engine, judge=judging.judge.model, judge_form=judge_form, judge_note=note, **told)

    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    return Task(
        samples=samples,
        solver=solver(context=context, vlm=vlm, llm=llm, combiner=combiner),
        scoring=scored,
        label=f"{roles.answering(picture=view.picture).id} ({view.name})",
        options={**source.form(), "context": context, **judging.options, **told},
        notes=found.notes,
    )


def _people(path: Path | None, ids: set[str]) -> Mapping[str, Mapping[str, bool]]:
    """By image, what people say of explanations; votes that tie say nothing. Without a file nobody was asked.

    Raises:
        BadData: none is of an image of the task.
    """
    if path is None:
        return {}
    found: dict[str, dict[str, bool]] = {}
    for label in read_labels(path).rows:
        if label.id in ids and label.verdict is not None:
            found.setdefault(label.id, {})[label.candidate.strip()] = label.verdict
    if not found:
        raise BadData(
            f"The labels in {str(path)!r} are of none of the images.", hint="Their `id` is the `image_id` of the data."
        )
    return found
