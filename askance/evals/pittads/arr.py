"""Action-reason retrieval: which statements say what an ad argues for (sections 3.2 and 5.2).

How the paper is read where it leaves a choice:

- *Multi* asks for the three best options, in order, and *Single* for the one best (caption of Table 12).
- The options of *Single* are those of *Multi*: the two differ in how many outputs are asked for (caption of Table 12).
  The caption of Listing 13 speaks of "the single correct option"; `true="one"` leaves one true statement of an image
  among its options, which one by seed.
- Options are shown in an order of their own for each image, which the seed decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from askance.agents import choose_action_reasons, choose_from_picture, choose_step_by_step
from askance.chains.catalog import options_question
from askance.errors import UsageError
from askance.evals.pittads.ads import Source, image_of, taken
from askance.evals.pittads.contexts import chain_of, picture_question, view_of
from askance.evals.pittads.kinds import NEGATIVE_KINDS, kinds_of, options_notes
from askance.evals.solving import ChainSolver
from askance.evals.suite.choice import COUNT, TRUE, multi_scoring, single_scoring
from askance.evals.suite.options import in_order, lot
from askance.evals.suite.orders import sample_ids
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.agents import Mode
    from askance.evals.pittads.ads import Taken
    from askance.evals.pittads.contents import Ad
    from askance.evals.pittads.contexts import View
    from askance.evals.pittads.dataset import Negatives
    from askance.evals.pittads.kinds import KindsOf
    from askance.evals.pittads.selection import Which
    from askance.models import Model, ModelLike

TrueShown = Literal["one", "all"]
"""How many true statements are among the options of *Single*."""

SINGLE_NOTE = "All true statements of an image stand among its options, unless `true` is `one`"


def solver(
    *,
    context: str,
    mode: Mode,
    given: Sequence[str] = (),
    step_by_step: bool = False,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
) -> ChainSolver:
    """What answers, made without data.

    Args:
        context: what the answering model gets, see `askance.evals.pittads.contexts`.
        mode: `multi` asks for three options, `single` for one.
        given: links that every sample brings.
        step_by_step: whether the answering model is asked to reason first (Table 9).
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.

    Raises:
        UsageError: no such context, or a model is missing.
    """
    view = view_of(context)
    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)

    def reader(model: Model) -> Any:
        make = choose_step_by_step if step_by_step else choose_action_reasons
        return make(model, mode=mode, count=COUNT)

    def viewer(model: Model) -> Any:
        return choose_from_picture(model, mode=mode, count=COUNT, step_by_step=step_by_step)

    return ChainSolver(
        chain_of(view, roles, given=given, described=(reader, options_question), seen=(viewer, picture_question(view)))
    )


def several_scoring(orders: int = 1) -> Scoring:
    """How answers with several options are scored."""
    return multi_scoring(NEGATIVE_KINDS, orders=orders)


@task("pittads/arr-multi", scoring=several_scoring, solver=solver)
def arr_multi(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "T_V+s_IN",
    step_by_step: bool = False,
    ids: Path | None = None,
    small: bool = False,
    limit: int | None = None,
    seed: int = 0,
    orders: int = 1,
    which: Which = "usable",
    qa: Path | None = None,
    negatives: Negatives = "easy",
    descriptions: Path | None = None,
) -> Task:
    """Which three of the options an ad argues for.

    Args:
        data: folder of the data set.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the answering model gets, see `askance.evals.pittads.contexts`.
        step_by_step: whether the answering model is asked to reason first (Table 9).
        ids: file that lists the images.
        small: 250 images, drawn by the seed.
        limit: images at most.
        seed: of the order of options, of wrong statements, and of the drawn set.
        orders: 2 asks each sample again with its options the other way round.
        which: of the annotated images the `usable`, the `labelled` or the `typical` ones (Table 13).
        qa: file of statements and options; by default the data set's own.
        negatives: wrong options, `easy` ones of the data set or `hard` ones of `askance negatives generate`.
        descriptions: published verbalizations, a file or a folder.

    Raises:
        BadData: the data lack what the task needs.
        UsageError: an option that cannot be.
    """
    source = Source(
        data=data,
        ids=ids,
        small=small,
        seed=seed,
        which=which,
        qa=qa,
        negatives=negatives,
        descriptions=descriptions or (),
    )
    asked = {"context": context, "step_by_step": step_by_step, "orders": orders, "mode": "multi"}
    return _made(source, Roles(vlm=vlm, llm=llm, combiner=combiner), limit=limit, asked=asked)


def one_scoring(orders: int = 1) -> Scoring:
    """How answers with one option are scored."""
    return single_scoring(NEGATIVE_KINDS, orders=orders, notes=(SINGLE_NOTE,))


@task("pittads/arr-single", scoring=one_scoring, solver=solver)
def arr_single(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "T_V+s_IN",
    step_by_step: bool = False,
    true: TrueShown = "all",
    ids: Path | None = None,
    small: bool = False,
    limit: int | None = None,
    seed: int = 0,
    orders: int = 1,
    which: Which = "usable",
    qa: Path | None = None,
    negatives: Negatives = "easy",
    descriptions: Path | None = None,
) -> Task:
    """Which one of the options an ad argues for.

    Args:
        data: folder of the data set.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the answering model gets, see `askance.evals.pittads.contexts`.
        step_by_step: whether the answering model is asked to reason first (Table 9).
        true: whether `one` of the true statements stands among the options, or `all`.
        ids: file that lists the images.
        small: 250 images, drawn by the seed.
        limit: images at most.
        seed: of the order of options, of the true one, of wrong statements, and of the drawn set.
        orders: 2 asks each sample again with its options the other way round.
        which: of the annotated images the `usable`, the `labelled` or the `typical` ones.
        qa: file of statements and options; by default the data set's own.
        negatives: wrong options, `easy` ones of the data set or `hard` ones of `askance negatives generate`.
        descriptions: published verbalizations, a file or a folder.

    Raises:
        BadData: the data lack what the task needs.
        UsageError: an option that cannot be.
    """
    if true not in {"one", "all"}:
        raise UsageError(f"There cannot be {true!r} true statements among the options.", hint="Give `one` or `all`.")
    source = Source(
        data=data,
        ids=ids,
        small=small,
        seed=seed,
        which=which,
        qa=qa,
        negatives=negatives,
        descriptions=descriptions or (),
    )
    asked = {"context": context, "step_by_step": step_by_step, "orders": orders, "mode": "single", "true": true}
    return _made(source, Roles(vlm=vlm, llm=llm, combiner=combiner), limit=limit, asked=asked)


def _made(source: Source, roles: Roles, *, limit: int | None, asked: Mapping[str, Any]) -> Task:
    view = view_of(asked["context"])
    found = taken(
        source,
        view,
        looks=roles.vlm is not None,
        limit=limit,
        needs=("options", "true"),
        usable={
            "without a true and a wrong option": lambda ad: len({bool(text in ad.true) for text in shown_of(ad)}) == 2
        },
    )
    kinds = kinds_of(found.data)
    samples = [
        sample for ad in found.ads for sample in samples_of(ad, found, view, kinds=kinds, seed=source.seed, asked=asked)
    ]
    chosen = {name: asked[name] for name in ("context", "mode", "step_by_step")}
    how = ", step by step" if asked["step_by_step"] else ""
    return Task(
        samples=samples,
        solver=solver(**chosen, given=found.given, vlm=roles.vlm, llm=roles.llm, combiner=roles.combiner),
        label=f"{roles.answering(picture=view.picture).id} ({view.name}{how})",
        options={**source.form(), **asked, "given": list(found.given)},
        notes=(*found.notes, *options_notes(found.data, samples)),
    )


def samples_of(
    ad: Ad, found: Taken, view: View, *, kinds: KindsOf, seed: int, asked: Mapping[str, Any]
) -> Iterator[Sample]:
    """The samples of one ad, one for each order of its options."""
    kind_of = kinds(ad)
    shown = [
        text for text in ad.options if text.strip() and (kind_of[text] != TRUE or text in true_of(ad, seed, asked))
    ]
    first = Sample(
        id=ad.id,
        image=image_of(ad, view),
        inputs={**found.links[ad.id]},
        group=ad.id,
    )
    for order, name in sample_ids(ad.id, orders=asked["orders"]).items():
        options = in_order(shown, seed=seed, key=ad.id, order=order)
        of_each = [kind_of[text] for text in options]
        yield replace(
            first,
            id=name,
            inputs={**first.inputs, "options": list(options)},
            target={"true": [n for n, kind in enumerate(of_each, start=1) if kind == TRUE], "kinds": of_each},
            tags={"order": order} if asked["orders"] > 1 else {},
        )


def shown_of(ad: Ad) -> list[str]:
    """The options that can be shown: those of blanks alone cannot."""
    return [text for text in ad.options if text.strip()]


def true_of(ad: Ad, seed: int, asked: Mapping[str, Any]) -> Sequence[str]:
    """The true statements that stand among the options."""
    true = [text for text in shown_of(ad) if text in ad.true]
    return [min(true, key=lambda text: lot(seed, ad.id, "true", text))] if asked.get("true") == "one" else true
