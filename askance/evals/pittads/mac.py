"""Multi-label atypicality classification: which relations an ad shows, and whether it is atypical (section 3.1).

The true labels of an image are all that its annotators say: every relation that any of them sees, and NA where any of
them sees a regular object. Categories beside the four relations count for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents import LABELS, Atypicalities, classify_atypicality, classify_from_picture
from askance.chains import DESCRIPTION, Link, optional, picture, required
from askance.evals.pittads.ads import Source, image_of, taken
from askance.evals.pittads.contexts import chain_of, plain_view
from askance.evals.pittads.labelling import label_scoring
from askance.evals.solving import ChainSolver
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Task, task
from askance.evals.values import Sample

if TYPE_CHECKING:
    from askance.chains import Reading
    from askance.chat import Json
    from askance.evals.pittads.contents import Ad
    from askance.evals.pittads.selection import Which
    from askance.models import Model, ModelLike

NAME = "pittads/mac"

CATEGORIES = Link("labels", Atypicalities, read=Atypicalities.of, write=lambda value: list(value.labels))
"""The labels that a picture was given, the likeliest first."""


def solver(
    *,
    context: str,
    given: Sequence[str] = (),
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
) -> ChainSolver:
    """What answers, made without data.

    Args:
        context: what the answering model gets: a description, or the picture (`I`).
        given: links that every sample brings.
        vlm: sees the picture.
        llm: reads the description; by default the VLM does.
        combiner: makes T_V; by default the LLM does.

    Raises:
        UsageError: no such context, or a model is missing.
    """

    def reader(model: Model) -> Any:
        return classify_atypicality(model)

    def viewer(model: Model) -> Any:
        return classify_from_picture(model)

    chain = chain_of(
        plain_view(context, NAME),
        Roles(vlm=vlm, llm=llm, combiner=combiner),
        given=given,
        described=(reader, lambda reading: required(reading, DESCRIPTION).text),
        seen=(viewer, picture),
        target=CATEGORIES,
    )
    return ChainSolver(chain, value=labels_of)


def labels_of(reading: Reading, sample: Sample) -> Json:  # noqa: ARG001  # the signature of every such function
    """The labels that were given, in their fixed order."""
    found = optional(reading, CATEGORIES)
    labels = () if found is None else found.labels
    return [label for label in LABELS if label in labels]


@task(NAME, scoring=label_scoring, solver=solver)
def mac(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "UH",
    ids: Path | None = None,
    small: bool = False,
    limit: int | None = None,
    seed: int = 0,
    which: Which = "usable",
    descriptions: Path | None = None,
) -> Task:
    """Which of TR1, TR2, OIO, OR and NA an ad has.

    Args:
        data: folder of the data set.
        vlm: sees the picture.
        llm: reads the description; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the answering model gets: a description such as `UH`, `IN`, `V+T` or `T_V`, or the picture (`I`).
        ids: file that lists the images.
        small: 250 images, drawn by the seed.
        limit: images at most.
        seed: of the drawn set.
        which: of the annotated images the `usable`, the `labelled` or the `typical` ones.
        descriptions: published verbalizations, a file or a folder.

    Raises:
        BadData: the data lack what the task needs.
        UsageError: an option that cannot be.
    """
    view = plain_view(context, NAME)
    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    source = Source(data=data, ids=ids, small=small, seed=seed, which=which, descriptions=descriptions or ())
    found = taken(
        source,
        view,
        looks=vlm is not None,
        limit=limit,
        usable={"that nobody gave one of the five labels": lambda ad: bool(true_labels(ad))},
    )
    samples = [
        Sample(
            id=ad.id,
            image=image_of(ad, view),
            inputs={**found.links[ad.id], "options": list(LABELS)},
            target={"labels": true_labels(ad)},
            group=ad.id,
        )
        for ad in found.ads
    ]
    return Task(
        samples=samples,
        solver=solver(context=context, given=found.given, vlm=vlm, llm=llm, combiner=combiner),
        label=f"{roles.answering(picture=view.picture).id} ({view.name})",
        options={**source.form(), "context": context, "given": list(found.given)},
        notes=found.notes,
    )


def true_labels(ad: Ad) -> list[str]:
    """The labels that any annotator gives an ad, in their fixed order."""
    said = {*ad.labels, *(vote for vote in ad.votes if vote is not None)}
    return [label for label in LABELS if label in said]
