"""Atypical object recognition: between which two objects the atypicality of an ad holds (sections 3.1 and 4).

The relation is given, the model names the objects, and the statement that comes of it, ŝ, is compared with the true
ones by the cosine similarity of their sentence embeddings.

How the paper is read where it leaves a choice:

- One relation is asked about for each image: the one that most annotators see, if any of them names usable objects for
  it, else that of the first statement. The printed shares fit 1,163, 1,163, 1,168, 1,108 and 245 samples in Table 2,
  and 246, 246, 246, 235 and 245 in Table 8: so a sample is an image. `per="relation"` asks about each relation that has
  statements.
- Those numbers differ from model to model, so the paper leaves out what it could not read. The convention `answered`
  does so too; else a non-answer counts as a similarity of 0.
- Several annotators may see the relation between other objects. ŝ counts by the true statement that it is most similar
  to; the mean over all of them stands beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from askance.agents import FillQuestion, fill_from_picture, fill_statement
from askance.agents.statement import EXAMPLES, PLACES
from askance.atypicality import RELATIONS, TEMPLATES, Relation, Statement
from askance.chains import DESCRIPTION, STATEMENT, Chain, Step, picture, required, verbalize
from askance.errors import UsageError
from askance.evals.pittads.ads import Source, image_of, statement_form, taken
from askance.evals.pittads.contexts import TOOLS, plain_view
from askance.evals.pittads.similarity import EMBEDDER, scoring
from askance.evals.solving import ChainSolver
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Task, task
from askance.evals.values import Sample
from askance.models import get_embedder

if TYPE_CHECKING:
    from askance.chains import Reading
    from askance.evals.pittads.contents import Ad
    from askance.evals.pittads.contexts import View
    from askance.evals.pittads.selection import Which
    from askance.models import EmbedderLike, ModelLike

Per = Literal["image", "relation"]
"""What a sample is: an image, asked about one relation; or each relation of an image that has statements."""


def solver(
    *,
    context: str = "I",
    given: Sequence[str] = (),
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
) -> ChainSolver:
    """What names the objects, made without data.

    Args:
        context: `I` for the picture, or the description that stands for it (see `askance.evals.pittads.contexts`).
        given: links that every sample brings.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.

    Raises:
        UsageError: no such context, or a model is missing.
    """
    view = plain_view(context, "pittads/aor")
    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    if view.picture and vlm is None:
        raise UsageError(f"The context {context!r} shows the picture.", hint="Give a `vlm`.")
    steps = [*_told(view, roles, given), _fill_step(view, roles)]
    return ChainSolver(
        Chain(f"aor {view.name}", target=STATEMENT, steps=steps, mode=roles.see.mode), given=_given, value=_filled
    )


def _told(view: View, roles: Roles, given: Sequence[str]) -> list[Step]:
    """The steps that make the description, as far as it is not given and there is a model to make it."""
    if view.picture or view.description is None or "description" in given:
        return []
    steps = verbalize(roles.see, roles.combine, context=view.description).steps
    there = {*given} if roles.vlm is not None else {*given, *TOOLS}
    return [step for step in steps if step.link.name not in there]


def _fill_step(view: View, roles: Roles) -> Step:
    if view.picture:
        return Step(link=STATEMENT, node=fill_from_picture(roles.see), subject=_seen)
    return Step(link=STATEMENT, node=fill_statement(roles.think), needs=(DESCRIPTION,), subject=_described)


def _seen(reading: Reading) -> FillQuestion:
    return FillQuestion(relation=_relation_in(reading), image=picture(reading))


def _described(reading: Reading) -> FillQuestion:
    return FillQuestion(relation=_relation_in(reading), description=required(reading, DESCRIPTION).text)


def _given(sample: Sample) -> Mapping[str, Any]:
    """The chain's input: for options it gets the template of the relation with places to fill in, and its example."""
    inputs = dict(sample.inputs)
    template = TEMPLATES[inputs.pop("relation")]
    options = [template.format(primary=primary, secondary=secondary) for primary, secondary in (PLACES, EXAMPLES)]
    return {"name": sample.id, "image": sample.image, **inputs, "options": options}


def _relation_in(reading: Reading) -> Relation:
    return Statement.parse((reading.options or ("",))[0]).relation


def _filled(reading: Reading, sample: Sample) -> dict[str, str] | None:  # noqa: ARG001  # the signature of such functions
    found = reading.statement
    return None if found is None or found.value is None else found.value.canonical()


@task("pittads/aor", scoring=scoring, solver=solver)
def aor(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "I",
    embedder: EmbedderLike = EMBEDDER,
    per: Per = "image",
    ids: Path | None = None,
    small: bool = False,
    limit: int | None = None,
    seed: int = 0,
    which: Which = "usable",
    descriptions: Path | None = None,
) -> Task:
    """Which two objects the atypicality of an ad is between.

    Args:
        data: folder of the data set.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: `I` for the picture, or the description that stands for it (see `askance.evals.pittads.contexts`).
        embedder: what similarities are worked out with: a spec, or an embedder.
        per: whether each `image` is a sample, or each `relation` of it.
        ids: file that lists the images.
        small: 250 images, drawn by the seed.
        limit: images at most.
        seed: of the drawn set.
        which: of the annotated images the `usable` or the `labelled` ones; none without a true statement is taken.
        descriptions: published verbalizations, a file or a folder.

    Raises:
        BadData: the data lack what the task needs.
        UsageError: an option that cannot be.
    """
    if per not in {"image", "relation"}:
        raise UsageError(f"A sample cannot be a {per!r}.", hint="Give `image` or `relation`.")
    view = plain_view(context, "pittads/aor")
    source = Source(data=data, ids=ids, small=small, seed=seed, which=which, descriptions=descriptions or ())
    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    found = taken(
        source,
        view,
        looks=vlm is not None,
        limit=limit,
        needs=("statements",),
        usable={"with no true statement": lambda ad: bool(ad.statements)},
    )
    answers = solver(context=context, given=found.given, vlm=vlm, llm=llm, combiner=combiner)
    named = get_embedder(embedder, engine=roles.see.engine)
    return Task(
        samples=[sample for ad in found.ads for sample in samples_of(ad, view, found.links[ad.id], per=per)],
        solver=answers,
        scoring=lambda engine: scoring(engine=engine, embedder=embedder),
        label=f"{roles.answering(picture=view.picture).id} ({view.name})",
        options={
            **source.form(),
            "context": context,
            "per": per,
            "given": list(found.given),
            "embedder": named.form(),
        },
        notes=found.notes,
    )


def samples_of(ad: Ad, view: View, links: Mapping[str, Any], *, per: Per) -> list[Sample]:
    """The samples of one ad: one, or one for each relation that has true statements."""
    stated = {statement.relation for statement in ad.statements}
    relations = {asked_relation(ad)} if per == "image" else stated
    return [
        Sample(
            id=ad.id if per == "image" else f"{ad.id}#{relation}",
            image=image_of(ad, view),
            inputs={**links, "relation": relation},
            target=[statement_form(statement) for statement in ad.statements if statement.relation == relation],
            group=ad.id,
            tags={"relation": relation},
        )
        for relation in sorted(relations, key=RELATIONS.index)
    ]


def asked_relation(ad: Ad) -> Relation:
    """The relation that is asked about: what most annotators see, else that of the first true statement."""
    stated: list[Relation] = [statement.relation for statement in ad.statements]
    most = ad.plurality
    return stated[0] if most is None or most not in stated else most
