"""Atypicality statement retrieval: which statement of a relation between two objects holds (section 3.1).

The options of an image are s⁺, its first true statement, and statements that do not hold:

- *wrong objects*: the two objects of each of K = 2 other annotated images, in both orders: 2 K statements;
- *wrong relation*: the same objects in each relation that no annotator of the image sees: up to three;
- *swapped*: the same relation, the objects the other way round.

A wrong statement that an annotator of the image made all the same is left out, and so is one that is there already.
Which other images are drawn, from all annotated ones, and the order of the options are matters of the seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.agents import choose_statement, choose_statement_from_picture
from askance.atypicality import Statement
from askance.chains.catalog import options_question
from askance.evals.pittads.ads import Source, image_of, taken, wrong_relations
from askance.evals.pittads.contexts import chain_of, picture_question, plain_view
from askance.evals.solving import ChainSolver
from askance.evals.suite.choice import TRUE, single_scoring
from askance.evals.suite.options import drawn, in_order
from askance.evals.suite.orders import sample_ids
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample

if TYPE_CHECKING:
    from askance.evals.pittads.contents import Ad
    from askance.evals.pittads.dataset import PittAds
    from askance.evals.pittads.selection import Which
    from askance.models import Model, ModelLike

NAME = "pittads/asr"
K = 2
"""Other images whose objects are put in place of the true ones."""

WrongStatement: TypeAlias = Literal["wrong objects", "wrong relation", "swapped"]
WRONG_STATEMENTS: tuple[WrongStatement, ...] = get_args(WrongStatement)
"""Kinds of statements that do not hold (Fig. 6)."""


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
    view = plain_view(context, NAME)

    def reader(model: Model) -> Any:
        return choose_statement(model)

    def viewer(model: Model) -> Any:
        return choose_statement_from_picture(model)

    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    return ChainSolver(
        chain_of(view, roles, given=given, described=(reader, options_question), seen=(viewer, picture_question(view)))
    )


def scoring(orders: int = 1) -> Scoring:
    """How the chosen statement is scored."""
    return single_scoring(WRONG_STATEMENTS, orders=orders)


@task(NAME, scoring=scoring, solver=solver)
def asr(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "IN",
    ids: Path | None = None,
    small: bool = False,
    limit: int | None = None,
    seed: int = 0,
    orders: int = 1,
    which: Which = "usable",
    descriptions: Path | None = None,
) -> Task:
    """Which statement of an atypical relation between two objects holds in an ad.

    Args:
        data: folder of the data set.
        vlm: sees the picture.
        llm: reads the description; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the answering model gets: a description such as `IN`, `UH`, `V+T` or `T_V`, or the picture (`I`).
        ids: file that lists the images.
        small: 250 images, drawn by the seed.
        limit: images at most.
        seed: of the wrong statements, of the order of options, and of the drawn set.
        orders: 2 asks each sample again with its options the other way round.
        which: of the annotated images the `usable` or the `labelled` ones.
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
        needs=("statements",),
        usable={"without a true statement": lambda ad: bool(ad.statements)},
    )
    pool = pool_of(found.data)
    first = (
        (Sample(id=ad.id, image=image_of(ad, view), inputs={**found.links[ad.id]}, group=ad.id), ad) for ad in found.ads
    )
    samples = [
        each for sample, ad in first for each in _shown(sample, kinds_of(ad, pool, seed=seed), seed=seed, orders=orders)
    ]
    return Task(
        samples=samples,
        solver=solver(context=context, given=found.given, vlm=vlm, llm=llm, combiner=combiner),
        label=f"{roles.answering(picture=view.picture).id} ({view.name})",
        options={**source.form(), "context": context, "orders": orders, "given": list(found.given)},
        notes=found.notes,
    )


def pool_of(data: PittAds) -> tuple[tuple[str, Statement], ...]:
    """Each annotated image with a true statement, and its first one."""
    annotations = data.contents.annotations
    if annotations is None:
        return ()
    images = annotations.images
    return tuple((key, images[key].statements[0]) for key in sorted(images) if images[key].statements)


def kinds_of(ad: Ad, pool: Sequence[tuple[str, Statement]], *, seed: int) -> dict[str, str]:
    """The options of an ad and what each is: `true`, or how it is wrong."""
    true = ad.statements[0]
    kinds = {true.text: TRUE}
    known = {_folded(statement) for statement in ad.statements}
    for kind, statement in _wrong(ad, true, pool, seed=seed):
        if _folded(statement) not in known:
            known.add(_folded(statement))
            kinds[statement.text] = kind
    return kinds


def _wrong(
    ad: Ad, true: Statement, pool: Sequence[tuple[str, Statement]], *, seed: int
) -> Iterator[tuple[WrongStatement, Statement]]:
    own = {_names(statement) for statement in ad.statements}
    others = (
        other
        for key, other in drawn(pool, seed=seed, key=ad.id)
        if key != ad.id and _names(other) not in own and _names(other)[::-1] not in own
    )
    for other in islice(others, K):
        yield "wrong objects", Statement(true.relation, other.primary, other.secondary)
        yield "wrong objects", Statement(true.relation, other.secondary, other.primary)
    for statement in wrong_relations(ad, true, seed=seed):
        yield "wrong relation", statement
    yield "swapped", Statement(true.relation, true.secondary, true.primary)


def _names(statement: Statement) -> tuple[str, str]:
    return statement.primary.casefold(), statement.secondary.casefold()


def _folded(statement: Statement) -> tuple[str, str, str]:
    return (statement.relation, *_names(statement))


def _shown(sample: Sample, kinds: Mapping[str, str], *, seed: int, orders: int) -> Iterator[Sample]:
    """The sample with its options, in each order."""
    for order, name in sample_ids(sample.id, orders=orders).items():
        options = in_order([*kinds], seed=seed, key=sample.group, order=order)
        of_each = [kinds[text] for text in options]
        yield replace(
            sample,
            id=name,
            inputs={**sample.inputs, "options": list(options)},
            target={"true": [of_each.index(TRUE) + 1], "kinds": of_each},
            tags={"order": order} if orders > 1 else {},
        )
