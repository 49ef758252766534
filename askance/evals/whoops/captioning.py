"""Captions of weird images (section 4.2 of the WHOOPS! paper): BLEU-4 and CIDEr over five references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents import caption_from_description
from askance.chains import picture
from askance.chains.catalog import about_described
from askance.evals.solving import ChainSolver
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample, Score
from askance.evals.whoops.caption_metrics import BLEU, CIDER_METRIC, caption_score, need_packages
from askance.evals.whoops.categories import by_category
from askance.evals.whoops.contexts import GOLD, chain_of, view_of
from askance.evals.whoops.taking import Source, taken
from askance.tools import caption

if TYPE_CHECKING:
    from askance.models import ModelLike

NAME = "whoops/captioning"

BUT = ("caption", GOLD)
"""Contexts that say nothing here: a caption of a caption."""

NOTES = (
    "Words by sacrebleu's tokenizer 13a, in lower case and without punctuation",
    "Published figures go by the PTB tokenizer, which takes contractions and possessives apart",
    "BLEU-4 is that of the corpus, without smoothing; CIDEr is CIDEr-D with the weights of the samples here",
    "By category there is BLEU-4 alone, since CIDEr's weights would be those of the category",
    "A wrong answer, which a non-answer counts as, is an empty caption; a right one is the first reference",
)


def solver(
    *,
    context: str = "I",
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
) -> ChainSolver:
    """What writes captions, made without data.

    Args:
        context: what the writing model gets, see `askance.evals.whoops.contexts`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.

    Raises:
        UsageError: no such context, or a model is missing.
    """
    return ChainSolver(
        chain_of(
            "captioning",
            view_of(context, NAME, but=BUT),
            Roles(vlm=vlm, llm=llm, combiner=combiner),
            seen=(caption, picture),
            described=(caption_from_description, about_described),
        )
    )


def scoring(categories: Sequence[str] = ()) -> Scoring:
    """How captions are scored.

    Raises:
        MissingExtra: a package is not installed.
    """
    need_packages()

    def score(sample: Sample, value: Any) -> Score:
        return caption_score(str(value), sample.target)

    plain = Scoring(
        score=score,
        metrics=(CIDER_METRIC, BLEU),
        if_wrong=lambda sample: caption_score("", sample.target),
        if_right=lambda sample: caption_score(sample.target[0], sample.target),
        notes=NOTES,
    )
    return by_category(plain, categories, BLEU.name)


@task(NAME, scoring=scoring, solver=solver)
def captioning(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "I",
    ids: Path | None = None,
    limit: int | None = None,
    fold: int | None = None,
    seed: int = 0,
) -> Task:
    """Captions of weird images.

    Args:
        data: folder of the data set.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the writing model gets, see `askance.evals.whoops.contexts`.
        ids: file that lists the images.
        limit: images at most.
        fold: only the test images of this fold, from 0.
        seed: of the folds.

    Raises:
        BadData: the data lack what the task needs.
        MissingExtra: a package that a figure is made by is not installed.
        UsageError: an option that cannot be.
    """
    need_packages()
    view = view_of(context, NAME, but=BUT)
    source = Source(data=Path(data), ids=ids, limit=limit, fold=fold, seed=seed)
    found = taken(source, view, "captions")
    samples = [
        Sample(
            id=entry.id,
            image=view.image_of(entry),
            inputs=view.links_of(""),
            target=list(entry.captions),
            group=entry.id,
            tags=found.tags(entry),
        )
        for entry in found.entries
    ]
    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    return Task(
        samples=samples,
        solver=solver(context=context, vlm=vlm, llm=llm, combiner=combiner),
        label=f"{roles.answering(picture=view.picture).id} ({view.name})",
        options={**source.form(), "context": context, "categories": list(found.categories)},
        notes=found.notes,
    )
